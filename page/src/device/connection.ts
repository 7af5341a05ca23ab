/** The server as this device calls it: every request signed, errors by what to do next. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { Refusal } from "../wire/packet";
import { signedHeaders, type DeviceKey } from "../wire/signatures";

const LARGEST = 64 * 2 ** 20;
const NOTHING = new Uint8Array(0);

/** The server refuses this request: asking again the same way is in vain. */
export class Rejected extends Error {
  constructor(
    readonly status: number,
    why: string,
  ) {
    super(`${status}: ${why.slice(0, 200)}`);
  }
}

/** The server didn't answer, or couldn't: try again. */
export class NoAnswer extends Error {}

export class Connection {
  constructor(
    private readonly server: string,
    private readonly key: DeviceKey | null,
  ) {}

  /** One call; empty where the server has nothing to say. */
  async call(method: string, target: string, body: Uint8Array<ArrayBuffer> = NOTHING, more: RequestInit = {}): Promise<Uint8Array<ArrayBuffer>> {
    const headers = this.key ? await signedHeaders(this.key, method, target, body) : {};
    const how: RequestInit = { method, headers, credentials: "omit", ...(body.length ? { body } : {}), ...more };
    let reply: Response;
    let content: Uint8Array<ArrayBuffer>;
    try {
      reply = await fetch(this.server + target, how);
      content = new Uint8Array(await reply.arrayBuffer());
    } catch (error) {
      throw new NoAnswer(error instanceof Error ? error.message : String(error));
    }
    if (reply.status >= 500 || reply.status === 408 || reply.status === 429) throw new NoAnswer(`the server answered ${reply.status}`);
    if (content.length > LARGEST) throw new Rejected(reply.status, "an answer that is too long");
    if (!reply.ok) throw new Rejected(reply.status, new TextDecoder().decode(content));
    return content;
  }

  /** An object by the SHA-256 of its bytes. */
  async object(digest: string): Promise<Uint8Array> {
    const content = await this.call("GET", `/v1/objects/${digest}`);
    if (bytesToHex(sha256(content)) !== digest) throw new Refusal("request", "an object of another digest");
    return content;
  }
}
