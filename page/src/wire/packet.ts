/** A message as facts and arrays, and its one encoding: `deploy/wire/packet.py`. */
import { decode, encode } from "@msgpack/msgpack";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import known from "./settings.json";

export type Facts = Readonly<Record<string, string | number | bigint>>;

/** An array as it travels: the name of its type, its shape, and little-endian bytes. */
export interface WireArray {
  readonly kind: string;
  readonly shape: readonly number[];
  readonly content: Uint8Array;
}

export interface Packet {
  readonly facts: Facts;
  readonly arrays: Readonly<Record<string, WireArray>>;
}

/** A message that is not taken, in one of the words that a server is told, and in words for the person. */
export class Refusal extends Error {
  constructor(
    readonly kind: string,
    readonly detail: string,
  ) {
    super(`${kind}: ${detail}`);
  }
}

export const PROTOCOL = known.protocol;
export const VERSION = `fedrecplus page, protocol ${PROTOCOL}`;

const BYTES: Readonly<Record<string, number>> = {
  bool: 1, uint8: 1, int8: 1, uint16: 2, int16: 2, uint32: 4, int32: 4, float32: 4, uint64: 8, int64: 8, float64: 8,
};
const MOST_ARRAYS = 64;
const MOST_AXES = 4;
const WIDE = { useBigInt64: true } as const;

export function packed(value: unknown): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(encode(value, WIDE));
}

export function unpacked(content: Uint8Array): unknown {
  try {
    return decode(content, WIDE);
  } catch (error) {
    throw new Refusal("request", `no message: ${error instanceof Error ? error.message : String(error)}`);
  }
}

export function packetBytes(packet: Packet): Uint8Array<ArrayBuffer> {
  const arrays = Object.fromEntries(Object.entries(packet.arrays).map(([name, { kind, shape, content }]) => [name, [kind, shape, content]]));
  return packed({ facts: packet.facts, arrays });
}

/** The packet in these bytes; a refusal for anything else. */
export function packetOf(content: Uint8Array): Packet {
  const body = unpacked(content) as { facts?: unknown; arrays?: unknown };
  if (!isRecord(body) || !isRecord(body.facts) || !isRecord(body.arrays)) throw malformed();
  if (!Object.values(body.facts).every((fact) => ["string", "number", "bigint"].includes(typeof fact))) throw malformed();
  const arrays = Object.entries(body.arrays);
  if (arrays.length > MOST_ARRAYS) throw malformed();
  return { facts: body.facts as Facts, arrays: Object.fromEntries(arrays.map(([name, array]) => [name, arrayOf(array)])) };
}

export function sizeOf(packet: Packet): number {
  return Object.values(packet.arrays).reduce((total, { content }) => total + content.length, 0);
}

/** A hash over facts and arrays, their names, types and shapes. */
export function packetHash(facts: Facts, arrays: Packet["arrays"]): Uint8Array {
  const hash = sha256.create().update(utf8ToBytes(jsonOf(facts)));
  for (const name of Object.keys(arrays).sort()) {
    const { kind, shape, content } = arrays[name]!;
    hash.update(utf8ToBytes(`${name} ${kind} ${tuple(shape)}`)).update(content);
  }
  return hash.digest();
}

/** A short name: the beginning of the hash. */
export function digestOf(facts: Facts, arrays: Packet["arrays"]): string {
  return bytesToHex(packetHash(facts, arrays)).slice(0, 32);
}

export function bytesArray(content: Uint8Array): WireArray {
  return { kind: "uint8", shape: [content.length], content };
}

/** An array's numbers in double precision. */
export function numbersOf({ kind, content }: WireArray): Float64Array {
  const buffer = content.slice().buffer;
  if (kind === "float64") return new Float64Array(buffer);
  if (kind === "float32") return Float64Array.from(new Float32Array(buffer));
  if (kind === "int64") return Float64Array.from(new BigInt64Array(buffer), Number);
  if (kind === "int32") return Float64Array.from(new Int32Array(buffer));
  throw new Refusal("request", `numbers of the type ${kind}`);
}

/** As Python writes JSON: sorted names, ASCII alone. */
export function jsonOf(facts: Facts): string {
  const fields = Object.keys(facts).sort().map((name) => `${quoted(name)}: ${typeof facts[name] === "string" ? quoted(facts[name] as string) : String(facts[name])}`);
  return `{${fields.join(", ")}}`;
}

export function quoted(text: string): string {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

function arrayOf(value: unknown): WireArray {
  if (!Array.isArray(value) || value.length !== 3) throw malformed();
  const [kind, shape, content] = value as [unknown, unknown, unknown];
  if (typeof kind !== "string" || !(kind in BYTES) || !(content instanceof Uint8Array) || !Array.isArray(shape) || shape.length > MOST_AXES) throw malformed();
  const lengths = shape.map(Number);
  if (!lengths.every((length) => Number.isSafeInteger(length) && length >= 0)) throw malformed();
  if (lengths.reduce((total, length) => total * length, BYTES[kind]!) !== content.length) throw malformed();
  return { kind, shape: lengths, content };
}

function tuple(shape: readonly number[]): string {
  return shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
}

function malformed(): Refusal {
  return new Refusal("request", "no packet");
}
