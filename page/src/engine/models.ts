/** The models by the name that configs give them. */
import type { Table } from "./linear";
import type { PublicItems, Settings } from "./public_items";
import { MatrixFactorisation } from "./mf";
import * as biases from "./biases";
import * as fcf from "./fcf";
import * as ials from "./ials";
import * as joint from "./joint";
import * as reconstruction from "./reconstruction";

export interface ModelRule {
  readonly predictsColdItems: boolean;
  itemColumns(V: Table, known: PublicItems, settings: Settings): Table;
  foldIn(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Float64Array;
  listWeights?(
    w: Float64Array, X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems,
    recency: Float64Array | null,
  ): Float64Array;
  /** For each rating what it adds to the weights of `foldIn`. */
  weightShares(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Float64Array[];
  /** For each rating what it adds to `listWeights`. */
  listWeightShares?(
    X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems, recency: Float64Array | null,
  ): Float64Array[];
}

export const MODELS: Readonly<Record<string, ModelRule>> = {
  mf: new MatrixFactorisation(false),
  "biased-mf": new MatrixFactorisation(true),
  reconstruction,
  ials,
  joint,
  fcf,
  biases,
};
