/** A newcomer's weights, predictions, list and reasons: `training/recommender.py` and `training/lists.py`. */
import { dot, row, times } from "./linear";
import type { Scale, SharedModel } from "./format";
import { averages } from "./public_items";
import { recencyWeights } from "./recency";

export type By = "list" | "rating";

export interface Person {
  readonly model: SharedModel;
  /** rated items, by number */
  readonly items: Int32Array;
  /** in standard units */
  readonly ratings: Float64Array;
  readonly w: Float64Array;
  /** weights for lists; null where predicted ratings rank */
  readonly z: Float64Array | null;
}

export interface Reason {
  readonly item: number;
  /** what this rating adds to the recommended item's score */
  readonly contribution: number;
}

const LOW = 1;
const HIGH = 5;
const REASONS = 3;
/** pseudo-ratings that damp how far a person's ratings are from the items' averages, and these from everybody's mean */
const CLIENT_PRIOR = 5;
const ITEMS_PRIOR = 20;

export function standardise(scale: Scale, rating: number): number {
  return LOW + ((HIGH - LOW) * (rating - scale.low)) / (scale.high - scale.low);
}

/** Standard units as a rating, clipped to the scale. */
export function restore(scale: Scale, standard: number): number {
  const rating = scale.low + ((scale.high - scale.low) * (standard - LOW)) / (HIGH - LOW);
  return Math.min(Math.max(rating, scale.low), scale.high);
}

/** Whether the model can say something about an item. */
export function knows(model: SharedModel, item: number): boolean {
  const { content, popularity } = model.known;
  return popularity[item]! > 0 || (model.rule.predictsColdItems && row(content, item).some((feature) => feature !== 0));
}

/** A person with these ratings (item number → rating on the data's scale, the latest last). */
export function foldIn(model: SharedModel, ratings: ReadonlyMap<number, number>): Person {
  const items = Int32Array.from(ratings.keys());
  const standard = Float64Array.from(ratings.values(), (rating) => standardise(model.facts.scale, rating));
  return { model, items, ratings: standard, ...weights(model, knownChoices(model, items, standard)) };
}

function weights(model: SharedModel, { items, ratings, recency }: Choices): { w: Float64Array; z: Float64Array | null } {
  const { rule, X, settings, known } = model;
  const w = rule.foldIn(X, items, ratings, settings, known);
  if (!rule.listWeights || !model.facts.scores_lists) return { w, z: null };
  return { w, z: items.length ? rule.listWeights(w, X, items, ratings, settings, known, recency) : new Float64Array(w.length) };
}

interface Choices {
  readonly items: Int32Array;
  readonly ratings: Float64Array;
  /** what each weighs in lists; null: all alike */
  readonly recency: Float64Array | null;
}

/** Of what a person chose, the items that the model knows. */
function knownChoices(model: SharedModel, items: Int32Array, ratings: Float64Array): Choices {
  const places = Array.from(items.keys()).filter((j) => knows(model, items[j]!));
  const recency = recencyWeights(items.length, model.settings);
  return {
    items: Int32Array.from(places, (j) => items[j]!),
    ratings: Float64Array.from(places, (j) => ratings[j]!),
    recency: recency && Float64Array.from(places, (j) => recency[j]!),
  };
}

/** Predictions for all items in standard units. */
export function rawRatings(person: Person): Float64Array {
  const mend = mender(person);
  return times(person.model.X, person.w).map((raw, item) => mend(raw, item));
}

/** Predicted ratings of some items, on the data's scale: where few are shown, all others need not be computed. */
export function predictedRatings(person: Person, items: readonly number[]): number[] {
  const mend = mender(person);
  return items.map((item) => restore(person.model.facts.scale, mend(dot(row(person.model.X, item), person.w), item)));
}

/** An item nobody rated gets the person's mean, or half of it; to a person without ratings, items get theirs. */
function mender(person: Person): (raw: number, item: number) => number {
  const { model } = person;
  const { known } = model;
  const means = averages(known);
  if (person.ratings.length === 0) return (_, item) => means[item]!;
  const mean = meanOf(person, means);
  return (raw, item) => (known.popularity[item]! > 0 ? raw : knows(model, item) ? (raw + mean) / 2 : mean);
}

/** How a person rates: everybody's mean, the person's bias, and how good the items are that it meets, both damped. */
function meanOf({ model, items, ratings }: Person, means: Float64Array): number {
  const met = items.reduce((total, item) => total + means[item]! - model.known.mean, 0);
  const rated = ratings.reduce((total, rating) => total + rating - model.known.mean, 0);
  return model.known.mean + (rated - met) / (ratings.length + CLIENT_PRIOR) + met / (ratings.length + ITEMS_PRIOR);
}

/** What ranks all items; of a person without ratings nothing is known, and popularity ranks. */
export function scores(person: Person, by: By): Float64Array {
  const { model } = person;
  if (by === "list" && !person.items.some((item) => knows(model, item))) return Float64Array.from(model.known.popularity);
  if (!person.z || by === "rating") return rawRatings(person);
  const found = times(model.X, person.z);
  const least = found.reduce((low, value) => Math.min(low, value), Infinity);
  return found.map((score, item) => (knows(model, item) ? score : least));
}

/** The n best wanted items, best first; of equals the more popular, then the one that comes first. */
export function top(ranked: Float64Array, popularity: Float64Array, n: number, wanted: (item: number) => boolean): number[] {
  const better = (a: number, b: number): boolean =>
    ranked[a]! !== ranked[b]! ? ranked[a]! > ranked[b]! : popularity[a]! !== popularity[b]! ? popularity[a]! > popularity[b]! : a < b;
  const best: number[] = [];
  for (let item = 0; item < ranked.length; item++) {
    if (best.length === n && !better(item, best[n - 1]!)) continue;
    if (!wanted(item)) continue;
    let low = 0;
    for (let high = best.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (better(best[middle]!, item)) low = middle + 1;
      else high = middle;
    }
    best.splice(low, 0, item);
    if (best.length > n) best.pop();
  }
  return best;
}

/** For each wanted item, the own ones that add most to its score: weights are a sum over ratings, and so is a score. */
export function reasons(person: Person, wanted: readonly number[], by: By): Reason[][] {
  const { model } = person;
  const { rule, X, settings, known } = model;
  const own = knownChoices(model, person.items, person.ratings);
  const shares =
    by === "list" && person.z && rule.listWeightShares
      ? rule.listWeightShares(X, own.items, own.ratings, settings, known, own.recency)
      : rule.weightShares(X, own.items, own.ratings, settings, known);
  return wanted.map((item) =>
    shares
      .map((share, place) => ({ item: own.items[place]!, contribution: dot(row(X, item), share) }))
      .filter((reason) => reason.contribution > 0)
      .sort((a, b) => b.contribution - a.contribution)
      .slice(0, REASONS),
  );
}
