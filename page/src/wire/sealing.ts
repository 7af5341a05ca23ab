/** Answers that the server's database can't read: `deploy/wire/sealing.py`. */
import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { x25519 } from "@noble/curves/ed25519.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { concatBytes, utf8ToBytes } from "@noble/hashes/utils.js";

const NONCE = new Uint8Array(12); // used once, since every message has a key of its own

/** The ephemeral public key, then the ciphertext; `context` is bound to it. */
export function seal(content: Uint8Array, to: Uint8Array, context: Uint8Array): Uint8Array {
  const own = crypto.getRandomValues(new Uint8Array(32));
  const sender = x25519.getPublicKey(own);
  const secret = x25519.getSharedSecret(own, to);
  const key = hkdf(sha256, secret, undefined, concatBytes(utf8ToBytes("fedrecplus answer"), sender, to), 32);
  return concatBytes(sender, chacha20poly1305(key, NONCE, context).encrypt(content));
}
