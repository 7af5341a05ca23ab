/** How a cohort falls into groups with a sum each: `Grouping` in `parts/channel/_groups.py`. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, concatBytes, hexToBytes } from "@noble/hashes/utils.js";
import type { Task } from "../wire/task";
import { number, section, type TrainingConfig } from "../wire/settings";
import { numberBytes } from "./messages";

export interface Grouping {
  readonly count: number;
  /** what is drawn for: no two rounds of any task have one */
  readonly name: Uint8Array;
}

/** How a round's cohort falls into groups, by task and round; null where all are in one. */
export function groupingOf(config: TrainingConfig, task: Task, round: number): Grouping | null {
  const count = number(section(config, "channel"), "groups");
  return count === 1 || round < 0 ? null : { count, name: concatBytes(hexToBytes(task.digest), numberBytes(BigInt(round))) };
}

/** Who is in a client's group, of clients in ascending order. */
export function groupOf({ count, name }: Grouping, client: bigint, clients: readonly bigint[]): Set<bigint> {
  const everybody = sha256(concatBytes(name, ...clients.map(numberBytes)));
  const drawn = clients.map((one) => ({ one, by: bytesToHex(sha256(concatBytes(everybody, numberBytes(one)))) }));
  drawn.sort((a, b) => (a.by < b.by ? -1 : 1));
  const [size, longer] = [Math.floor(clients.length / count), clients.length % count];
  const place = drawn.findIndex(({ one }) => one === client);
  const group = place < longer * (size + 1) ? Math.floor(place / (size + 1)) : longer + Math.floor((place - longer * (size + 1)) / size);
  const start = group * size + Math.min(group, longer);
  return new Set(drawn.slice(start, start + size + (group < longer ? 1 : 0)).map(({ one }) => one));
}

/** Whether so many groups' sums may stand for all: most of them. */
export function enough(grouping: Grouping | null, groups: number): boolean {
  const count = grouping?.count ?? 1;
  return groups <= count && 2 * groups > count;
}
