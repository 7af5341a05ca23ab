/** What everybody knows of the items, and the columns that models make of it: `parts/model/_public.py`. */
import { beside, cholesky, columns, dot, gram, part, row, sharesOf, solveFactored, table, transposedTimes, unitRows, type Table } from "./linear";

/** What everybody's list score has in common: `mixing_weights` and `likeness_of_components` in `parts/model/ials.py`. */
export interface ListFacts {
  readonly rating: number;
  readonly popularity: number;
  /** α of M = (1 − α)I + α f fᵀ */
  readonly alike: number;
  /** f; empty where α is 0 */
  readonly first: readonly number[];
}

export interface PublicItems {
  /** items × features from the catalogue; no columns where there is none */
  readonly content: Table;
  readonly popularity: Float64Array;
  /** mean ratings in standard units; empty where nobody publishes them */
  readonly average: Float64Array;
  /** 0 where not known; empty where there is no catalogue */
  readonly years: Float64Array;
  readonly mean: number;
  readonly noise: number;
  readonly lists?: ListFacts | null;
}

export type Settings = Readonly<Record<string, number | string | boolean>>;

export function numberOf(settings: Settings, name: string): number {
  const value = settings[name];
  if (typeof value !== "number") throw new Error(`the model's settings have no ${name}`);
  return value;
}

/** the column of X that has the popularity of items */
export const POPULARITY = 2;
const MOST_CONTENT = 32;
const FARTHEST = 3.0;

export function averages(known: PublicItems): Float64Array {
  return known.average.length ? known.average : new Float64Array(known.popularity.length).fill(known.mean);
}

export interface Weights {
  readonly mean: Float64Array;
  /** the covariance's factor: S = noise · (L Lᵀ)⁻¹ over all weights but the first */
  readonly factor: Table;
}

/** A person's weights, given ratings of some items; the first column is the baseline, whose weight is 1. */
export function ridgeRegression(
  X: Table, items: ArrayLike<number>, ratings: Float64Array, ridge: Float64Array, prior: Float64Array,
): Weights {
  const A = part(X, items, 1);
  const G = gram(A);
  for (let k = 0; k < ridge.length; k++) G.data[k * ridge.length + k]! += ridge[k]!;
  const residuals = ratings.map((rating, j) => rating - X.data[items[j]! * X.columns]! - dot(row(A, j), prior));
  const factor = cholesky(G);
  const moved = solveFactored(factor, transposedTimes(A, residuals));
  const mean = new Float64Array(ridge.length + 1);
  mean[0] = 1;
  for (let k = 0; k < ridge.length; k++) mean[k + 1] = prior[k]! + moved[k]!;
  return { mean, factor };
}

/** For each target what it adds to the mean of `ridgeRegression`. */
export function regressionShares(X: Table, items: ArrayLike<number>, targets: Float64Array, ridge: Float64Array): Float64Array[] {
  const A = part(X, items, 1);
  const G = gram(A);
  ridge.forEach((value, k) => (G.data[k * ridge.length + k]! += value));
  return sharesOf(G, A, targets).map((share) => Float64Array.of(0, ...share));
}

/** The baseline, popularity and average with unit variance over ratings, and the catalogue as unit rows. */
export function features(known: PublicItems): { baseline: Float64Array; popularity: Float64Array; average: Float64Array; content: Table } {
  const baseline = averages(known);
  const counts = known.popularity;
  const content = mostRated(unitRows(known.content), counts);
  return { baseline, popularity: standardised(counts.map(Math.log1p), counts), average: standardised(baseline, counts), content };
}

/** The columns that nothing is learnt of: the baseline, and what everybody knows besides. */
export function publicColumns(known: PublicItems, settings: Settings): Table {
  const { baseline, popularity, average, content } = features(known);
  const scale = numberOf(settings, "public_scale");
  const head = table(baseline.length, 4);
  const bias = numberOf(settings, "bias_scale");
  for (let i = 0; i < baseline.length; i++) {
    head.data.set([baseline[i]!, bias, scale * popularity[i]!, scale * average[i]!], 4 * i);
  }
  const scaled = { ...content, data: content.data.map((value) => scale * value) };
  return beside([head, scaled]);
}

/** The columns of a catalogue that most ratings meet. */
function mostRated(content: Table, counts: Float64Array): Table {
  if (content.columns <= MOST_CONTENT) return content;
  const met = transposedTimes(content, counts);
  const order = Array.from(met.keys()).sort((a, b) => met[b]! - met[a]! || a - b);
  const most = order.slice(0, MOST_CONTENT).sort((a, b) => a - b);
  return beside(most.map((k) => columns(content, k, k + 1)));
}

/** Mean 0 and variance 1 over all ratings; zero where all items are the same. */
function standardised(values: Float64Array, counts: Float64Array): Float64Array {
  const total = Math.max(sum(counts), 1);
  const mean = dot(counts, values) / total;
  const centred = values.map((value) => value - mean);
  const deviation = Math.sqrt(dot(counts, centred.map((value) => value * value)) / total);
  if (deviation < 1e-9) return new Float64Array(values.length);
  return centred.map((value) => Math.min(Math.max(value / deviation, -FARTHEST), FARTHEST));
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}
