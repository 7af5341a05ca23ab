/** What a server asks in a round, checked before anything else looks at it: `deploy/wire/request.py`. */
import { bytesToHex } from "@noble/hashes/utils.js";
import { table, type Table } from "../engine/linear";
import { catalogueOf, type Catalogue } from "./catalogue";
import { checkRunnable, isSecure } from "./runnable";
import { digestOf, numbersOf, packetHash, PROTOCOL, Refusal, sizeOf, type Facts, type Packet, type WireArray } from "./packet";
import { configOf, fixedSettings, section, type TrainingConfig } from "./settings";
import { stageOf } from "./stages";
import { SUM, sumsOf } from "./steps";
import { logOf, taskOf, type LogHead, type Task } from "./task";

const CATALOGUE = "catalogue.";
/** What is no table: the catalogue, the log, and the sums that V was moved by. */
const BESIDE = [CATALOGUE, "log.", SUM];
/** The tables of a request, and the greatest number of each. */
const LARGEST: Readonly<Record<string, number>> = { V: 1e3, last_step: 1e3, last_covariance: 1e6 };
export const STATISTICS_ROUND = -1;

export interface Request {
  readonly model: string;
  readonly config: TrainingConfig;
  readonly configText: string;
  readonly round: number;
  readonly tables: Packet["arrays"];
  /** the catalogue's digest */
  readonly catalogue: string;
  readonly attached: Catalogue | null;
  readonly size: number;
  /** of the secure sum; empty in an offer, which asks for nothing */
  readonly session: string;
  readonly pinned: boolean;
  readonly task: Task;
  /** this round's entry in the task's log, the log, and the digest of the tables as they came */
  readonly leaf: string;
  readonly log: LogHead | null;
  readonly told: string;
  /** the sums that V was moved by; null in the first round */
  readonly summed: ReturnType<typeof sumsOf>;
  /** whether the last step came along */
  readonly stepTold: boolean;
}

/** The request in a packet; a refusal where it makes no sense or this page can't do it. An offer asks for nothing yet. */
export function requestOf(packet: Packet, isOffer = false): Request {
  checkVersion(packet.facts["version"]);
  const configText = String(packet.facts["config"]);
  const config = configOf(configText);
  const { facts } = packet;
  checkRunnable(config);
  if (!isOffer && isSecure(config) !== "session" in facts) throw new Refusal("request", "a channel with or without a secure sum");
  const tables = Object.fromEntries(Object.entries(packet.arrays).filter(([name]) => !BESIDE.some((prefix) => name.startsWith(prefix))));
  const attached = Object.entries(packet.arrays).filter(([name]) => name.startsWith(CATALOGUE));
  const V = tables["V"];
  if (!V) throw new Refusal("request", "there is no V");
  for (const [name, array] of Object.entries(tables)) checkTable(name, array, V);
  const nothing = { last_step: zeros(V, V.shape[0]!), last_covariance: zeros(V, 0) };
  if (!/^[0-9a-f]+$/i.test(String(facts["model"]))) throw new Refusal("request", "a model without a name");
  return {
    model: String(facts["model"]), config, configText, round: whole(facts["round"], "round"), tables: { ...nothing, ...tables },
    catalogue: String(facts["catalogue"]), size: sizeOf(packet), pinned: Boolean(Number(facts["pinned"] ?? 0)),
    attached: attached.length ? catalogueOf(Object.fromEntries(attached.map(([name, array]) => [name.slice(CATALOGUE.length), array]))) : null,
    session: "session" in facts ? stageOf(facts).session : "",
    task: taskOf(String(facts["task"])), leaf: String(facts["leaf"] ?? ""), log: logOf(packet.arrays), told: digestOf({}, tables),
    summed: sumsOf(packet.arrays, matrixOf(V)), stepTold: "last_step" in tables,
  };
}

export function checkVersion(theirs: unknown): void {
  const text = String(theirs).slice(0, 80);
  const spoken = Number(/protocol (\d{1,6})(?![^-])/.exec(text)?.[1] ?? 0);
  if (spoken !== PROTOCOL) throw new Refusal("version", `the server runs ${text}, and this page protocol ${PROTOCOL}`);
}

/** A hash over what a reply depends on. */
export function requestDigest(request: Request): string {
  return digestOf({ catalogue: request.catalogue, round: request.round, settings: fixedSettings(request.config) }, request.tables);
}

/** What the sum is called within its protocol: the server's session, bound to all that was asked. */
export function sumSession(request: Request): Uint8Array {
  const facts: Facts = {
    session: request.session, model: request.model, round: request.round, catalogue: request.catalogue,
    settings: fixedSettings(request.config), pinned: Number(request.pinned),
    task: request.task.digest, log: request.log ? bytesToHex(request.log.root) : "",
  };
  return packetHash(facts, request.tables);
}

/** What one sum is unmasked of: a digest of V, or of the model's name where the sum is of its statistics. */
export function tableDigest(request: Request): string {
  if (request.round === STATISTICS_ROUND) return statisticsDigest(request.model);
  return digestOf({}, { V: request.tables["V"]! });
}

export function statisticsDigest(model: string): string {
  return digestOf({ statistics: model }, {});
}

export function matrixOf({ shape, ...array }: WireArray): Table {
  const matrix = table(shape[0]!, shape[1]!);
  matrix.data.set(numbersOf({ shape, ...array }));
  return matrix;
}

export function rounds(config: TrainingConfig): number {
  return Number(section(config, "server").values["rounds"]);
}

export function whole(value: unknown, name: string): number {
  const number = Number(value);
  if (value === undefined || !Number.isSafeInteger(number)) throw new Refusal("request", `${name} is no whole number`);
  return number;
}

function checkTable(name: string, array: WireArray, V: WireArray): void {
  const fits = name in LARGEST && /^float(32|64)$/.test(array.kind) && array.shape.length === 2 && array.shape[1] === V.shape[1];
  if (!fits || (name === "last_step" && array.shape[0] !== V.shape[0])) throw new Refusal("request", `${name.slice(0, 20)} is no table of numbers beside V`);
  if (!numbersOf(array).every((value) => Math.abs(value) <= LARGEST[name]!)) throw new Refusal("request", `${name} has numbers beyond ${LARGEST[name]}`);
}

function zeros(V: WireArray, rows: number): WireArray {
  const bytes = V.kind === "float32" ? 4 : 8;
  return { kind: V.kind, shape: [rows, V.shape[1]!], content: new Uint8Array(rows * V.shape[1]! * bytes) };
}
