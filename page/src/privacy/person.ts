/** What one person may contribute: `parts/privacy/_budget.py` and `_statistics.py`. */
import { table } from "../engine/linear";
import type { Contribution } from "../secure/ring";
import { number, type Part } from "../wire/settings";

/** Of `clip`: what a person whose update is clipped adds beside it. */
export const CLIPPED_SHARE = 0.1;
const COUNT_SHARE = 0.8;
const TYPICAL = 0.7;
const PERSON_SHARE = 0.1;
const OWN_PRIOR = 10;
const USUAL = 3.5;
const BELOW = 1 - 1e-12; // so that rounding can't lift a norm over its bound

/** √(cap/n), at most 1. */
function personWeight(ratings: number, cap: number): number {
  return Math.sqrt(cap / Math.max(ratings, cap));
}

/** The upload weighed by the person's size and clipped: with what is counted, rows and statistic have norm `clip` at most. */
export function bounded(upload: Contribution, privacy: Part): Contribution {
  const weight = personWeight(upload.items.length, number(privacy, "cap"));
  const finite = (value: number): number => (Number.isFinite(value) ? weight * value : 0);
  const [delta, statistic] = [upload.delta.data.map(finite), upload.statistic.map(finite)];
  const norm = Math.sqrt(squares(delta) + squares(statistic));
  const most = number(privacy, "clip") * Math.sqrt(1 - CLIPPED_SHARE ** 2);
  const clipped = norm > most;
  const factor = clipped ? (most / norm) * BELOW : 1;
  return { ...upload, delta: { ...upload.delta, data: delta.map((value) => factor * value) }, statistic: statistic.map((value) => factor * value), weight: 0, clipped };
}

/** The norm that a contribution to the statistics is clipped to. */
export function statisticsNorm(cap: number): number {
  return Math.sqrt(cap * (TYPICAL ** 2 * (1 + COUNT_SHARE ** 2) + 2 * PERSON_SHARE ** 2));
}

/** A person's counts and residuals, and two numbers beside them. */
export function statisticsOf(items: Int32Array, ratings: Float64Array, cap: number): Contribution {
  const own = (ratings.reduce((total, rating) => total + rating, 0) + OWN_PRIOR * USUAL) / (ratings.length + OWN_PRIOR);
  const weight = personWeight(items.length, cap);
  const delta = table(items.length, 2);
  ratings.forEach((rating, place) => delta.data.set([COUNT_SHARE * weight, weight * (rating - own)], 2 * place));
  const person = PERSON_SHARE * Math.sqrt(cap);
  const statistic = Float64Array.of(person, person * Math.min(Math.max(own - USUAL, -1), 1));
  const [norm, most] = [Math.sqrt(squares(delta.data) + squares(statistic)), statisticsNorm(cap)];
  const factor = norm > most ? (most / norm) * BELOW : 1;
  return { items, delta: { ...delta, data: delta.data.map((value) => factor * value) }, weight: 0, statistic: statistic.map((value) => factor * value) };
}

function squares(values: Float64Array): number {
  return values.reduce((total, value) => total + value * value, 0);
}
