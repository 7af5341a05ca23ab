/** Signed requests (RFC 9421, RFC 9530): `deploy/wire/signatures.py`. The key never leaves the browser's own keeping. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

const COVERED = '("@method" "@path" "@query" "content-digest")';
const TAG = "fedrecplus";
const NONCE_BYTES = 12;

export interface DeviceKey {
  readonly pair: CryptoKeyPair;
  /** the public key, in hexadecimal: what a server knows this device by */
  readonly name: string;
}

/** A new Ed25519 key that scripts can use and can't read. */
export async function newKey(): Promise<DeviceKey> {
  let pair: CryptoKeyPair;
  try {
    pair = (await crypto.subtle.generateKey("Ed25519", false, ["sign", "verify"])) as CryptoKeyPair;
  } catch {
    throw new Error("this browser has no Ed25519 signatures: take a newer one");
  }
  return { pair, name: bytesToHex(new Uint8Array(await crypto.subtle.exportKey("raw", pair.publicKey))) };
}

/** The headers that go with a request; `target` is its path and query. */
export async function signedHeaders(key: DeviceKey, method: string, target: string, body: Uint8Array): Promise<Record<string, string>> {
  const digest = `sha-256=:${base64(sha256(body))}:`;
  const nonce = base64(crypto.getRandomValues(new Uint8Array(NONCE_BYTES))).replaceAll("+", "-").replaceAll("/", "_");
  const created = Math.floor(Date.now() / 1000);
  const parameters = `${COVERED};created=${created};keyid="${key.name}";alg="ed25519";nonce="${nonce}";tag="${TAG}"`;
  const [path, query = ""] = target.split("?", 2);
  const lines = [`"@method": ${method}`, `"@path": ${path}`, `"@query": ?${query}`, `"content-digest": ${digest}`, `"@signature-params": ${parameters}`];
  const signature = new Uint8Array(await crypto.subtle.sign("Ed25519", key.pair.privateKey, Uint8Array.from(utf8ToBytes(lines.join("\n")))));
  return { "content-digest": digest, "signature-input": `sig=${parameters}`, signature: `sig=:${base64(signature)}:` };
}

function base64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
