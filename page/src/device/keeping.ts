/** What a browser keeps as a device: `deploy/device/store.py`. What was spent outlives everything else. */
import type { ClientState } from "../secure/client";
import type { Contribution } from "../secure/ring";
import type { ServerState } from "../server/round";
import type { DeviceKey } from "../wire/signatures";
import { Database, type Change } from "./database";
import { POLICY, type Policy } from "./policy";

/** A model in whose rounds this device took part. */
export interface KeptModel {
  readonly settings: string;
  readonly catalogue: string;
  readonly items: number;
  readonly round: number;
  /** the server's, which this device makes its next step from; null of models of long ago */
  readonly state: ServerState | null;
  readonly config: string;
  readonly at: number;
  /** the ratings that uploads are made of: later changes wait for a batch */
  readonly rated: ReadonlyMap<number, number>;
  /** the last contribution, and the digest of what it answered; it leaves in sums alone */
  readonly digest: string;
  readonly contribution: Contribution | null;
}

/** One sum that this device has begun. */
export interface KeptSum {
  readonly model: string;
  readonly round: number;
  readonly V: string;
  readonly catalogue: string;
  /** digest of the task */
  readonly task: string;
  readonly config: string;
  readonly columns: number;
  readonly contribution: Contribution | null;
  /** gone as soon as the last answer is made */
  readonly state: ClientState | null;
  readonly reply: Uint8Array | null;
}

/** A message that left. */
export interface SentLine {
  readonly at: number;
  readonly model: string;
  readonly round: number;
  readonly stage: string;
  readonly bytes: number;
  readonly digest: string;
}

/** What this device added to a sum, before the masks: for its owner alone. */
export interface KeptVector {
  readonly model: string;
  readonly round: number;
  readonly session: string;
  readonly content: Uint8Array;
}

/** A release that was paid for. */
export interface Paid {
  readonly task: string;
  readonly release: number;
  readonly session: string;
  readonly epsilon: number;
}

/** A fact to be written. */
export function fact(name: string, value: unknown): Change {
  return { table: "facts", key: name, value };
}

const TABLES = ["facts", "models", "sums", "unmasked", "sent", "vectors"];
const VECTORS = 5;
const MODELS = 3;

export class Keeping {
  private readonly database: Database;
  private readonly spending: Database;

  constructor(server: string) {
    this.database = new Database(`fedrecplus-device:${server}`, TABLES);
    this.spending = new Database(`fedrecplus-spent:${server}`, ["ledger"]);
  }

  fact<T>(name: string): Promise<T | undefined> {
    return this.database.get<T>("facts", name);
  }

  async setFact(name: string, value: unknown): Promise<void> {
    await this.write([fact(name, value)]);
  }

  key(): Promise<DeviceKey | undefined> {
    return this.fact<DeviceKey>("key");
  }

  async policy(): Promise<Policy> {
    return { ...POLICY, ...(await this.fact<Partial<Policy>>("policy")) };
  }

  model(name: string): Promise<KeptModel | undefined> {
    return this.database.get("models", name);
  }

  models(): Promise<Map<IDBValidKey, KeptModel>> {
    return this.database.all("models");
  }

  sum(session: string): Promise<KeptSum | undefined> {
    return this.database.get("sums", session);
  }

  sums(): Promise<Map<IDBValidKey, KeptSum>> {
    return this.database.all("sums");
  }

  /** V → the sum over it that was unmasked with this device's help. */
  unmasked(): Promise<Map<IDBValidKey, { model: string; task: string; round: number; session: string; survivors: string }>> {
    return this.database.all("unmasked");
  }

  /** Digests of the tasks that the person has agreed to. */
  async tasks(): Promise<readonly string[]> {
    return (await this.fact<string[]>("tasks")) ?? [];
  }

  async sent(): Promise<SentLine[]> {
    return [...(await this.database.all<SentLine>("sent")).values()];
  }

  async vectors(): Promise<KeptVector[]> {
    return [...(await this.database.all<KeptVector>("vectors")).values()];
  }

  write(changes: readonly Change[]): Promise<void> {
    return this.database.write(changes);
  }

  /** A line of the log, to be written before the message goes. */
  async sentLine(line: SentLine): Promise<Change> {
    return { table: "sent", key: 1 + (await this.database.lastKey("sent")), value: line };
  }

  /** The vector of a sum; the oldest go. */
  async vectorLine(vector: KeptVector): Promise<Change[]> {
    const keys = ([...(await this.database.all("vectors")).keys()] as number[]).sort((a, b) => a - b);
    const old = keys.slice(0, Math.max(keys.length - VECTORS + 1, 0));
    return [...old.map((key) => ({ table: "vectors", key })), { table: "vectors", key: 1 + Math.max(0, ...keys), value: vector }];
  }

  /** Models of long ago keep their settings, which later requests are held to, and nothing else. */
  async withoutOldTables(newest: string): Promise<Change[]> {
    const others = [...(await this.models())].filter(([name]) => name !== newest).sort(([, a], [, b]) => b.at - a.at);
    return others.slice(MODELS - 1).map(([key, model]) => ({ table: "models", key, value: { ...model, state: null, contribution: null } }));
  }

  async ledger(): Promise<Paid[]> {
    return [...(await this.spending.all<Paid>("ledger")).values()];
  }

  /** ε that all tasks together have cost, at most. */
  async spent(): Promise<number> {
    return (await this.ledger()).reduce((total, { epsilon }) => total + epsilon, 0);
  }

  /** Note a release before it leaves. */
  async book(paid: Paid): Promise<void> {
    await this.spending.write([{ table: "ledger", key: 1 + (await this.spending.lastKey("ledger")), value: paid }]);
  }

  /** Everything goes but what was spent. */
  forget(): Promise<void> {
    return this.database.remove();
  }
}
