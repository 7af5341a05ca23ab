/** How much a choice counts in the list of what comes next: `parts/recency.py`. */
import type { Settings } from "./public_items";

const LEAST = 0.03;

/** .03 + .97 exp(−age/decay) of choices in their order, the latest last; null where the model follows no order. */
export function recencyWeights(choices: number, settings: Settings): Float64Array | null {
  const decay = Number(settings["recency"] ?? 0);
  if (!(decay > 0)) return null;
  return Float64Array.from({ length: choices }, (_, place) => LEAST + (1 - LEAST) * Math.exp(-(choices - 1 - place) / decay));
}
