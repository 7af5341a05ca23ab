/** What a device does with a request, between the packet that came and the packet that goes: `deploy/device/round.py`. */
import { bytesToHex } from "@noble/hashes/utils.js";
import type { Table } from "../engine/linear";
import type { ServerState } from "../server/round";
import { statisticsOf } from "../privacy/person";
import type { Contribution } from "../secure/ring";
import { statisticsBudget, termsOf } from "../secure/terms";
import { catalogueOf, firstItems, type Catalogue } from "../wire/catalogue";
import { Refusal, VERSION, type Packet } from "../wire/packet";
import { requestDigest, requestOf, rounds, STATISTICS_ROUND, statisticsDigest, type Request } from "../wire/request";
import { configOf, fixedSettings, section, type TrainingConfig } from "../wire/settings";
import { isLaterStage } from "../wire/stages";
import { checkLog, checkTask } from "../wire/task";
import { contributionOf, ratedItems, withBatch } from "./contribution";
import { NoAnswer } from "./connection";
import type { Change } from "./database";
import { fact, type Keeping, type KeptModel } from "./keeping";
import type { Past } from "./missed";
import { askedBudget } from "./budget";
import { checkBudget, checkNoisePolicy, checkPolicy, type Policy } from "./policy";
import { checkedState } from "./steps";
import { advertise, answerStage, checkSum } from "./sums";

export type Ratings = () => Promise<ReadonlyMap<string, number>>;

/** The reply to a request, whatever happens. What went wrong is said here in words, and to the server in one. */
export async function answer(packet: Packet, keeping: Keeping, ratings: Ratings, past: Past, said: (problem: string) => void): Promise<Packet> {
  try {
    return await answered(packet, keeping, ratings, past, said);
  } catch (error) {
    if (error instanceof NoAnswer) throw error; // what was missed can't be fetched: there is no reply yet
    said(error instanceof Error ? error.message : String(error));
    const reason = error instanceof Refusal ? error.kind : error instanceof DOMException ? "storage" : "fault";
    return { facts: { version: VERSION, refusal: reason }, arrays: {} };
  }
}

async function answered(packet: Packet, keeping: Keeping, ratings: Ratings, past: Past, said: (problem: string) => void): Promise<Packet> {
  if (!(await keeping.fact<boolean>("consent"))) throw new Refusal("paused", "this device takes no part");
  if (isLaterStage(packet)) return answerStage(keeping, packet, await keptCatalogue(keeping));
  const request = requestOf(packet);
  const catalogue = await catalogueFor(keeping, request);
  const kept = await keeping.model(request.model);
  checkUnchanged(kept, request, catalogue);
  checkPolicy(await keeping.policy(), request.config, catalogue);
  await checkAgreed(keeping, request, catalogue);
  const state = request.round === STATISTICS_ROUND ? checkStatistics(kept, request) : await checkRound(keeping, kept, request, catalogue, past);
  const terms = await checkSum(keeping, request, catalogue);
  const own = await ratings();
  const noted: Change[] = [...(await addedNote(keeping, catalogue)), fact("catalogue", catalogue.arrays)];
  if (request.log) noted.push(fact(`log ${request.task.digest}`, request.log.leaves.map(bytesToHex)));
  const contribution = state
    ? await computed(keeping, kept, request, state, catalogue, own, said, noted)
    : countsOf(ratedItems(own, catalogue), request);
  return advertise(keeping, request, terms, contribution, noted);
}

/** Refuse a question of a task that the person hasn't agreed to, and one that is none of its task's. */
async function checkAgreed(keeping: Keeping, request: Request, catalogue: Catalogue): Promise<void> {
  const { task } = request;
  if (!(await keeping.tasks()).includes(task.digest)) throw new Refusal("task", `task ${task.digest.slice(0, 16)} is not agreed to here`);
  checkTask(task, request.model, request.config, request.round, catalogue);
}

/** Refuse an offer that this page would not answer, and one whose settings, which a person reads, are not the task's, which the person agrees to. */
export function checkOffer(offer: Request, catalogue: Catalogue, policy: Policy): void {
  checkTask(offer.task, offer.model, offer.config, STATISTICS_ROUND, catalogue);
  checkPolicy(policy, offer.config, catalogue);
  checkBudget(policy, askedBudget(offer.config, offer.task.first), 0, 0);
  checkNoisePolicy(policy, termsOf(offer.config, catalogue, 0, offer.tables["V"]!.shape[1]!));
}

/** The catalogue that was kept last; null before the first. */
export async function keptCatalogue(keeping: Keeping): Promise<Catalogue | null> {
  const arrays = await keeping.fact<Catalogue["arrays"]>("catalogue");
  return arrays ? catalogueOf(arrays) : null;
}

