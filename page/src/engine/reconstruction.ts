/** Federated reconstruction: `parts/model/reconstruction.py`. */
import { beside, dot, row, type Table } from "./linear";
import { POPULARITY, numberOf, publicColumns, regressionShares, ridgeRegression, type PublicItems, type Settings, type Weights } from "./public_items";

export const predictsColdItems = true;

/** X = (b_i, constant, popularity, average, content, V_i). */
export function itemColumns(V: Table, known: PublicItems, settings: Settings): Table {
  return beside([publicColumns(known, settings), V]);
}

export function foldIn(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Float64Array {
  return posterior(X, items, ratings, settings, known).mean;
}

/** Weights z over X such that X·z = predicted rating + popularity weight × popularity. */
export function listWeights(
  w: Float64Array, _X: Table, _items: ArrayLike<number>, _ratings: Float64Array, settings: Settings, _known: PublicItems,
): Float64Array {
  const z = w.slice();
  z[POPULARITY]! += numberOf(settings, "popularity_weight");
  return z;
}

export function weightShares(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Float64Array[] {
  const { ridge, prior } = ridgeAndPrior(X.columns - 1, items, new Float64Array(items.length).fill(1), settings, known);
  const expected = Float64Array.of(1, ...prior);
  return regressionShares(X, items, ratings.map((rating, j) => rating - dot(row(X, items[j]!), expected)), ridge);
}

export const listWeightShares = weightShares;

/** Mean and covariance of a person's weights, given ratings of some items. */
export function posterior(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Weights {
  const used = new Float64Array(items.length).fill(1);
  const { ridge, prior } = ridgeAndPrior(X.columns - 1, items, used, settings, known);
  return ridgeRegression(X, items, ratings, ridge, prior);
}

/** Of each weight but the baseline's: its ridge, for rows that were used (1) or not (0), and its prior mean. */
export function ridgeAndPrior(
  size: number, items: ArrayLike<number>, used: ArrayLike<number>, settings: Settings, known: PublicItems,
): { ridge: Float64Array; prior: Float64Array } {
  const factors = numberOf(settings, "factors");
  const noise = numberOf(settings, "noise") * known.noise;
  const prior = new Float64Array(size);
  prior[size - factors] = numberOf(settings, "user_mean");
  let variance = 0;
  for (let j = 0; j < items.length; j++) variance += used[j]! * itemVariance(items[j]!, noise, settings, known);
  const ridge = new Float64Array(size).fill(noise);
  for (let k = size - factors; k < size; k++) ridge[k]! += variance;
  return { ridge, prior };
}

/** σ²/(n_i + prior strength): how little is known of a row of V. */
function itemVariance(item: number, noise: number, settings: Settings, known: PublicItems): number {
  const share = typeof settings["row_variance"] === "number" ? settings["row_variance"] : 1;
  return (share * noise) / (known.popularity[item]! + numberOf(settings, "item_prior"));
}
