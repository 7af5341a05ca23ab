/** The messages of a secure sum, as bytes: `parts/channel/secure/messages.py`. */
import { packed, Refusal, unpacked } from "../wire/packet";

export const KEY_BYTES = 32;
export const NUMBER_BYTES = 8;
const VERSION = 2;

/** Fields of a message after its tag, version and session: bytes, or whole numbers. */
const KINDS = {
  Advertisement: { tag: 0, fields: ["bytes", "bytes", "bytes", "bytes", "bytes"] },
  Neighbourhood: { tag: 1, fields: ["number", "number", "bytes", "bytes"] },
  SealedShares: { tag: 2, fields: ["bytes", "bytes", "bytes"] },
  Inbox: { tag: 3, fields: ["bytes", "bytes"] },
  MaskedVector: { tag: 4, fields: ["bytes", "bytes"] },
  Survivors: { tag: 5, fields: ["number", "bytes"] },
  Reveal: { tag: 8, fields: ["bytes", "bytes"] },
  Complaint: { tag: 9, fields: ["bytes", "bytes"] },
} as const;

type Kind = keyof typeof KINDS;
export type Field = Uint8Array | number;

/** What a neighbour advertised. */
export interface Advertisement {
  readonly number: bigint;
  readonly cipherKey: Uint8Array;
  readonly maskKey: Uint8Array;
}

export function refused(why: string): Refusal {
  return new Refusal("sum", why);
}

export function pack(kind: Kind, session: Uint8Array, ...fields: readonly Field[]): Uint8Array<ArrayBuffer> {
  return packed([KINDS[kind].tag, VERSION, session, ...fields]);
}

/** The fields of a message, if it is of the kind that is due, of this version and session. */
export function unpack(kind: Kind, data: Uint8Array, session: Uint8Array): readonly Field[] {
  const { tag, fields } = KINDS[kind];
  const message = contentOf(data);
  if (!Array.isArray(message) || message[0] !== tag || message.length < 3 + fields.length) throw refused(`no ${kind}`);
  if (message[1] !== VERSION) throw refused(`version ${String(message[1])} of the protocol, not ${VERSION}`);
  if (!(message[2] instanceof Uint8Array) || !same(message[2], session)) throw refused("a message of another session: replayed or misdirected");
  return fields.map((wanted, place) => {
    const field: unknown = message[3 + place];
    if (wanted === "bytes" ? !(field instanceof Uint8Array) : !Number.isSafeInteger(field)) throw refused(`no ${kind}`);
    return field as Field;
  });
}

function contentOf(data: Uint8Array): unknown {
  try {
    return unpacked(data);
  } catch {
    return null;
  }
}

export function same(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, place) => byte === other[place]);
}

export function numberBytes(number: bigint): Uint8Array {
  const bytes = new Uint8Array(NUMBER_BYTES);
  new DataView(bytes.buffer).setBigUint64(0, number);
  return bytes;
}

export function toNumber(bytes: Uint8Array): bigint {
  return new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0);
}

export function toBits(chosen: readonly boolean[]): Uint8Array {
  const bits = new Uint8Array(Math.ceil(chosen.length / 8));
  chosen.forEach((one, place) => (bits[place >> 3]! |= one ? 128 >> (place & 7) : 0));
  return bits;
}

/** Those of some clients whose bits are set. */
export function fromBits(bits: Uint8Array, among: readonly bigint[]): bigint[] {
  if (bits.length !== Math.ceil(among.length / 8)) throw refused(`${bits.length} bytes can't be the bits of ${among.length} clients`);
  const isSet = (place: number): boolean => ((bits[place >> 3]! << (place & 7)) & 128) !== 0;
  for (let place = among.length; place < 8 * bits.length; place++) if (isSet(place)) throw refused("a bit beyond the last client");
  return among.filter((_, place) => isSet(place));
}

export function cut(data: Uint8Array, pieces: number, size: number): Uint8Array[] {
  if (data.length !== pieces * size) throw refused(`${data.length} bytes are not ${pieces} times ${size}`);
  return Array.from({ length: pieces }, (_, place) => data.slice(place * size, (place + 1) * size));
}

/** Neighbours, ascending, and what each advertised. */
export function advertisements(records: Uint8Array): Advertisement[] {
  const size = NUMBER_BYTES + 2 * KEY_BYTES;
  const adverts = cut(records, Math.floor(records.length / size), size).map((record) => ({
    number: toNumber(record),
    cipherKey: record.slice(NUMBER_BYTES, NUMBER_BYTES + KEY_BYTES),
    maskKey: record.slice(NUMBER_BYTES + KEY_BYTES),
  }));
  if (adverts.some((advert, place) => place > 0 && advert.number <= adverts[place - 1]!.number)) throw refused("neighbours stand twice or out of order");
  return adverts;
}
