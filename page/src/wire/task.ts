/** The task that a person agrees to, and its public log: `deploy/wire/task.py` and `log.py`. */
import { ed25519 } from "@noble/curves/ed25519.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { columns } from "../engine/linear";
import { firstItems, listed, type Catalogue } from "./catalogue";
import { bytesArray, digestOf, isRecord, quoted, Refusal, type Packet } from "./packet";
import { fixedSettings, section, type TrainingConfig } from "./settings";

const LONGEST = 64 * 2 ** 10;
const HASH_BYTES = 32;

export interface Task {
  readonly model: string;
  readonly settings: string;
  readonly rounds: number;
  readonly catalogue: string;
  readonly items: string;
  readonly first: number;
  /** public key that signs its log; empty where it has none */
  readonly log: string;
  /** items as it begins, and the share of them that may be added */
  readonly size: number;
  readonly growth: number;
  /** rounds whose sums its server keeps, for devices that missed them */
  readonly kept: number;
  /** the document, and the SHA-256 of it */
  readonly text: string;
  readonly digest: string;
}

/** The task in a document. */
export function taskOf(text: string): Task {
  let facts: unknown = null;
  try {
    facts = text.length <= LONGEST ? JSON.parse(text) : null;
  } catch {
    /* no document */
  }
  if (!isRecord(facts) || !isTask(facts)) throw new Refusal("request", "no task's own text");
  const { model, settings, rounds, catalogue, items, first, log, size, growth, kept } = facts as unknown as Task;
  return { model, settings, rounds, catalogue, items, first, log, size, growth, kept, text, digest: bytesToHex(sha256(utf8ToBytes(text))) };
}

/** Whether every fact is of its kind, and no number less than it may be: of −1 rounds that are kept, any table would do. */
function isTask(facts: Record<string, unknown>): boolean {
  const least = { rounds: 1, first: -1, size: 0, kept: 0, growth: 0 };
  const counted = Object.entries(least).every(([name, low]) => Number.isFinite(facts[name]) && Number(facts[name]) >= low && (name === "growth" || Number.isSafeInteger(facts[name])));
  return counted && ["model", "settings", "catalogue", "items", "log"].every((name) => typeof facts[name] === "string");
}

/** Refuse a question that is none of its task's. */
export function checkTask(task: Task, model: string, config: TrainingConfig, round: number, catalogue: Catalogue): void {
  const all = Number(section(config, "server").values["rounds"]);
  if (model !== task.model || fixedSettings(config) !== task.settings) throw refused("a model or settings that are not the task's");
  if (round >= all || all > task.rounds) throw refused(`round ${round} of ${all}, and the task has ${task.rounds}`);
  const begun = firstItems(catalogue, task.size);
  if (begun.digest !== task.catalogue && !hasStatistics(task, config, begun)) throw refused("a catalogue that is not the task's");
  if (!(catalogue.ids.length <= task.size + Math.floor(task.growth * task.size + 1e-9))) throw refused("more items than the task has room for");
  checkAdded(catalogue, task.size);
}

/** Refuse figures of items that came later which none of the first has. */
function checkAdded({ known }: Catalogue, size: number): void {
  const { content, popularity, average, years } = known;
  const features = Array.from({ length: content.columns }, (_, k) => columns(content, k, k + 1).data);
  const sound = [
    popularity.slice(size).every((count) => count <= extremes(popularity.slice(0, size))[1]),
    average.slice(size).every((one) => one >= 1 && one <= 5),
    isWithin(years.slice(size).filter((year) => year !== 0), years.slice(0, size).filter((year) => year > 0)), // 0: not known
    ...features.map((column) => isWithin(column.slice(size), column.slice(0, size))),
  ];
  if (!sound.every(Boolean)) throw refused("an added item with figures that none of the first has");
}

function isWithin(added: Float64Array, first: Float64Array): boolean {
  const [least, most] = extremes(first);
  return added.every((value) => value >= least && value <= most);
}

function extremes(values: Float64Array): [number, number] {
  return values.reduce<[number, number]>(([least, most], value) => [Math.min(least, value), Math.max(most, value)], [Infinity, -Infinity]);
}

