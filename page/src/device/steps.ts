/** Whether V is what the task makes of it: the start of a public seed, then the steps of the sums that are told.
 *
 * A device that answered the round before takes the step by itself and refuses another table; one that missed rounds takes
 * V as it comes, and goes on from there, and so are rows of items that came since taken: `deploy/device/steps.py`.
 */
import { table, type Table } from "../engine/linear";
import { firstState, momentsOf, nextState, type ServerState } from "../server/round";
import { enough, groupingOf } from "../secure/groups";
import type { Sums } from "../server/sums";
import { firstItems, type Catalogue } from "../wire/catalogue";
import { Refusal } from "../wire/packet";
import { matrixOf, type Request } from "../wire/request";
import { number, section, type TrainingConfig } from "../wire/settings";

/** Of the largest number of V: what other processors may compute otherwise, and tables in single precision lose. */
const CLOSE = 1e-4;

/** The server's state behind a request, as far as it is known here. */
export function checkedState(kept: ServerState | null, request: Request, catalogue: Catalogue): ServerState {
  const due = dueState(kept, request, catalogue);
  const V = matrixOf(request.tables["V"]!);
  const lastStep = matrixOf(request.tables["last_step"]!);
  if (!due) return { round: request.round, V, lastStep, moments: request.round ? momentsOf(lastStep, request.round - 1, request.config) : [] };
  check("V", due.V, V, request.round);
  if (request.stepTold) check("last_step", due.lastStep, lastStep, request.round);
  return { ...due, V, lastStep: longer(due.lastStep, V.rows), moments: due.moments.map((moment) => longer(moment, V.rows)) };
}

function check(name: string, due: Table, told: Table, round: number): void {
  const largest = due.data.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  if (due.data.some((value, at) => !(Math.abs(value - told.data[at]!) <= CLOSE * largest))) {
    throw new Refusal("task", `round ${round}: ${name} is not what the task and the told sum make of it`);
  }
}

/** What the state must be; null where this device has nothing to compute it from. */
function dueState(kept: ServerState | null, request: Request, catalogue: Catalogue): ServerState | null {
  if (request.round === 0) return firstState(request.config, firstItems(catalogue, request.task.size).known);
  if (!kept || kept.round === request.round) return kept;
  if (kept.round !== request.round - 1) return null;
  if (!request.summed) throw new Refusal("task", `round ${request.round}: the sum that V was moved by is not told`);
  const { groups } = request.summed;
  if (!enough(groupingOf(request.config, request.task, request.round - 1), groups.length)) throw new Refusal("task", `sums of ${groups.length} groups, and the task has others`);
  groups.forEach((sums) => checkRange(sums, request.config));
  if (groups.some(({ total }) => total.rows !== kept.V.rows)) throw new Refusal("task", "a sum of other items than the round was of");
  return nextState(kept, groups, firstItems(catalogue, kept.V.rows), request.config);
}

/** With zeros for items that came since. */
function longer(one: Table, rows: number): Table {
  const grown = table(rows, one.columns);
  grown.data.set(one.data);
  return grown;
}

/** Refuse a sum that so many people, each within the task's bounds, could not have made. */
function checkRange({ total, overall, clients }: Sums, config: TrainingConfig): void {
  if (section(config, "privacy").rule !== "none") return;
  const channel = section(config, "channel");
  const most = number(channel, "bound") * Math.max(clients, 0);
  const possible = total.data.every((value) => Math.abs(value) <= most) && overall >= 0 && overall <= number(channel, "largest_weight") * clients;
  if (!possible) throw new Refusal("task", `a sum that ${clients} people could not have made`);
}
