/** Matrix factorisation: `parts/model/mf.py` and `biased_mf.py`. */
import { gram, part, solve, table, times, transposedTimes, type Table } from "./linear";
import { numberOf, type PublicItems, type Settings } from "./public_items";

export class MatrixFactorisation {
  readonly predictsColdItems = false;
  constructor(readonly biases: boolean) {}

  /** X = (V, 1), and with biases (V, μ + b_i, 1). */
  itemColumns(V: Table, known: PublicItems, settings: Settings): Table {
    const X = table(V.rows, V.columns + 1);
    const factors = numberOf(settings, "factors");
    for (let i = 0; i < V.rows; i++) {
      X.data.set(V.data.subarray(i * V.columns, (i + 1) * V.columns), i * X.columns);
      if (this.biases) X.data[i * X.columns + factors]! += known.mean;
      X.data[(i + 1) * X.columns - 1] = 1;
    }
    return X;
  }

  /** argmin_U mean (r − X·U)² + λ‖U‖² over the rated rows. */
  foldIn(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings): Float64Array {
    const factors = numberOf(settings, "factors");
    const U = new Float64Array(X.columns);
    if (this.biases) U[factors] = 1;
    const free = Array.from({ length: factors }, (_, k) => k).concat(this.biases ? [factors + 1] : []);
    const own = part(X, items);
    const predicted = times(own, U);
    const A = table(own.rows, free.length);
    for (let j = 0; j < own.rows; j++) free.forEach((k, at) => (A.data[j * free.length + at] = own.data[j * X.columns + k]!));
    const G = gram(A);
    const ridge = Math.max(numberOf(settings, "regularisation") * items.length, 1e-9);
    for (let k = 0; k < free.length; k++) G.data[k * free.length + k]! += ridge;
    const solved = solve(G, transposedTimes(A, ratings.map((rating, j) => rating - predicted[j]!)));
    free.forEach((k, at) => (U[k] = solved[at]!));
    return U;
  }
}
