/** What a round added up to, as everybody is told it: `protocol.Sums`. */
import type { Table } from "../engine/linear";

export interface Sums {
  readonly total: Table;
  /** Σw of each row */
  readonly weights: Float64Array;
  /** Σw over all */
  readonly overall: number;
  readonly clients: number;
  readonly statistic: Float64Array;
  /** standard deviation of the noise in it; 0 where there is none */
  readonly noise: number;
}
