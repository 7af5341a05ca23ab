/** Reading an upload of a model that takes steps: the rating scale gives the length of U. `audit/attacks/_reading.py`. */
import { dot, row, table, times, type Table } from "../engine/linear";
import { numberOf, type Settings } from "../engine/public_items";
import { commonDirection, onScale, type Solved } from "./solved";

const SMALLEST = 1e-3;
const LARGEST = 30;
const LEAST_MEAN = 1.2;
const MOST_MEAN = 4.95;
const COARSE = 0.04;
const FINE = 0.002;
const REFINED = 8;
const DISCOUNT = 0.7;
const SMALL = 0.02;

type RatingsAt = (unknown: number) => Float64Array;

/** Δ/(K η_L) + λV: for K = 1 it is e_i·U, row by row; for more epochs about their mean. */
function gradientRows(delta: Table, V: Table, settings: Settings, round: number): Table {
  const rate = numberOf(settings, "local_epochs") * localRate(settings, round);
  const regularisation = numberOf(settings, "regularisation");
  return { ...delta, data: delta.data.map((value, at) => value / rate + regularisation * V.data[at]!) };
}

function localRate(settings: Settings, round: number): number {
  return numberOf(settings, "learning_rate") * numberOf(settings, "learning_rate_decay") ** round;
}

/** Mean over K epochs of how much is left of an error that each epoch shrinks by 1 − η_L|U|². */
function fading(squared: number, rate: number, epochs: number): number {
  const keep = Math.min(Math.max(1 - rate * squared, -0.9), 1);
  let total = 0;
  for (let k = 0; k < epochs; k++) total += keep ** k;
  return Math.max(total / epochs, 1e-3);
}

/** w and e by the rating scale, one number being unknown. X has V's columns first, then the constant. */
export function scan(delta: Table, V: Table, X: Table, settings: Settings, round: number, biases: boolean, step: number): Solved {
  const A = gradientRows(delta, V, settings, round);
  const fade = (squared: number): number => fading(squared, localRate(settings, round), numberOf(settings, "local_epochs"));
  const w = new Float64Array(X.columns);
  if (biases) return withBias(A, X, w, numberOf(settings, "factors"), fade, step);
  const direction = commonDirection(A);
  const c = times(A, direction);
  const v = times({ ...X, rows: X.rows }, pad(direction, X.columns));
  const at: RatingsAt = (s) => c.map((value, j) => value / (s * fade(s * s)) + s * v[j]!);
  const s = best(candidates(at, step), at, step, 0);
  direction.forEach((value, k) => (w[k] = s * value));
  return { w, errors: c.map((value) => value / (s * fade(s * s))) };
}

/** An item bias shows e outright; what is left is the user's own bias. */
function withBias(A: Table, X: Table, w: Float64Array, factors: number, fade: (squared: number) => number, step: number): Solved {
  const shown = Float64Array.from({ length: A.rows }, (_, j) => A.data[j * A.columns + factors]!);
  w[factors] = 1;
  const size = Math.max(dot(shown, shown), 1e-300);
  for (let k = 0; k < factors; k++) {
    let sum = 0;
    for (let j = 0; j < A.rows; j++) sum += A.data[j * A.columns + k]! * shown[j]!;
    w[k] = sum / size;
  }
  const e = shown.map((value) => value / fade(dot(w.subarray(0, factors + 1), w.subarray(0, factors + 1))));
  const base = times(X, w).map((value, j) => value + e[j]!);
  const grid: number[] = [];
  for (let b = -2; b < 2; b += 0.25 * COARSE * step) grid.push(b);
  w[X.columns - 1] = best(grid, (b) => base.map((value) => value + b), step, SMALL * e.length);
  return { w, errors: e };
}

function pad(values: Float64Array, length: number): Float64Array {
  const padded = new Float64Array(length);
  padded.set(values);
  return padded;
}

/** Lengths of w, of either sign, for which the mean rating is plausible, close enough to each other for a scan. */
function candidates(at: RatingsAt, step: number): number[] {
  const positive: number[] = [];
  for (let n = 0, log = Math.log(SMALLEST); log < Math.log(LARGEST); n++, log = Math.log(SMALLEST) + n * 0.25 * COARSE * step) positive.push(Math.exp(log));
  const all = [...positive, ...positive.map((s) => -s)];
  const means = all.map((s) => mean(at(s)));
  const plausible = all.filter((_, n) => means[n]! > LEAST_MEAN && means[n]! < MOST_MEAN);
  if (plausible.length) return plausible;
  const order = Array.from(all.keys()).sort((a, b) => Math.abs(means[a]! - 3.5) - Math.abs(means[b]! - 3.5));
  return order.slice(0, 50).map((n) => all[n]!);
}

function mean(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}

/** The candidate whose ratings lie on the scale, or nearest to it: a scan, then the best few made exact. */
function best(all: readonly number[], at: RatingsAt, step: number, small: number): number {
  const hit = all.map((x) => hits(at(x), COARSE, step) - small * Math.abs(x));
  const order = Array.from(all.keys()).sort((a, b) => hit[b]! - hit[a]! || a - b);
  const few = order.slice(0, REFINED).map((n) => all[n]!);
  const both = [...few.map((x) => refine(x, at, step)), ...few];
  let [found, most] = [both[0]!, -Infinity];
  for (const x of both) {
    const ratings = at(x);
    const fit = hits(ratings, FINE, step) + hits(ratings, COARSE, step) - small * Math.abs(x);
    if (fit > most) [found, most] = [x, fit];
  }
  return found;
}

/** How many ratings lie on the scale, softly; those on the most frequent level count for less. */
function hits(ratings: Float64Array, width: number, step: number): number {
  const levels = Math.round(4 / step) + 1;
  const onLevel = new Float64Array(levels);
  for (const rating of ratings) {
    const level = Math.min(Math.max(Math.round((rating - 1) / step), 0), levels - 1);
    onLevel[level]! += Math.exp(-0.5 * ((rating - 1 - step * level) / (width * step)) ** 2);
  }
  return onLevel.reduce((total, value) => total + value, 0) - DISCOUNT * Math.max(...onLevel);
}

/** Gauss–Newton on the one unknown, over the rows that already lie near the scale. */
function refine(start: number, at: RatingsAt, step: number): number {
  let x = start;
  for (const width of [4 * COARSE, 2 * COARSE, COARSE, FINE, FINE]) {
    const delta = 1e-6 * Math.max(Math.abs(x), 1e-3);
    const now = at(x);
    const moved = at(x + delta);
    let [up, down] = [0, 0];
    now.forEach((rating, j) => {
      const slope = (moved[j]! - rating) / delta;
      const off = onScale(rating, step) - rating;
      const weight = Math.exp(-0.5 * (off / (width * step)) ** 2);
      up += weight * slope * off;
      down += weight * slope * slope;
    });
    x += up / Math.max(down, 1e-12);
  }
  return Math.sign(x) === Math.sign(start) && Math.abs(x) > 1e-6 ? x : start;
}

export function columnsOf(V: Table, items: Int32Array, biases: boolean, factors: number, meanRating: number): Table {
  const X = table(items.length, V.columns + 1);
  items.forEach((item, j) => {
    X.data.set(row(V, item), j * X.columns);
    if (biases) X.data[j * X.columns + factors]! += meanRating;
    X.data[(j + 1) * X.columns - 1] = 1;
  });
  return X;
}
