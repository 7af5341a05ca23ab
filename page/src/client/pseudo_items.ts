/** Which unrated items a client uploads too: `parts/pseudo_items`. */
import type { Choice } from "../engine/format";
import { similarity } from "./encoders";
import { option, rint, type Broadcast, type Device } from "./device";
import { extraRows, groupSize, selectGrouped } from "./grouped";
import { shuffled, subkey, uniform } from "./randomness";

type Select = (count: number, device: Device, broadcast: Broadcast, choice: Choice) => number[];

const SMALLEST_CLASS = 16;
const CLASSES_PER_DOUBLING = 3;
const PATIENCE = 16;

const RULES: Readonly<Record<string, Select>> = {
  none: () => [],
  random: (count, device, broadcast, choice) => {
    const items = broadcast.V.rows;
    return drawUnrated(count, device, items, setKey(device, choice, broadcast), (_, draw) => Math.floor(draw * items));
  },
  popular: selectPopular,
  similar: selectSimilar,
  matched: selectMatched,
  grouped: selectGrouped,
};

export const KNOWN_RULES = Object.keys(RULES);

/** The client's pseudo items of its first round, ascending. */
export function selectItems(device: Device, broadcast: Broadcast, choice: Choice): Int32Array {
  const extra = choice.rule === "grouped" ? extraRows(device, broadcast.known, choice) : 0;
  const count = pseudoCount(device.items.length, broadcast.V.rows, choice, extra);
  return Int32Array.from(RULES[choice.rule]!(count, device, broadcast, choice)).sort();
}

/** ρ|I_u| or k, more to fill a size class. */
export function pseudoCount(rated: number, items: number, choice: Choice, extra: number): number {
  if (choice.rule === "none" || rated === 0) return 0;
  let wanted = rint(option(choice, "ratio") * rated);
  if (choice.options["size_classes"]) {
    const together = choice.rule === "grouped" ? groupSize(choice) : 1;
    wanted = Math.ceil(sizeClass(rated + wanted) / together) * together - rated;
  }
  return Math.min(wanted + extra, items - rated);
}

/** The smallest size class that holds so many rows: 16, 21, 26, 32, 41, … */
export function sizeClass(rows: number): number {
  let size = SMALLEST_CLASS;
  for (let number = 1; size < rows; number++) size = Math.ceil(SMALLEST_CLASS * 2 ** (number / CLASSES_PER_DOUBLING) - 1e-9);
  return size;
}

/** The key of the client's set: of the round where sets are drawn anew, the same for good where they are kept. */
export function setKey(device: Device, choice: Choice, broadcast: Broadcast): bigint {
  return subkey(device.secret, "pseudo-items", choice.options["redraw"] ? broadcast.round : 0);
}

function unratedOf(device: Device, items: number): number[] {
  const rated = new Set(device.items);
  return Array.from({ length: items }, (_, item) => item).filter((item) => !rated.has(item));
}

/** The first `count` different unrated items in a keyed sequence of draws. */
function drawUnrated(count: number, device: Device, items: number, key: bigint, itemOf: (n: number, draw: number) => number): number[] {
  if (count >= items - device.items.length) return unratedOf(device, items);
  const taken = new Set<number>(device.items);
  const chosen: number[] = [];
  for (let n = 0; chosen.length < count; n++) {
    const item = itemOf(n, uniform(key, n));
    if (taken.has(item)) continue;
    taken.add(item);
    chosen.push(item);
  }
  return chosen;
}

/** In proportion to popularity; a client may have rated all that is popular, so not for ever. */
function selectPopular(count: number, device: Device, broadcast: Broadcast, choice: Choice): number[] {
  const items = broadcast.V.rows;
  const shares = new Float64Array(items);
  let total = 0;
  for (let i = 0; i < items; i++) shares[i] = total += broadcast.known.popularity[i]! + 1;
  const place = (draw: number): number => {
    let [low, high] = [0, items];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (shares[middle]! / total <= draw) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const itemOf = (n: number, draw: number): number => (n < PATIENCE * items ? place(draw) : Math.floor(draw * items));
  return drawUnrated(count, device, items, setKey(device, choice, broadcast), itemOf);
}

/** The top k unrated items by their greatest cosine with a rated one. */
function selectSimilar(count: number, device: Device, broadcast: Broadcast): number[] {
  const unrated = unratedOf(device, broadcast.V.rows);
  if (count >= unrated.length) return unrated;
  const { features } = broadcast;
  const best = new Map(unrated.map((item) => [item, device.items.reduce((most, rated) => Math.max(most, similarity(features, item, features, rated)), -1)]));
  return unrated.sort((a, b) => best.get(b)! - best.get(a)! || a - b).slice(0, count);
}

/** Items, the most popular first. */
export function byPopularity(popularity: Float64Array): number[] {
  return Array.from(popularity.keys()).sort((a, b) => popularity[b]! - popularity[a]! || a - b);
}

/** For the rated items in a secret order, again and again, an item not taken yet, about as popular and much alike. */
function selectMatched(count: number, device: Device, broadcast: Broadcast, choice: Choice): number[] {
  const items = broadcast.V.rows;
  if (count >= items - device.items.length) return unratedOf(device, items);
  const ranking = byPopularity(broadcast.known.popularity);
  const place = new Int32Array(items);
  ranking.forEach((item, at) => (place[item] = at));
  const taken = new Set<number>(device.items);
  const key = setKey(device, choice, broadcast);
  const order = shuffled(key, device.items);
  const chosen: number[] = [];
  while (chosen.length < count) {
    const rated = order[chosen.length % order.length]!;
    const own = subkey(key, rated);
    const score = (item: number): number =>
      similarity(broadcast.features, item, broadcast.features, rated) + option(choice, "noise") * uniform(own, item);
    const scored = nearestFree(place[rated]!, ranking, taken, option(choice, "window")).map((item) => [item, score(item)] as const);
    const best = scored.reduce((one, other) => (other[1] > one[1] || (other[1] === one[1] && other[0] < one[0]) ? other : one))[0];
    chosen.push(best);
    taken.add(best);
  }
  return chosen;
}

/** The items nearest in rank that are not taken, one from above and one from below in turn. */
function nearestFree(at: number, ranking: readonly number[], taken: ReadonlySet<number>, window: number): number[] {
  const side = (step: number): number[] => {
    const free: number[] = [];
    for (let place = at + step; place >= 0 && place < ranking.length && free.length < window; place += step) {
      if (!taken.has(ranking[place]!)) free.push(ranking[place]!);
    }
    return free;
  };
  const above = side(-1).map((item, turn) => [2 * turn, item] as const);
  const below = side(1).map((item, turn) => [2 * turn + 1, item] as const);
  return [...above, ...below].sort((a, b) => a[0] - b[0]).slice(0, window).map(([, item]) => item);
}
