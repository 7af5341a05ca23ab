/** Masks: a key's stream of AES-256 in counter mode, added to or taken from a vector: `parts/channel/secure/masks.py`. */
import type { RingVector } from "./ring";

/** Add the mask of a key over the whole vector; the sections follow each other in the stream. */
export async function addMask(vector: RingVector, key: Uint8Array, minus: boolean): Promise<void> {
  const { moves, weights } = vector;
  const stream = await streamOf(key, moves.byteLength + weights.byteLength);
  const ofMoves = stream.slice(0, moves.byteLength).buffer;
  addTo(moves, moves instanceof Uint16Array ? new Uint16Array(ofMoves) : new Uint32Array(ofMoves), minus);
  addTo(weights, new Uint32Array(stream.slice(moves.byteLength).buffer), minus);
}

function addTo(numbers: Uint32Array | Uint16Array, mask: Uint32Array | Uint16Array, minus: boolean): void {
  for (let at = 0; at < numbers.length; at++) numbers[at] = minus ? numbers[at]! - mask[at]! : numbers[at]! + mask[at]!;
}

async function streamOf(key: Uint8Array, size: number): Promise<Uint8Array<ArrayBuffer>> {
  const own = await crypto.subtle.importKey("raw", Uint8Array.from(key), "AES-CTR", false, ["encrypt"]);
  const how = { name: "AES-CTR", counter: new Uint8Array(16), length: 128 };
  return new Uint8Array(await crypto.subtle.encrypt(how, own, new Uint8Array(size)));
}
