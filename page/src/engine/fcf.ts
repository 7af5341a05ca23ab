/** Federated collaborative filtering as first published: `parts/model/fcf.py`. */
import { beside, columns, gram, part, sharesOf, solve, table, transposedTimes, type Table } from "./linear";
import { averages, numberOf, type PublicItems, type Settings } from "./public_items";

export const predictsColdItems = false;
const BIAS_PRIOR = 5;
const BEFORE = 2;

/** X = (damped mean rating, 1, y_i). */
export function itemColumns(Y: Table, known: PublicItems): Table {
  const head = table(Y.rows, BEFORE);
  averages(known).forEach((average, i) => head.data.set([average, 1], BEFORE * i));
  return beside([head, Y]);
}

/** Weights of the item's mean and of the constant: 1 and the person's damped deviation; of Y none. */
export function foldIn(X: Table, items: ArrayLike<number>, ratings: Float64Array): Float64Array {
  const w = new Float64Array(X.columns);
  let deviation = 0;
  for (let j = 0; j < items.length; j++) deviation += ratings[j]! - X.data[items[j]! * X.columns]!;
  w[0] = 1;
  w[1] = deviation / (items.length + BIAS_PRIOR);
  return w;
}

/** x over Y's columns, so that X·z = x·y_i. */
export function listWeights(
  _w: Float64Array, X: Table, items: ArrayLike<number>, _ratings: Float64Array, settings: Settings, _known: PublicItems,
  recency: Float64Array | null,
): Float64Array {
  const { G, rows, c, weights } = equations(X, items, settings, recency);
  const z = new Float64Array(X.columns);
  z.set(solve(G, transposedTimes(rows, weights.map((weight) => (1 + c) * weight))), BEFORE);
  return z;
}

/** A rating's part of the damped deviation. */
export function weightShares(X: Table, items: ArrayLike<number>, ratings: Float64Array): Float64Array[] {
  return Array.from(items, (item, k) => {
    const share = new Float64Array(X.columns);
    share[1] = (ratings[k]! - X.data[item * X.columns]!) / (items.length + BIAS_PRIOR);
    return share;
  });
}

/** What a choice adds to x. */
export function listWeightShares(
  X: Table, items: ArrayLike<number>, _ratings: Float64Array, settings: Settings, _known: PublicItems, recency: Float64Array | null,
): Float64Array[] {
  const { G, rows, c, weights } = equations(X, items, settings, recency);
  const head = new Array<number>(BEFORE).fill(0);
  return sharesOf(G, rows, weights.map((weight) => (1 + c) * weight)).map((share) => Float64Array.of(...head, ...share));
}

function equations(X: Table, items: ArrayLike<number>, settings: Settings, recency: Float64Array | null) {
  const Y = columns(X, BEFORE, X.columns);
  const rows = part(Y, items);
  const c = numberOf(settings, "confidence");
  const all = gram(Y);
  const weights = recency ?? new Float64Array(rows.rows).fill(1);
  const own = gram(rows, weights);
  const ridge = numberOf(settings, "regularisation");
  const d = Y.columns;
  const G = { ...all, data: all.data.map((value, at) => value + c * own.data[at]! + (at % (d + 1) === 0 ? ridge : 0)) };
  return { G, rows, c, weights };
}