/** The catalogue of a request: the one that is known here, or the one that came along, which isn't kept yet. */
async function catalogueFor(keeping: Keeping, request: Request): Promise<Catalogue> {
  const kept = await keptCatalogue(keeping);
  const catalogue = kept?.digest === request.catalogue ? kept : request.attached;
  if (!catalogue || catalogue.digest !== request.catalogue) throw new Refusal("catalogue", "the server's catalogue is not known here");
  if (catalogue.ids.length !== request.tables["V"]!.shape[0]) throw new Refusal("request", "V has another number of items than the catalogue");
  const rated = await keeping.fact<string>("scale");
  if (rated && rated !== scaleText(catalogue)) throw new Refusal("scale", `ratings here are on the scale ${rated}, the server's on ${scaleText(catalogue)}`);
  return catalogue;
}

/** The newest table that a server has sent, with its settings; null where its catalogue is gone or nothing came. */
export async function newestTable(keeping: Keeping): Promise<{ V: Table; config: TrainingConfig; catalogue: Catalogue; round: number } | null> {
  const [newest] = [...(await keeping.models()).values()].sort((a, b) => b.at - a.at);
  const catalogue = await keptCatalogue(keeping);
  if (!newest?.state || catalogue?.digest !== newest.catalogue) return null;
  return { V: newest.state.V, config: configOf(newest.config), catalogue, round: newest.round };
}

/** The scale that ratings are given on, as text. */
export function scaleText({ scale }: Catalogue): string {
  return `${scale.low}:${scale.high}:${scale.step}`;
}

/** Refuse other settings or another catalogue for a model that began: they could undo what the first ones gave. Items may come at its end. */
export function checkUnchanged(kept: KeptModel | undefined, request: Request, catalogue: Catalogue): void {
  if (kept && kept.settings !== fixedSettings(request.config)) throw new Refusal("settings", "the server changed the settings of a model that began");
  if (!kept || kept.catalogue === request.catalogue) return;
  if (firstItems(catalogue, kept.items).digest !== kept.catalogue) throw new Refusal("settings", "the server changed the items of a model that began: it may only add some");
}

/** What was added to the items, for the person to see. */
async function addedNote(keeping: Keeping, catalogue: Catalogue): Promise<Change[]> {
  const earlier = await keptCatalogue(keeping);
  const known = earlier?.ids.length ?? 0;
  if (!earlier || known === catalogue.ids.length || firstItems(catalogue, known).digest !== earlier.digest) return [];
  const names = catalogue.titles.length ? catalogue.titles : catalogue.ids;
  return [fact("added", [...((await keeping.fact<string[]>("added")) ?? []), ...names.slice(known)])];
}

/** Refuse a sum that no noise would come to, and one after the model's first round. */
function checkStatistics(kept: KeptModel | undefined, request: Request): null {
  if (kept) throw new Refusal("policy", "statistics are summed before the first round, and never again");
  statisticsBudget(request.config);
  return null;
}

/** Refuse a V that the task doesn't make, a round that its log doesn't have, and more rounds than the budget is made for. */
async function checkRound(keeping: Keeping, kept: KeptModel | undefined, request: Request, catalogue: Catalogue, past: Past): Promise<ServerState> {
  const model = section(request.config, "model").values;
  const columns = ["factors", "interaction_factors"].reduce((total, name) => total + Number(model[name] ?? 0), 0);
  const V = request.tables["V"]!.shape;
  if (V[1] !== columns) throw new Refusal("request", `V has ${V[1]} columns, not ${columns}`);
  checkLog(request.task, request.log, request, (await keeping.fact<string[]>(`log ${request.task.digest}`)) ?? []);
  const state = await checkedState(kept?.state ?? null, request, catalogue, past);
  const statistics = statisticsDigest(request.model);
  const done = [...(await keeping.unmasked())].filter(([key, sum]) => sum.model === request.model && key !== statistics).length;
  if (section(request.config, "privacy").rule !== "none" && done >= rounds(request.config)) throw new Refusal("policy", "this model's budget is spent");
  return state;
}

function countsOf(rated: ReadonlyMap<number, number>, request: Request): Contribution | null {
  const { cap } = statisticsBudget(request.config);
  return rated.size ? statisticsOf(Int32Array.from(rated.keys()), Float64Array.from(rated.values()), cap) : null;
}

/** The person's contribution, computed, and to be kept with what is `noted`. A V made to break the computation gets zeros, and nobody is told. */
async function computed(
  keeping: Keeping, kept: KeptModel | undefined, request: Request, state: ServerState, catalogue: Catalogue, ratings: ReadonlyMap<string, number>,
  said: (problem: string) => void, noted: Change[],
): Promise<Contribution | null> {
  const digest = requestDigest(request);
  if (kept?.digest === digest && kept.round === request.round) return kept.contribution; // asked again: the same, not one made anew
  const rated = withBatch(kept?.rated, ratedItems(ratings, catalogue));
  let contribution: Contribution | null = null;
  try {
    contribution = contributionOf(rated, request, catalogue);
  } catch (error) {
    said(`nothing can be computed from what the server sent, and zeros are added to the sum: ${String(error)}`);
  }
  const model: KeptModel = {
    settings: fixedSettings(request.config), catalogue: request.catalogue, items: catalogue.ids.length, round: request.round, state,
    config: request.configText, at: Date.now(), rated, digest, contribution,
  };
  noted.push({ table: "models", key: request.model, value: model }, ...(await keeping.withoutOldTables(request.model)));
  return contribution;
}
