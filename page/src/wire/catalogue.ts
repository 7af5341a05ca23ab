/** What everybody may know of the items: `deploy/wire/catalogue.py`. */
import { table } from "../engine/linear";
import type { Scale } from "../engine/format";
import type { PublicItems } from "../engine/public_items";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { bytesArray, digestOf, numbersOf, quoted, Refusal, type Packet, type WireArray } from "./packet";

const TABLES = ["content", "popularity", "average", "years"] as const;
const OPTIONAL: readonly string[] = ["average", "years"];
const SOURCES: readonly string[] = ["participants", "secure-sum", "public"];
const ON_GRID = 1e-4;

export interface Catalogue {
  readonly digest: string;
  readonly ids: readonly string[];
  /** none where there are none */
  readonly titles: readonly string[];
  readonly scale: Scale;
  /** as the server writes it */
  readonly scaleText: string;
  readonly known: PublicItems;
  readonly source: string;
  /** what figures cost their people; null where they are exact */
  readonly epsilon: number | null;
  readonly people: number;
  readonly arrays: Packet["arrays"];
}

/** The catalogue in these arrays; a refusal where they are none. */
export function catalogueOf(arrays: Packet["arrays"]): Catalogue {
  try {
    return read(arrays);
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw new Refusal("request", `the server's catalogue makes no sense: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** It as it was when it had so many items: those that come later are added at the end. */
export function firstItems(catalogue: Catalogue, count: number): Catalogue {
  const { ids, titles, arrays } = catalogue;
  if (count >= ids.length) return catalogue;
  const named = (many: number): string => `{"ids": ${listed(ids.slice(0, many))}, "titles": ${listed(titles.slice(0, many))}`;
  const about = new TextDecoder().decode(arrays["about"]!.content);
  demand(about.startsWith(named(ids.length)), "facts in another order");
  const first = about.slice(named(ids.length).length);
  const tables = TABLES.map((name) => [name, firstRows(arrays[name]!, ids.length, count)]);
  return read({ ...Object.fromEntries(tables), about: bytesArray(utf8ToBytes(named(count) + first)) } as Packet["arrays"]);
}

function firstRows(array: WireArray, rows: number, count: number): WireArray {
  if (array.shape[0] !== rows) return array; // empty, where nobody knows it
  return { ...array, shape: [count, ...array.shape.slice(1)], content: array.content.slice(0, (array.content.length / rows) * count) };
}

/** A list as Python writes it. */
export function listed(list: readonly string[]): string {
  return `[${list.map(quoted).join(", ")}]`;
}

/** Whether figures are of other people than the participants. */
export function isPublic(catalogue: Catalogue): boolean {
  return kindOf(catalogue.source) === "public";
}

/** Whether figures are exact ones of the participants: two of them differ by who joined in between. */
export function tellsParticipants(catalogue: Catalogue): boolean {
  return !isPublic(catalogue) && catalogue.epsilon === null;
}

function read(arrays: Packet["arrays"]): Catalogue {
  const about = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(arrays["about"]!.content)) as Record<string, unknown>;
  const facts: Record<string, unknown> = { source: "participants", epsilon: null, people: 0, ...about };
  const ids = texts(facts["ids"], "ids");
  const titles = texts(facts["titles"], "titles");
  demand(new Set(ids).size === ids.length, "an item twice");
  demand(titles.length === 0 || titles.length === ids.length, `titles: ${titles.length} for ${ids.length} items`);
  const [content, popularity, average, years] = TABLES.map((name) => checkedTable(name, arrays[name], ids.length)) as [WireArray, WireArray, WireArray, WireArray];
  const [mean, noise, people] = ["mean", "noise", "people"].map((name) => Number(facts[name])) as [number, number, number];
  demand(Number.isFinite(mean) && noise > 0 && noise < Infinity, "mean and noise must be finite, and noise greater than zero");
  const epsilon = facts["epsilon"] === null ? null : Number(facts["epsilon"]);
  demand(SOURCES.includes(kindOf(String(facts["source"]))) && (epsilon === null || (epsilon > 0 && epsilon < Infinity)), "source and epsilon say nothing that is known");
  const features = table(content.shape[0]!, content.shape[1]!);
  features.data.set(numbersOf(content));
  const known = { content: features, popularity: numbersOf(popularity), average: numbersOf(average), years: numbersOf(years), mean, noise };
  return { digest: digestOf({}, arrays), ids, titles, scale: scaleOf(String(facts["scale"])), scaleText: String(facts["scale"]), known, source: String(facts["source"]), epsilon, people, arrays };
}

function checkedTable(name: string, array: WireArray | undefined, items: number): WireArray {
  demand(array !== undefined && array.shape.length === (name === "content" ? 2 : 1), `${name} is no table`);
  demand(array!.shape[0] === items || (array!.shape[0] === 0 && OPTIONAL.includes(name)), `${name} has ${array!.shape[0]} rows for ${items} items`);
  const numbers = numbersOf(array!);
  demand(numbers.every(Number.isFinite) && (name !== "popularity" || numbers.every((count) => count >= 0)), `${name} has numbers that can't be`);
  return array!;
}

function scaleOf(text: string): Scale {
  const [low, high, step] = text.split(":").map(Number) as [number, number, number];
  const steps = (high - low) / step;
  demand(high > low && step > 0 && Math.abs(steps - Math.round(steps)) <= ON_GRID && steps < 65_536, `${text} is no rating scale`);
  return { low, high, step };
}

function texts(value: unknown, name: string): string[] {
  demand(Array.isArray(value) && value.every((text) => typeof text === "string"), `${name} are no texts`);
  return value as string[];
}

function kindOf(source: string): string {
  return source.split(":", 1)[0]!;
}

function demand(sound: boolean, problem: string): void {
  if (!sound) throw new Refusal("request", problem);
}
