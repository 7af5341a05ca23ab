/** What people chose: `parts/model/ials.py`. */
import { beside, columns, dot, gram, part, row, sharesOf, solve, transposedTimes, type Table } from "./linear";
import { POPULARITY, numberOf, publicColumns, regressionShares, ridgeRegression, sum, type PublicItems, type Settings } from "./public_items";

export const predictsColdItems = true;
const TIE = 1e-9;

/** X = (b_i, constant, popularity, average, content, scaled W_i). */
export function itemColumns(W: Table, known: PublicItems, settings: Settings): Table {
  const scale = numberOf(settings, "interaction_scale");
  return beside([publicColumns(known, settings), { ...W, data: W.data.map((value) => scale * value) }]);
}

/** A ridge regression of the person's ratings on public columns and W. */
export function foldIn(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Float64Array {
  const ridge = new Float64Array(X.columns - 1).fill(numberOf(settings, "noise") * known.noise);
  return ridgeRegression(X, items, ratings, ridge, new Float64Array(X.columns - 1)).mean;
}

export function weightShares(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems): Float64Array[] {
  const ridge = new Float64Array(X.columns - 1).fill(numberOf(settings, "noise") * known.noise);
  return regressionShares(X, items, ratings.map((rating, j) => rating - row(X, items[j]!)[0]!), ridge);
}

/** Weights z over X such that X·z = u·M w_i + rating weight × predicted rating + popularity weight × popularity. */
export function listWeights(
  w: Float64Array, X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems,
  recency: Float64Array | null, after = 0,
): Float64Array {
  const { W, lists, from } = choicesOf(X, settings, known, after);
  const z = w.map((value) => (recency ? 0 : lists.rating * value));
  z[POPULARITY]! += lists.popularity;
  addChoices(z, personFactors(W, items, ratings, settings, known, recency), from, lists, settings);
  return z;
}

/** For each rating what it adds to z: by what was chosen, and by the predicted rating, which has no say where lists follow. */
export function listWeightShares(
  X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems,
  recency: Float64Array | null, after = 0, ratingShares: typeof weightShares = weightShares,
): Float64Array[] {
  const { W, lists, from } = choicesOf(X, settings, known, after);
  const { G, rows, c } = equations(W, items, ratings, settings, known, recency);
  const ofRating = recency ? null : ratingShares(X, items, ratings, settings, known);
  return sharesOf(G, rows, c).map((ofChoice, k) => {
    const z = ofRating ? ofRating[k]!.map((value) => lists.rating * value) : new Float64Array(X.columns);
    addChoices(z, ofChoice, from, lists, settings);
    return z;
  });
}

function choicesOf(X: Table, settings: Settings, known: PublicItems, after: number) {
  if (!known.lists) throw new Error("model.json has no facts of lists");
  const to = X.columns - after;
  const from = to - numberOf(settings, "interaction_factors");
  return { W: choices(X, from, to, numberOf(settings, "interaction_scale")), lists: known.lists, from };
}

/** Add M u to the weights of W's columns. */
function addChoices(z: Float64Array, u: Float64Array, from: number, lists: NonNullable<PublicItems["lists"]>, settings: Settings): void {
  const scale = numberOf(settings, "interaction_scale");
  const along = lists.first.reduce((total, value, k) => total + value * u[k]!, 0);
  u.forEach((value, k) => (z[from + k]! += ((1 - lists.alike) * value + lists.alike * along * (lists.first[k] ?? 0)) / scale));
}

const unscaled = new WeakMap<Table, Table>();

/** W, as it was before it became columns of X. */
function choices(X: Table, from: number, to: number, scale: number): Table {
  let W = unscaled.get(X);
  if (!W) {
    const scaled = columns(X, from, to);
    unscaled.set(X, (W = { ...scaled, data: scaled.data.map((value) => value / scale) }));
  }
  return W;
}

/** c = 1 + γ(r − mean) of choices, 0 of ratings that are none; γ is less on coarse scales. Where lists follow, recency. */
export function confidence(rating: number, settings: Settings, known: PublicItems, recency: number | null = null): number {
  if (rating < Math.min(numberOf(settings, "from_rating"), known.mean) - TIE) return 0;
  if (recency !== null) return recency;
  return Math.max(1 + (numberOf(settings, "confidence_slope") / known.noise) * (rating - known.mean), 0);
}

/** u of (a WᵀW + Σ_chosen c w wᵀ + k Σ_i q_i w wᵀ + λI) u = Σ_chosen c w + k Σ_i q_i w. */
export function personFactors(
  W: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems, recency: Float64Array | null = null,
): Float64Array {
  const { G, rows, c, moment } = equations(W, items, ratings, settings, known, recency);
  return solve(G, transposedTimes(rows, c).map((value, k) => value + moment[k]!));
}

function equations(
  W: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings, known: PublicItems, recency: Float64Array | null,
) {
  const common = everybody(W, settings, known);
  const c = ratings.map((rating, k) => confidence(rating, settings, known, recency ? recency[k]! : null));
  const rows = part(W, items);
  const own = gram(rows, c);
  const choicesTotal = sum(c) + numberOf(settings, "unobserved_weight") * W.rows;
  const ridge = numberOf(settings, recency ? "following_ridge" : "interaction_ridge") * Math.sqrt(choicesTotal);
  const d = W.columns;
  const G = { ...own, data: own.data.map((value, at) => value + common.gram.data[at]! + (at % (d + 1) === 0 ? ridge : 0)) };
  return { G, rows, c, moment: common.moment };
}

interface Common {
  readonly gram: Table;
  readonly moment: Float64Array;
}
const commons = new WeakMap<Table, Common>();

/** The part of a person's normal equations that is the same for all, and public. */
function everybody(W: Table, settings: Settings, known: PublicItems): Common {
  let common = commons.get(W);
  if (!common) {
    const a = numberOf(settings, "unobserved_weight");
    const k = numberOf(settings, "popular_choices");
    const total = Math.max(sum(known.popularity), 1);
    const moment = transposedTimes(W, known.popularity.map((count) => (k * count) / total));
    common = { gram: gram(W, known.popularity.map((count) => a + (k * count) / total)), moment };
    commons.set(W, common);
  }
  return common;
}

/** c_i (1 − s_i) u, the gradient of a chosen item's row. */
export function choiceGradient(w: Float64Array, u: Float64Array, c: number): Float64Array {
  const left = c * (1 - dot(w, u));
  return u.map((value) => left * value);
}
