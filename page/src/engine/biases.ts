/** Biases of people and items alone: `parts/model/biases.py`. */
import { table, type Table } from "./linear";
import { numberOf, type PublicItems, type Settings } from "./public_items";

export const predictsColdItems = false;
const COLUMNS = 3;
const [BASELINE, PERSON, POPULARITY] = [0, 1, 2];

/** X = (μ + b_i, 1, log popularity). */
export function itemColumns(b: Table, known: PublicItems): Table {
  const X = table(b.rows, COLUMNS);
  for (let i = 0; i < b.rows; i++) X.data.set([b.data[i]! + known.mean, 1, Math.log1p(known.popularity[i]!)], COLUMNS * i);
  return X;
}

/** 1 for the item, and the person's bias: the damped mean of deviations. */
export function foldIn(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings): Float64Array {
  const w = new Float64Array(COLUMNS);
  w[BASELINE] = 1;
  w[PERSON] = deviations(X, items, ratings, settings).reduce((sum, each) => sum + each, 0);
  return w;
}

/** Popularity, the same for everybody. */
export function listWeights(): Float64Array {
  const z = new Float64Array(COLUMNS);
  z[POPULARITY] = 1;
  return z;
}

/** A rating's part of the person's bias. */
export function weightShares(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings): Float64Array[] {
  return Array.from(deviations(X, items, ratings, settings), (deviation) => Float64Array.of(0, deviation, 0));
}

/** No rating changes what is popular. */
export function listWeightShares(_X: Table, items: ArrayLike<number>): Float64Array[] {
  return Array.from(items, () => new Float64Array(COLUMNS));
}

function deviations(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings): Float64Array {
  const damping = items.length + numberOf(settings, "person_ridge");
  return ratings.map((rating, j) => (rating - X.data[items[j]! * COLUMNS + BASELINE]!) / damping);
}
