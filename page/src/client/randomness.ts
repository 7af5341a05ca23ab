/** Keyed, stateless randomness: `randomness.py`, on 64-bit integers. */

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;
const MIX_1 = 0xbf58476d1ce4e5b9n;
const MIX_2 = 0x94d049bb133111ebn;

/** Hash a key with one index into a new key. */
export function mix(key: bigint, index: bigint): bigint {
  let z = (key + (index + 1n) * GOLDEN) & MASK;
  z = ((z ^ (z >> 30n)) * MIX_1) & MASK;
  z = ((z ^ (z >> 27n)) * MIX_2) & MASK;
  return z ^ (z >> 31n);
}

/** Derive a key for a purpose. */
export function subkey(key: bigint, ...names: readonly (string | number)[]): bigint {
  return names.reduce((state, name) => mix(state, typeof name === "string" ? purpose(name) : BigInt(name)), key & MASK);
}

/** One draw from [0, 1). */
export function uniform(key: bigint, index: number): number {
  return Number(mix(key & MASK, BigInt(index)) >> 11n) * 2 ** -53;
}

/** Standard normal draws, one per index. After: Box and Muller 1958 */
export function normals(key: bigint): (index: number) => number {
  const [radius, angle] = [subkey(key, "radius"), subkey(key, "angle")];
  return (index) => Math.sqrt(-2 * Math.log1p(-uniform(radius, index))) * Math.cos(2 * Math.PI * uniform(angle, index));
}

/** A key from the operating system: nobody else knows it. */
export function newSecret(): bigint {
  const [low, high] = crypto.getRandomValues(new Uint32Array(2));
  return (BigInt(high!) << 32n) | BigInt(low!);
}

/** Items in an order that only the key's owner can compute. */
export function shuffled(key: bigint, items: Int32Array): number[] {
  const drawn = new Map(Array.from(items, (item) => [item, mix(key & MASK, BigInt(item))] as const));
  return Array.from(items).sort((a, b) => {
    const [one, other] = [drawn.get(a)!, drawn.get(b)!];
    return one < other ? -1 : one > other ? 1 : 0;
  });
}

function purpose(name: string): bigint {
  return BigInt(crc32(new TextEncoder().encode(name))) | (1n << 40n);
}

function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}
