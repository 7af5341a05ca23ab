/** Shamir's secret sharing of 32-byte secrets: `parts/channel/secure/shamir.py`. */
const PRIME = 2n ** 256n + 297n;
export const SHARE_BYTES = 33;
const COEFFICIENT_BYTES = 48; // modulo a prime of 257 bits: the bias is below 2^-127

/** Shares for holders 1 to n: any `threshold` of them give the secret, fewer tell nothing. */
export function split(secret: Uint8Array, holders: number, threshold: number, draw: (size: number) => Uint8Array): Uint8Array[] {
  const coefficients = Array.from({ length: threshold - 1 }, () => whole(draw(COEFFICIENT_BYTES)) % PRIME);
  return Array.from({ length: holders }, (_, place) => {
    const x = BigInt(place + 1);
    const value = coefficients.reduce((sum, coefficient) => ((sum + coefficient) * x) % PRIME, 0n);
    return bytesOf((value + whole(secret)) % PRIME);
  });
}

function whole(bytes: Uint8Array): bigint {
  return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
}

function bytesOf(value: bigint): Uint8Array {
  const bytes = new Uint8Array(SHARE_BYTES);
  for (let place = SHARE_BYTES - 1; place >= 0; place--, value >>= 8n) bytes[place] = Number(value & 255n);
  return bytes;
}
