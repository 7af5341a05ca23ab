/** Ratings and choices together, T = [V | W]: `parts/model/joint.py`. */
import { beside, columns, dot, part, row, solveFactored, transposedTimes, type Table } from "./linear";
import { numberOf, sum, type PublicItems, type Settings } from "./public_items";
import * as ials from "./ials";
import * as reconstruction from "./reconstruction";

export const predictsColdItems = true;

/** X = (b_i, constant, popularity, average, content, scaled W_i, V_i). */
export function itemColumns(T: Table, known: PublicItems, settings: Settings): Table {
  const k = numberOf(settings, "factors");
  return beside([ials.itemColumns(columns(T, k, T.columns), known, settings), columns(T, 0, k)]);
}

/** The ridge regression of `reconstruction`, with W's columns among the public ones and a prior from choices. */
export function foldIn(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Float64Array {
  const from = X.columns - numberOf(settings, "factors");
  const prior = priorFromChoices(X, items, settings, known);
  const left = ratings.map((rating, j) => rating - dot(row(X, items[j]!).subarray(from), prior));
  const w = reconstruction.foldIn(X, items, left, ofRatings(settings), known);
  prior.forEach((value, k) => (w[from + k]! += value));
  return w;
}

export function listWeights(
  w: Float64Array, X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems,
  recency: Float64Array | null,
): Float64Array {
  return ials.listWeights(w, X, items, ratings, settings, known, recency, numberOf(settings, "factors"));
}

/** What a rating adds by its value, and by being there: the prior from choices is a sum over rated items. */
export function weightShares(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Float64Array[] {
  const from = X.columns - numberOf(settings, "factors");
  const { factor } = reconstruction.posterior(X, items, ratings, ofRatings(settings), known);
  const A = part(X, items, 1);
  return reconstruction.weightShares(X, items, ratings, ofRatings(settings), known).map((share, place) => {
    const prior = priorFromChoices(X, [items[place]!], settings, known, items.length);
    const expected = Float64Array.from(items, (item) => dot(row(X, item).subarray(from), prior));
    const given = solveFactored(factor, transposedTimes(A, expected));
    return share.map((value, at) => value - (at ? given[at - 1]! : 0) + (at >= from ? prior[at - from]! : 0));
  });
}

export function listWeightShares(
  X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems, recency: Float64Array | null,
): Float64Array[] {
  return ials.listWeightShares(X, items, ratings, settings, known, recency, numberOf(settings, "factors"), weightShares);
}

/** η Σ_j (V_j − V̄)/√n over a person's n rated items, or over some of them. */
function priorFromChoices(X: Table, items: ArrayLike<number>, settings: Settings, known: PublicItems, n = items.length): Float64Array {
  const factors = numberOf(settings, "factors");
  const mean = meanRow(X, factors, known);
  const prior = new Float64Array(factors);
  for (let j = 0; j < items.length; j++) {
    const v = row(X, items[j]!).subarray(X.columns - factors);
    for (let k = 0; k < factors; k++) prior[k]! += v[k]! - mean[k]!;
  }
  const scale = numberOf(settings, "choice_prior") / Math.sqrt(Math.max(n, 1));
  return prior.map((value) => scale * value);
}

const means = new WeakMap<Table, Float64Array>();

/** V̄, the mean row over all ratings. */
function meanRow(X: Table, factors: number, known: PublicItems): Float64Array {
  let mean = means.get(X);
  if (!mean) {
    mean = new Float64Array(factors);
    const total = Math.max(sum(known.popularity), 1);
    for (let i = 0; i < X.rows; i++) {
      const share = known.popularity[i]! / total;
      for (let k = 0; k < factors; k++) mean[k]! += share * X.data[(i + 1) * X.columns - factors + k]!;
    }
    means.set(X, mean);
  }
  return mean;
}

/** The options of V, from before they were options of both tables, too. */
export function ofRatings(settings: Settings): Settings {
  return { row_variance: 1, curvature: 1, ...settings };
}
