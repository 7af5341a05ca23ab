/** The stages of a secure sum on the wire: `deploy/wire/stages.py`. */
import { bytesArray, Refusal, sizeOf, VERSION, type Facts, type Packet } from "./packet";

export const FIRST = "advertise";
const STAGES: readonly string[] = [FIRST, "share", "mask", "consent", "reveal"];
const SESSION_DIGITS = 32;
const LARGEST_MESSAGE = 30_000_000;

export interface Stage {
  readonly model: string;
  readonly round: number;
  /** in hexadecimal */
  readonly session: string;
  readonly name: string;
}

/** The stage in a packet's facts. */
export function stageOf(facts: Facts): Stage {
  const [session, name, round] = [String(facts["session"]), String(facts["stage"]), Number(facts["round"])];
  const sound = /^[0-9a-f]+$/.test(session) && session.length === SESSION_DIGITS && STAGES.includes(name) && Number.isSafeInteger(round);
  if (!sound) throw new Refusal("request", "a stage of no sum");
  return { model: String(facts["model"]), round, session, name };
}

export function isLaterStage(packet: Packet): boolean {
  const stage = packet.facts["stage"];
  return stage !== undefined && stage !== FIRST;
}

export function stagePacket(stage: Stage, message: Uint8Array, more: Facts = {}): Packet {
  const facts = { version: VERSION, model: stage.model, round: stage.round, session: stage.session, stage: stage.name };
  return { facts: { ...facts, ...more }, arrays: { message: bytesArray(message) } };
}

/** The protocol's message in a packet. */
export function messageOf(packet: Packet): Uint8Array {
  const { message, ...others } = packet.arrays;
  if (!message || message.kind !== "uint8" || message.shape.length !== 1 || Object.keys(others).length) throw new Refusal("request", "no message, or more than one");
  if (sizeOf(packet) > LARGEST_MESSAGE) throw new Refusal("request", `a message of ${sizeOf(packet)} bytes`);
  return message.content;
}

/** What masks are bound to beside the session: the persons that a sum has room for. */
export function maskContext(persons: number): Uint8Array {
  const context = new Uint8Array(15);
  context.set(new TextEncoder().encode("persons"));
  new DataView(context.buffer).setBigUint64(7, BigInt(persons));
  return context;
}
