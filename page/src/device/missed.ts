/** The sums of rounds that this device missed, as its server keeps them: each must be the one that the log names: `deploy/device/missed.py`. */
import { bytesToHex } from "@noble/hashes/utils.js";
import type { Sums } from "../server/sums";
import { firstItems, type Catalogue } from "../wire/catalogue";
import { isRecord, packetOf, Refusal } from "../wire/packet";
import type { Request } from "../wire/request";
import { sumsOf } from "../wire/steps";
import { leafHash } from "../wire/task";
import { NoAnswer } from "./connection";

/** What a server keeps of a task's rounds. */
export interface Past {
  /** the entries of a task's log, and beside each the digest of the object with its sum */
  log(task: string): Promise<{ readonly entries: readonly string[]; readonly sums: readonly string[] }>;
  object(digest: string): Promise<Uint8Array>;
}

/** A round's sums, and the entry in the log that names them. */
interface Missed {
  readonly groups: readonly Sums[];
  readonly entry: Record<string, unknown>;
}

/** The sums of these rounds, which a request's log names; a refusal where one of them isn't to be had. */
export async function missedSums(request: Request, catalogue: Catalogue, rounds: readonly number[], past: Past): Promise<Missed[]> {
  if (!rounds.length) return [];
  if (!request.log) throw new Refusal("task", `the sums of ${rounds.length} missed rounds are not told`);
  const { entries, sums } = await past.log(request.task.digest);
  const missed: Missed[] = [];
  for (const round of rounds) {
    const place = round + 1 - request.task.first;
    const [before, entry] = [entryOf(entries, place, request), entryOf(entries, place + 1, request)];
    const told = await sumIn(sums[place + 1], request, catalogue, past);
    const items = told && firstItems(catalogue, told.groups[0]!.total.rows).digest;
    if (!told || told.digest !== entry["sum"] || items !== before["items"] || before["round"] !== round) {
      throw new Refusal("task", `the sum of round ${round} is not the one in the log, or its server lacks it`);
    }
    missed.push({ groups: told.groups, entry });
  }
  return missed;
}

/** What a log that was checked says at a place; nothing where its server says otherwise. */
function entryOf(entries: readonly string[], place: number, { log }: Request): Record<string, unknown> {
  const [entry, leaf] = [entries[place], log?.leaves[place]];
  if (entry === undefined || !leaf || bytesToHex(leafHash(entry)) !== bytesToHex(leaf)) return {};
  const facts: unknown = JSON.parse(entry);
  return isRecord(facts) ? facts : {};
}

async function sumIn(digest: string | undefined, { tables }: Request, { ids }: Catalogue, past: Past): Promise<ReturnType<typeof sumsOf>> {
  if (!digest) return null;
  try {
    return sumsOf(packetOf(await past.object(digest)).arrays, { rows: ids.length, columns: tables["V"]!.shape[1]! });
  } catch (error) {
    if (error instanceof NoAnswer) throw error; // it is asked again
    return null;
  }
}
