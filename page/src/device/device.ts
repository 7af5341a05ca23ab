/** A browser as a device: it joins by a link, asks for work while the page is open, and answers in place. */
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { seal } from "../wire/sealing";
import { isRecord, packed, packetBytes, packetOf, Refusal, unpacked, type Packet } from "../wire/packet";
import { newKey } from "../wire/signatures";
import { Connection, NoAnswer, Rejected } from "./connection";
import { Keeping } from "./keeping";
import type { Past } from "./missed";
import { answer, keptCatalogue, type Ratings } from "./round";

const WAIT = 25;
/** Answers go at whole seconds after their questions: how long a device computes tells of how much it has. */
const ANSWER_STEP = 1000;
const SHORTEST = 500;
const LONGEST = 30_000;
const UNKNOWN = 401;

/** A question as the server hands it out: `deploy/wire/questions.py`. */
interface WorkItem {
  readonly id: number | bigint;
  readonly node: number | bigint;
  readonly seal: Uint8Array;
  readonly packet: Uint8Array;
  readonly objects: Readonly<Record<string, string>>;
}

/** What the person is told: that a round was answered, or what is wrong. */
export type Told = (event: { readonly problem?: string; readonly answered?: Packet }) => void;

export class BrowserDevice {
  readonly keeping: Keeping;
  private connection: Connection | null = null;
  private stopped: AbortController | null = null;
  private after = "0";

  constructor(
    private readonly server: string,
    private readonly ratings: Ratings,
    private readonly told: Told,
  ) {
    this.keeping = new Keeping(server);
  }

  /** What the server's run asks, for whoever thinks of joining. */
  async offer(): Promise<Packet> {
    return packetOf(await new Connection(this.server, null).call("GET", "/v1/offer"));
  }

  async joined(): Promise<boolean> {
    return Boolean(await this.keeping.fact("joined"));
  }

  /** Join by an invitation's code, with a key of this browser's own. */
  async join(code: string): Promise<void> {
    const key = (await this.keeping.key()) ?? (await newKey());
    await this.keeping.setFact("key", key);
    await new Connection(this.server, key).call("POST", "/v1/join", packed({ code, name: "" }));
    await this.keeping.setFact("joined", true);
  }

  /** Take part while the page is open; one tab of this browser does. */
  async takePart(): Promise<void> {
    const key = await this.keeping.key();
    if (!key || this.stopped) return;
    const stopped = (this.stopped = new AbortController());
    this.connection = new Connection(this.server, key);
    await navigator.locks.request(`fedrecplus-device:${this.server}`, { signal: stopped.signal }, () => this.work(stopped.signal)).catch(() => undefined);
  }

  /** Stop asking for work, and say so to the server: nobody waits for this device. */
  async stop(): Promise<void> {
    this.stopped?.abort();
    this.stopped = null;
    await this.connection?.call("DELETE", "/v1/work", undefined, { keepalive: true }).catch(() => undefined);
  }

  /** Take part no more; key and ratings stay. */
  async leave(): Promise<void> {
    await this.stop();
    await this.keeping.setFact("consent", false);
  }

  /** Everything goes but what was spent. */
  async forget(): Promise<void> {
    await this.stop();
    await this.keeping.forget();
  }

  private async work(signal: AbortSignal): Promise<void> {
    let pause = 0;
    while (!signal.aborted) {
      try {
        pause = (await this.step(signal)) ? 0 : SHORTEST;
      } catch (error) {
        if (signal.aborted) return;
        this.told({ problem: problemOf(error) });
        pause = Math.min(Math.max(2 * pause, SHORTEST), LONGEST);
      }
      if (pause) await new Promise((resolve) => setTimeout(resolve, pause * (0.8 + 0.4 * Math.random())));
    }
  }

  /** Ask for work and answer it; whether there was any. */
  private async step(signal: AbortSignal): Promise<boolean> {
    const content = await this.connection!.call("GET", `/v1/work?wait=${WAIT}&after=${this.after}`, undefined, { signal });
    if (!content.length) return false;
    const asked = performance.now();
    const question = questionOf(content);
    const packet = await this.whole(question);
    const reply = await answer(packet, this.keeping, this.ratings, this.past(), (problem) => this.told({ problem }));
    const sealed = seal(packetBytes(reply), question.seal, utf8ToBytes(`${question.id} ${question.node}`));
    const taken = performance.now() - asked;
    await new Promise((resolve) => setTimeout(resolve, ANSWER_STEP * Math.ceil(taken / ANSWER_STEP) - taken));
    try {
      await this.connection!.call("POST", `/v1/work/${question.id}`, Uint8Array.from(sealed));
    } catch (error) {
      if (!(error instanceof Rejected)) throw error; // else a round went on without this device
    }
    this.after = String(question.id);
    this.told({ answered: packet });
    return true;
  }

  /** The packet with its objects, but for a catalogue that is known.
   *
   * V is among them, though this device makes it from the sum: the last digits of its own differ, and the sum's name has all of them.
   */
  private async whole(question: WorkItem): Promise<Packet> {
    const packet = packetOf(question.packet);
    const known = (await keptCatalogue(this.keeping))?.digest === packet.facts["catalogue"];
    const arrays = { ...packet.arrays };
    for (const [kind, digest] of Object.entries(question.objects)) {
      if (kind === "catalogue" && known) continue;
      Object.assign(arrays, packetOf(await this.connection!.object(digest)).arrays);
    }
    return { facts: packet.facts, arrays };
  }

  /** What the server keeps of rounds that this device missed. */
  private past(): Past {
    return {
      log: async (task) => {
        const told = unpacked(await this.connection!.call("GET", `/v1/log/${task}`).catch(refusedLog));
        if (!isRecord(told) || !isTexts(told["entries"]) || !isTexts(told["sums"])) throw new Refusal("task", "the server speaks another protocol");
        return { entries: told["entries"], sums: told["sums"] };
      },
      object: (digest) => this.connection!.object(digest),
    };
  }
}

function refusedLog(error: unknown): never {
  throw error instanceof Rejected ? new Refusal("task", `what the server should keep of missed rounds isn't there (${error.message})`) : error;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

function questionOf(content: Uint8Array): WorkItem {
  const question = unpacked(content);
  if (!isRecord(question) || !(question["seal"] instanceof Uint8Array) || !(question["packet"] instanceof Uint8Array) || !isRecord(question["objects"])) {
    throw new Refusal("request", "the server speaks another protocol");
  }
  return question as unknown as WorkItem;
}

function problemOf(error: unknown): string {
  if (error instanceof Rejected && error.status === UNKNOWN) return "not let in: this browser's key is not admitted, or its clock is wrong";
  if (error instanceof NoAnswer) return `the server doesn't answer (${error.message}); trying on`;
  return error instanceof Error ? error.message : String(error);
}
