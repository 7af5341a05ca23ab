/** Fixed-point numbers in a ring, over whole tables: `parts/channel/_ring.py` and `_summing.py`. */
import { rint } from "../client/device";
import { subkey, uniform } from "../client/randomness";
import type { Table } from "../engine/linear";
import type { Catalogue } from "../wire/catalogue";
import { Refusal } from "../wire/packet";
import { number, section, type TrainingConfig } from "../wire/settings";

export const WEIGHT_BITS = 32;
const SLACK = 1.25;
const SPARE = 16;

/** The shape of a vector. */
export interface RingLayout {
  readonly items: number;
  readonly columns: number;
  readonly bits: number;
  readonly statisticSize: number;
  /** whether a vector has a weight for each row */
  readonly weights: boolean;
}

/** The options of a ring: the channel's, or those of the statistics' sum. */
export interface RingOptions {
  readonly bound: number;
  readonly largestWeight: number;
  readonly statisticBound: number;
  readonly fewestContributors: number;
}

/** What everybody knows of a sum's fixed-point numbers. */
export interface Encoding {
  readonly layout: RingLayout;
  readonly options: RingOptions;
  /** steps per unit, for each item; 0 where the item is left out */
  readonly scales: Float64Array;
  readonly weightScale: number;
  readonly statisticScale: number;
  /** what a clipped person adds beside the statistic */
  readonly clippedUnit: number;
}

/** One person's contribution. */
export interface Contribution {
  readonly items: Int32Array;
  readonly delta: Table;
  /** null counts once */
  readonly weight: number | null;
  readonly statistic: Float64Array;
  /** whether it was clipped to a budget's norm */
  readonly clipped?: boolean;
}

/** Integers modulo 2^bits. */
export interface RingVector {
  readonly moves: Uint32Array | Uint16Array;
  readonly weights: Uint32Array;
}

/** What counts are of: the figures that a ring's range follows from. */
export type Figures = Pick<Catalogue, "source" | "epsilon" | "people"> & { readonly popularity: Float64Array };

export function ringOptions(config: TrainingConfig): RingOptions {
  const channel = section(config, "channel");
  return {
    bound: number(channel, "bound"), largestWeight: number(channel, "largest_weight"),
    statisticBound: number(channel, "statistic_bound"), fewestContributors: number(channel, "fewest_contributors"),
  };
}

export function zeros(layout: RingLayout): RingVector {
  const size = layout.items * layout.columns;
  const weights = new Uint32Array((layout.weights ? layout.items : 0) + layout.statisticSize + 3);
  return { moves: layout.bits === 16 ? new Uint16Array(size) : new Uint32Array(size), weights };
}

/** Scales such that everybody's contributions at the bound don't wrap around; `noise` is the room for the devices' own. */
export function encodingFor(layout: RingLayout, figures: Figures, cohort: number, options: RingOptions, noise: number, clippedUnit = options.statisticBound): Encoding {
  const exact = (figures.source === "participants" || figures.source === "secure-sum") && figures.epsilon === null;
  const people = figures.people || cohort;
  const share = Math.min(cohort, people) / Math.max(people, 1); // how many a cohort is, any node of it can exaggerate
  const scales = figures.popularity.map((count) => {
    const most = exact ? Math.min(Math.ceil(SLACK * Math.max(count, 0)) + SPARE, Math.max(cohort, 1)) : Math.max(cohort, 1);
    const reached = layout.bits < WEIGHT_BITS ? ofBothSigns(most) : most;
    const levels = Math.floor((2 ** (layout.bits - 1) - 1) / Math.max(reached + noise, 1));
    if (levels < 1) throw new Refusal("sum", `a cohort of ${cohort} has no room in ${layout.bits} bits`);
    return count * share < options.fewestContributors ? 0 : levels / options.bound;
  });
  const ofAll = Math.floor((2 ** (WEIGHT_BITS - 1) - 1) / Math.max(cohort + noise, 1));
  const weightScale = ofAll / options.largestWeight;
  return { layout, options, scales, weightScale: weightScale >= 1 ? Math.floor(weightScale) : weightScale, statisticScale: ofAll / options.statisticBound, clippedUnit };
}

/** How many contributions at the bound a sum of so many reaches, where they are of both signs. */
function ofBothSigns(most: number): number {
  return Math.min(most, Math.ceil(Math.max(2 * Math.sqrt(most), most / 16)));
}

/** One person's contribution as ring numbers; numbers beyond the bounds are clipped. */
export function encode(upload: Contribution, encoding: Encoding, roundingKey: bigint): RingVector {
  const { layout, options, scales } = encoding;
  const vector = zeros(layout);
  const steps = Math.max(within(upload.weight ?? 1, options.largestWeight), 0) * encoding.weightScale;
  const key = subkey(roundingKey, 0);
  upload.items.forEach((item, place) => {
    for (let k = 0; k < layout.columns; k++) {
      const move = within(upload.delta.data[place * layout.columns + k]!, options.bound) * scales[item]!;
      const at = item * layout.columns + k;
      vector.moves[at] = layout.bits < WEIGHT_BITS ? Math.floor(move + uniform(key, at)) : rint(move);
    }
    if (layout.weights) vector.weights[item] = rint(scales[item]! > 0 ? steps : 0);
  });
  const beside = vector.weights.length - layout.statisticSize - 3;
  upload.statistic.forEach((value, place) => (vector.weights[beside + place] = rint(within(value, options.statisticBound) * encoding.statisticScale)));
  vector.weights[beside + layout.statisticSize] = isClipped(upload, options) ? rint(encoding.clippedUnit * encoding.statisticScale) : 0;
  vector.weights.set([rint(steps), 1], vector.weights.length - 2);
  return vector;
}

/** Whether a number of this upload is clipped, here or before. */
function isClipped({ delta, statistic, weight, clipped }: Contribution, { bound, statisticBound, largestWeight }: RingOptions): boolean {
  const beyond = (value: number, most: number): boolean => !(Math.abs(value) <= most);
  const own = weight ?? 1;
  const weighs = !(own >= 0 && own <= largestWeight);
  return clipped || weighs || delta.data.some((value) => beyond(value, bound)) || statistic.some((value) => beyond(value, statisticBound));
}

/** Both sections, little-endian. */
export function vectorBytes({ moves, weights }: RingVector): Uint8Array {
  const bytes = new Uint8Array(moves.byteLength + weights.byteLength);
  bytes.set(new Uint8Array(moves.buffer));
  bytes.set(new Uint8Array(weights.buffer), moves.byteLength);
  return bytes;
}

/** The fewest persons whose sums of so many columns are not taken apart. */
export function leastPersons(columns: number): number {
  return Math.max(3 * columns, 100);
}

function within(value: number, bound: number): number {
  return Number.isNaN(value) ? 0 : Math.min(Math.max(value, -bound), bound);
}