/** Whether these are the task's items with figures that its own noised sum may have. */
function hasStatistics(task: Task, config: TrainingConfig, catalogue: Catalogue): boolean {
  const { known } = catalogue;
  const ours = itemsDigest(catalogue) === task.items && section(config, "statistics").values["source"] === "secure-sum";
  const noised = catalogue.source === "secure-sum" && catalogue.epsilon !== null;
  return ours && noised && [...known.average, known.mean].every((average) => average >= 1 && average <= 5);
}

/** A name that two catalogues of the same items share, whatever their figures. */
function itemsDigest({ ids, titles, scaleText, arrays }: Catalogue): string {
  const about = bytesArray(utf8ToBytes(`[${listed(ids)}, ${listed(titles)}, ${quoted(scaleText)}]`));
  return digestOf({}, { about, content: arrays["content"]!, years: arrays["years"]! });
}

/** The log's hashes of leaves and its root, as the server tells them; null where there is none. */
export interface LogHead {
  readonly leaves: readonly Uint8Array[];
  readonly root: Uint8Array;
  readonly signature: Uint8Array;
}

export function logOf(arrays: Packet["arrays"]): LogHead | null {
  const [told, signed] = [arrays["log.leaves"], arrays["log.signature"]];
  if (!told || !signed) return null;
  const leaves = Array.from({ length: Math.ceil(told.content.length / HASH_BYTES) }, (_, at) => told.content.slice(at * HASH_BYTES, (at + 1) * HASH_BYTES));
  return { leaves, root: rootOf(leaves), signature: signed.content };
}

/** What is asked of a round, beside its entry in the log. */
interface LoggedRound {
  readonly round: number;
  readonly leaf: string;
  /** digest of its tables */
  readonly told: string;
  readonly summed: { readonly digest: string } | null;
  /** digest of the items */
  readonly catalogue: string;
}

/** Refuse a log that isn't the task's, that its key hasn't signed, that lost what was in it, or ends with another round. */
export function checkLog(task: Task, log: LogHead | null, { round, leaf, told, summed, catalogue }: LoggedRound, earlier: readonly string[]): void {
  if (!task.log) return;
  if (!log || log.leaves.length !== round - task.first + 2) throw new Refusal("log", "a log without this round");
  const hashes = log.leaves.map(bytesToHex);
  if (hashes[0] !== bytesToHex(leafHash(task.text))) throw new Refusal("log", "a log of another task");
  const size = new Uint8Array(8);
  new DataView(size.buffer).setBigUint64(0, BigInt(log.leaves.length));
  const statement = concatBytes(utf8ToBytes("fedrecplus log head"), hexToBytes(task.digest), size, log.root);
  if (!verified(log.signature, statement, task.log)) throw new Refusal("log", "a log that the task's key has not signed");
  if (earlier.some((hash, place) => hashes[place] !== hash)) throw new Refusal("log", "a log that has lost what was in it");
  if (hashes.at(-1) !== bytesToHex(leafHash(leaf)) || !entryIs(leaf, { round, V: told, items: catalogue, ...(summed ? { sum: summed.digest } : {}) })) {
    throw new Refusal("log", "an entry of another round, table or sum");
  }
}

function entryIs(leaf: string, asked: Record<string, unknown>): boolean {
  const entry: unknown = JSON.parse(leaf);
  return isRecord(entry) && Object.entries(asked).every(([name, value]) => entry[name] === value);
}

function verified(signature: Uint8Array, statement: Uint8Array, key: string): boolean {
  try {
    return ed25519.verify(signature, statement, hexToBytes(key));
  } catch {
    return false;
  }
}

export function leafHash(content: string): Uint8Array {
  return sha256(concatBytes(Uint8Array.of(0), utf8ToBytes(content)));
}

function rootOf(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length <= 1) return leaves[0] ?? sha256(new Uint8Array(0));
  const half = 2 ** Math.floor(Math.log2(leaves.length - 1));
  return sha256(concatBytes(Uint8Array.of(1), rootOf(leaves.slice(0, half)), rootOf(leaves.slice(half))));
}

function refused(why: string): Refusal {
  return new Refusal("task", why);
}
