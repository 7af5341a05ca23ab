/** Whether V is what the task makes of it: the start of a public seed, then the steps of the sums that are told: `deploy/device/steps.py`.
 *
 * A device that answered the round before takes the step by itself and refuses another table; one that missed rounds fetches
 * their sums, as many as its server keeps; who missed more takes V as it comes, and goes on from there.
 */
import { row, type Table } from "../engine/linear";
import { firstState, grownState, momentCount, momentsOf, nextState, type ServerState } from "../server/round";
import { enough, groupingOf } from "../secure/groups";
import { ringOptions } from "../secure/ring";
import type { Sums } from "../server/sums";
import { firstItems, type Catalogue } from "../wire/catalogue";
import { isRecord, Refusal } from "../wire/packet";
import { matrixOf, type Request } from "../wire/request";
import { section, type TrainingConfig } from "../wire/settings";
import { missedSums, type Past } from "./missed";

/** Of the largest number of V: what other processors may compute otherwise, and tables in single precision lose. */
const CLOSE = 1e-4;

/** The server's state behind a request, as far as it is known here. */
export async function checkedState(kept: ServerState | null, request: Request, catalogue: Catalogue, past: Past): Promise<ServerState> {
  const due = await dueState(kept, request, catalogue, past);
  const V = matrixOf(request.tables["V"]!);
  const lastStep = matrixOf(request.tables["last_step"]!);
  if (!due) {
    const before = request.round - 1;
    return { round: request.round, V, lastStep, moments: request.round ? momentsOf(lastStep, before, ofRun(request.config, entryOf(request.leaf), before)) : [] };
  }
  check("V", due.V, V, request.round);
  if (request.stepTold) check("last_step", due.lastStep, lastStep, request.round);
  return { ...due, V };
}

function check(name: string, due: Table, told: Table, round: number): void {
  const largest = due.data.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  if (due.data.some((value, at) => !(Math.abs(value - told.data[at]!) <= CLOSE * largest))) {
    throw new Refusal("task", `round ${round}: ${name} is not what the task and the told sum make of it`);
  }
}

/** What the state must be; null where this device has nothing to compute it from. */
async function dueState(kept: ServerState | null, request: Request, catalogue: Catalogue, past: Past): Promise<ServerState | null> {
  const { config, task, round } = request;
  const begun = task.first <= 0 ? firstState(config, firstItems(catalogue, task.size).known) : null;
  if (kept && kept.round > round) throw new Refusal("task", `round ${round} is asked for, and round ${kept.round} was answered before`);
  const known = round === 0 ? begun : (kept ?? begun);
  if (!known || known.round === round) return known && grownState(known, catalogue.known, config);
  const missed = Array.from({ length: round - 1 - known.round }, (_, place) => known.round + place);
  if (missed.length > task.kept || known.moments.length < momentCount(config)) return null;
  if (!request.summed) throw new Refusal("task", `round ${round}: the sum that V was moved by is not told`);
  const told = [...(await missedSums(request, catalogue, missed, past)), { groups: request.summed.groups, entry: entryOf(request.leaf) }];
  let state = known;
  for (const { groups, entry } of told) {
    checkGroups(groups, state.round, request, catalogue);
    state = stepped(state, groups, catalogue, ofRun(config, entry, state.round));
  }
  return grownState(state, catalogue.known, config);
}

/** The settings with as many rounds as the log says that a step's run had: its last steps are smaller. */
function ofRun(config: TrainingConfig, entry: Record<string, unknown>, round: number): TrainingConfig {
  const server = section(config, "server");
  const rounds = Number(entry["rounds"] || server.values["rounds"]);
  if (!Number.isSafeInteger(rounds) || rounds <= round || rounds > Number(server.values["rounds"])) throw new Refusal("task", `a step of round ${round} in a run of ${rounds} rounds`);
  return { ...config, sections: { ...config.sections, server: { ...server, values: { ...server.values, rounds } } } };
}

/** What a round's entry says; nothing where its task has no log. */
function entryOf(leaf: string): Record<string, unknown> {
  const entry: unknown = JSON.parse(leaf || "{}");
  return isRecord(entry) ? entry : {};
}

/** After a round over the items that there were, which are as many as the sums'. */
function stepped(state: ServerState, groups: readonly Sums[], catalogue: Catalogue, config: TrainingConfig): ServerState {
  const items = groups[0]!.total.rows;
  if (items < state.V.rows) throw new Refusal("task", "a sum of fewer items than there were");
  const asItWas = firstItems(catalogue, items);
  return nextState(grownState(state, asItWas.known, config), groups, asItWas, config);
}

/** Refuse sums of fewer groups than stand for all, and those that so many people could not have made. */
function checkGroups(groups: readonly Sums[], round: number, { config, task }: Request, catalogue: Catalogue): void {
  if (!enough(groupingOf(config, task, round), groups.length)) throw new Refusal("task", `sums of ${groups.length} groups, and the task has others`);
  groups.forEach((sums) => checkRange(sums, config, catalogue));
}

/** Refuse a sum that so many people, each within the task's bounds, could not have made, and one with rows that are never summed. */
function checkRange({ total, overall, clients, statistic }: Sums, config: TrainingConfig, catalogue: Catalogue): void {
  if (section(config, "privacy").rule !== "none") return;
  const [options, people] = [ringOptions(config), Math.max(clients, 0)];
  const within = (values: Float64Array, bound: number): boolean => values.every((value) => Math.abs(value) <= bound * people);
  const possible = within(total.data, options.bound) && within(statistic, options.statisticBound) && within(Float64Array.of(overall), options.largestWeight);
  const rare = Array.from({ length: total.rows }, (_, item) => catalogue.known.popularity[item]! < options.fewestContributors);
  const summed = rare.some((left, item) => left && row(total, item).some((value) => value !== 0));
  if (!possible || overall < 0 || summed) throw new Refusal("task", `a sum that ${clients} people could not have made`);
}
