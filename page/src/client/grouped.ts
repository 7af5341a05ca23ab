/** The rest of each rated item's public group: `parts/pseudo_items/grouped.py`. */
import type { Choice } from "../engine/format";
import { unitRows, type Table } from "../engine/linear";
import type { PublicItems } from "../engine/public_items";
import { similarity } from "./encoders";
import { option, rounded, type Broadcast, type Device } from "./device";
import { byPopularity, setKey } from "./pseudo_items";
import { shuffled, subkey, uniform } from "./randomness";

/** 1 + ρ, at least a pair. */
export function groupSize(choice: Choice): number {
  return 1 + Math.max(1, Math.ceil(option(choice, "ratio")));
}

const partitions = new WeakMap<PublicItems, Int32Array>();
const units = new WeakMap<PublicItems, Table>();

/** The unrated items of all groups that hold a rated one; then whole other groups, until there are `count`. */
export function selectGrouped(count: number, device: Device, broadcast: Broadcast, choice: Choice): number[] {
  const group = groups(broadcast.known, choice);
  const rated = new Set<number>(device.items);
  const touched = [...new Set(Array.from(device.items, (item) => group[item]!))].sort((a, b) => a - b);
  const inside = new Set(touched);
  const chosen = Array.from(group.keys()).filter((item) => !rated.has(item) && inside.has(group[item]!));
  const key = setKey(device, choice, broadcast);
  if (chosen.length > count) return shuffled(subkey(key, "few"), Int32Array.from(chosen)).slice(0, count);
  return [...chosen, ...decoyGroups(count - chosen.length, touched, group, broadcast.known, key, choice)];
}

/** How many rows more the last group has than others, for an upload that touches it. */
export function extraRows(device: Device, known: PublicItems, choice: Choice): number {
  const group = groups(known, choice);
  const last = group.reduce((most, each) => Math.max(most, each), 0);
  const size = group.reduce((total, each) => total + Number(each === last), 0);
  return device.items.some((item) => group[item] === last) ? size % groupSize(choice) : 0;
}

/** The group of each item: groups follow each other in order of popularity. */
function groups(known: PublicItems, choice: Choice): Int32Array {
  const before = partitions.get(known);
  if (before) return before;
  const items = known.popularity.length;
  const size = groupSize(choice);
  const window = option(choice, "window");
  const cost = option(choice, "popularity_cost");
  const level = known.popularity.map((count) => Math.log1p(count));
  const coming = byPopularity(known.popularity);
  const group = new Int32Array(items);
  let waiting = coming.slice(0, window + 1);
  let at = Math.min(window + 1, items);
  let number = 0;
  while (waiting.length + items - at >= 2 * size || number === 0) {
    const leader = waiting[0]!;
    const costs = waiting.slice(1).map((item) => [item, rounded(cost * (level[leader]! - level[item]!) - likeness(known, leader, item, choice))] as const);
    const nearest = [...costs].sort((a, b) => a[1] - b[1]).slice(0, size - 1); // stable: of equals the first
    const taken = new Set([leader, ...nearest.map(([item]) => item)]);
    taken.forEach((item) => (group[item] = number));
    waiting = waiting.filter((item) => !taken.has(item));
    const more = window + 1 - waiting.length;
    waiting = waiting.concat(coming.slice(at, at + more));
    at = Math.min(at + more, items);
    number += 1;
  }
  const rest = waiting.concat(coming.slice(at));
  rest.forEach((item) => (group[item] = rest.length >= size ? number : number - 1));
  partitions.set(known, group);
  return group;
}

/** How alike items are by the catalogue: cosine of contents, and whether they are of the same year, softly. */
function likeness(known: PublicItems, one: number, other: number, choice: Choice): number {
  let unit = units.get(known);
  if (!unit) units.set(known, (unit = unitRows(known.content)));
  let alike = similarity(unit, one, unit, other);
  if (known.years.length) {
    const [first, second] = [known.years[one]!, known.years[other]!];
    if (first > 0 && second > 0) alike += option(choice, "year_weight") * Math.exp(-0.25 * (first - second) ** 2);
  }
  return rounded(alike);
}

/** Items of whole untouched groups, each alike to a touched one drawn at random and about as popular. */
function decoyGroups(count: number, touched: readonly number[], group: Int32Array, known: PublicItems, key: bigint, choice: Choice): number[] {
  const members: number[][] = [];
  group.forEach((each, item) => (members[each] ??= []).push(item));
  const left = new Set(members.keys());
  touched.forEach((each) => left.delete(each));
  const last = members.length - 1;
  let heldBack = left.has(last) && group.length % groupSize(choice) > 0;
  if (heldBack) left.delete(last);
  const window = known.content.columns || known.years.length ? option(choice, "decoy_window") : 1;
  const chosen: number[] = [];
  for (let draw = 0; chosen.length < count && (heldBack || left.size); draw++) {
    if (!left.size) {
      left.add(last);
      heldBack = false;
    }
    const anchor = uniform(subkey(key, "groups"), 2 * draw);
    const side = uniform(subkey(key, "groups"), 2 * draw + 1);
    const middle = touched[Math.floor(anchor * touched.length)]!;
    const distance = (each: number): number => Math.abs(each - middle) + (each < middle === side < 0.5 ? 0 : 0.5);
    const free = [...left].sort((a, b) => a - b);
    const near = free.sort((a, b) => distance(a) - distance(b)).slice(0, window);
    const alike = subkey(key, "alike", draw);
    const leader = members[middle]![0]!;
    let best = near[0]!;
    let most = -Infinity;
    for (const each of near) {
      const score = likeness(known, leader, members[each]![0]!, choice) + option(choice, "noise") * uniform(alike, each);
      if (score > most) [best, most] = [each, score];
    }
    left.delete(best);
    chosen.push(...members[best]!.slice(0, count - chosen.length));
  }
  return chosen;
}
