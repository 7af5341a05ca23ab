/** Keys of a secure sum: `parts/channel/secure/keys.py`, and the secrets that follow from one root. */
import { chacha20, chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { x25519 } from "@noble/curves/ed25519.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";
import { KEY_BYTES, numberBytes, refused } from "./messages";

const NAME = "fedrecplus secure sum 1 ";
const NONCE = new Uint8Array(12); // each key encrypts one message
const BLOCK = 64;

export function derive(secret: Uint8Array, purpose: string, context: Uint8Array): Uint8Array {
  return hkdf(sha256, secret, undefined, concatBytes(utf8ToBytes(`${NAME}${purpose}\0`), context), KEY_BYTES);
}

export function publicKey(secret: Uint8Array): Uint8Array {
  return x25519.getPublicKey(secret);
}

/** A key that only the two owners can compute. */
export function agree(own: Uint8Array, other: Uint8Array, purpose: string, context: Uint8Array): Uint8Array {
  let shared: Uint8Array;
  try {
    shared = x25519.getSharedSecret(own, other);
  } catch {
    throw refused("a public key of the wrong length, or of low order: it agrees on a key that everybody knows");
  }
  return derive(shared, purpose, context);
}

/** The context of a key between two clients, from the first to the second. */
export function pair(session: Uint8Array, first: bigint, second: bigint): Uint8Array {
  return concatBytes(session, numberBytes(first), numberBytes(second));
}

export function sealShares(key: Uint8Array, plain: Uint8Array, header: Uint8Array): Uint8Array {
  return chacha20poly1305(key, NONCE, header).encrypt(plain);
}

/** What was sealed; null where it was changed on the way or is for another. */
export function unsealShares(key: Uint8Array, sealed: Uint8Array, header: Uint8Array): Uint8Array | null {
  try {
    return chacha20poly1305(key, NONCE, header).decrypt(sealed);
  } catch {
    return null;
  }
}

/** The key of the mask that two clients share, if both were told the same context. */
export function pairKey(own: Uint8Array, other: Uint8Array, session: Uint8Array, one: bigint, two: bigint, context: Uint8Array): Uint8Array {
  const [low, high] = one < two ? [one, two] : [two, one];
  return agree(own, other, "pair mask", concatBytes(pair(session, low, high), context));
}

export function selfMaskKey(seed: Uint8Array, session: Uint8Array): Uint8Array {
  return derive(seed, "self mask stream", session);
}

/** What a client says of its seed, so that wrong shares of it are noticed. */
export function commit(session: Uint8Array, seed: Uint8Array): Uint8Array {
  return sha256(concatBytes(utf8ToBytes(`${NAME}seed\0`), session, seed));
}

/** Bytes of a key's stream, one after the other: ChaCha20 from the beginning. */
export function drawing(key: Uint8Array): (size: number) => Uint8Array {
  let at = 0;
  return (size) => {
    const first = Math.floor(at / BLOCK);
    const stream = chacha20(key, NONCE, new Uint8Array(at + size - first * BLOCK), undefined, first);
    const drawn = stream.slice(at - first * BLOCK);
    at += size;
    return drawn;
  };
}
