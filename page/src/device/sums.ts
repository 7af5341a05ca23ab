/** A device's part in a secure sum: what it keeps between the stages, and when it lets its secrets go: `deploy/device/sums.py`.
 *
 * The answer to the last stage is the commit point: with it goes a note of which survivors' sum was unmasked. Nobody gets
 * another sum over the same V with other survivors.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import { table } from "../engine/linear";
import { uniformOf } from "../privacy/noise";
import * as client from "../secure/client";
import { groupingOf } from "../secure/groups";
import { drawing } from "../secure/keys";
import { encode, vectorBytes, type Contribution, type RingVector } from "../secure/ring";
import { addShare, encodingOf, leastNodesOf, leastPersonsOf, survivingOf, termsOf, type SumTerms } from "../secure/terms";
import type { Catalogue } from "../wire/catalogue";
import { packetHash, Refusal, sizeOf, type Packet } from "../wire/packet";
import { checkVersion, sumSession, tableDigest, whole, type Request } from "../wire/request";
import { configOf, number, section } from "../wire/settings";
import { FIRST, maskContext, messageOf, stageOf, stagePacket, type Stage } from "../wire/stages";
import { checkCost, taskOf } from "./budget";
import type { Change } from "./database";
import type { Keeping, KeptSum, SentLine } from "./keeping";
import { checkNoisePolicy } from "./policy";

/** Refuse to begin a sum, by what is asked and what was unmasked before. */
export async function checkSum(keeping: Keeping, request: Request, catalogue: Catalogue): Promise<SumTerms> {
  if (request.pinned) throw new Refusal("sum", "identities are pinned at the server, and a page has none");
  await refuseSecond(keeping, tableDigest(request), request.task.digest, request.round);
  const terms = termsOf(request.config, catalogue, request.round, request.tables["V"]!.shape[1]!);
  checkNoisePolicy(await keeping.policy(), terms);
  await checkCost(keeping, request.model, request.config, request.round, terms);
  return terms;
}

/** Begin a sum with fresh keys, together with what was `noted` of the round. Secrets of this model's earlier sums are deleted. */
export async function advertise(keeping: Keeping, request: Request, terms: SumTerms, contribution: Contribution | null, noted: readonly Change[]): Promise<Packet> {
  const policy = await keeping.policy();
  const channel = section(request.config, "channel");
  const least = Math.max(policy.leastCohort, number(channel, "least_cohort"), leastNodesOf(terms), leastPersonsOf(terms));
  const { state, answer } = client.advertise(client.newClient(sumSession(request), least, survivingOf(terms), groupingOf(request.config, request.task, request.round)));
  const stage: Stage = { model: request.model, round: request.round, session: request.session, name: FIRST };
  const reply = stagePacket(stage, answer, { persons: 1 });
  const sum: KeptSum = {
    model: request.model, round: request.round, V: tableDigest(request), catalogue: request.catalogue, task: request.task.digest, config: request.configText,
    columns: request.tables["V"]!.shape[1]!, contribution, state, reply: null,
  };
  const others = [...(await keeping.sums())].filter(([, kept]) => kept.model === request.model);
  const gone: Change[] = others.map(([key]) => ({ table: "sums", key }));
  await keeping.write([...noted, ...gone, { table: "sums", key: request.session, value: sum }, await keeping.sentLine(lineOf(stage, reply))]);
  return reply;
}

/** The reply to a later stage of a sum that this device has begun. */
export async function answerStage(keeping: Keeping, packet: Packet, catalogue: Catalogue | null): Promise<Packet> {
  checkVersion(packet.facts["version"]);
  const [stage, message] = [stageOf(packet.facts), messageOf(packet)];
  const sum = await keeping.sum(stage.session);
  if (!sum) throw new Refusal("sum", "a sum that this device has not begun, or has given up");
  if (sum.model !== stage.model || sum.round !== stage.round) throw new Refusal("sum", "a sum of another model or round");
  if (!sum.state) return again(keeping, stage, sum, message);
  const changes: Change[] = [];
  let answered: client.Answered;
  if (stage.name === "share") answered = client.share(sum.state, message);
  else if (stage.name === "mask") answered = await masked(keeping, sum, sum.state, packet, message, catalogue, changes);
  else if (stage.name === "reveal") answered = await revealed(keeping, sum, sum.state, message, changes);
  else throw new Refusal("sum", "without pinned identities there is no consistency round");
  const reply = stagePacket(stage, answered.answer);
  const last = stage.name === "reveal";
  const kept = { ...sum, state: last ? null : answered.state, reply: last ? answered.answer : null };
  await keeping.write([...changes, { table: "sums", key: stage.session, value: kept }, await keeping.sentLine(lineOf(stage, reply))]);
  return reply;
}

/** The vector under its masks; what it costs is noted before it leaves. */
async function masked(
  keeping: Keeping, sum: KeptSum, state: client.ClientState, packet: Packet, message: Uint8Array, catalogue: Catalogue | null, changes: Change[],
): Promise<client.Answered> {
  const persons = whole(packet.facts["persons"], "persons");
  if (persons < 1) throw new Refusal("request", "a sum of nobody");
  if (!catalogue || catalogue.digest !== sum.catalogue) throw new Refusal("sum", "a catalogue that is gone");
  const config = configOf(sum.config);
  const terms = termsOf(config, catalogue, sum.round, sum.columns);
  const cost = "mask" in state.done ? null : await checkCost(keeping, sum.model, config, sum.round, terms);
  const vector = vectorOf(sum.contribution, state, terms, persons);
  const answered = await client.mask(state, message, vector, maskContext(persons));
  if (cost === null) return answered;
  const session = String(packet.facts["session"]);
  // of this very sum it may stand there: a tab was closed before its answer was kept
  const paid = (await keeping.ledger()).some((line) => line.session === session);
  if (!paid) await keeping.book({ task: taskOf(sum.model, config), release: sum.round, session, epsilon: cost });
  changes.push(...(await keeping.vectorLine({ model: sum.model, round: sum.round, session, content: vectorBytes(vector) })));
  return answered;
}

async function revealed(keeping: Keeping, sum: KeptSum, state: client.ClientState, message: Uint8Array, changes: Change[]): Promise<client.Answered> {
  const answered = client.reveal(state, message);
  await refuseSecond(keeping, sum.V, sum.task, sum.round);
  const session = bytesToHex(state.session);
  changes.push({ table: "unmasked", key: sum.V, value: { model: sum.model, task: sum.task, round: sum.round, session, survivors: bytesToHex(sha256(message)) } });
  return answered;
}

/** The person's contribution, clipped and encoded, with this device's share of the noise. */
function vectorOf(contribution: Contribution | null, state: client.ClientState, terms: SumTerms, persons: number): RingVector {
  const nodes = client.cohortOf(state);
  const encoding = encodingOf(terms, persons, nodes);
  const key = new DataView(client.secretOf(state, "rounding").slice().buffer).getBigUint64(0);
  const vector = encode(contribution ?? nothing(terms), encoding, key);
  addShare(terms, vector, encoding, nodes, uniformOf(drawing(client.secretOf(state, "noise"))));
  return vector;
}

/** What somebody adds who has rated nothing that the server knows: a person in the count, which no noise covers, and zeros. */
export function nothing({ layout, noise }: SumTerms): Contribution {
  return { items: new Int32Array(0), delta: table(0, layout.columns), statistic: new Float64Array(0), weight: noise ? 0 : null };
}

/** The last answer once more; its secrets are deleted, so no other question has an answer. */
async function again(keeping: Keeping, stage: Stage, sum: KeptSum, message: Uint8Array): Promise<Packet> {
  const done = (await keeping.unmasked()).get(sum.V);
  if (stage.name !== "reveal" || done?.survivors !== bytesToHex(sha256(message)) || !sum.reply) throw new Refusal("sum", "this sum is over here");
  return stagePacket(stage, sum.reply);
}

/** Refuse to help unmask another sum of a task's round, or over a V, of which one was unmasked. */
async function refuseSecond(keeping: Keeping, V: string, task: string, round: number): Promise<void> {
  const unmasked = await keeping.unmasked();
  if ([...unmasked.values()].some((sum) => sum.task === task && sum.round >= round)) throw new Refusal("sum", `round ${round} of the task was unmasked before`);
  const done = unmasked.get(V);
  if (done) throw new Refusal("sum", "a sum over this V was unmasked before; a new model needs a new seed");
}

function lineOf(stage: Stage, reply: Packet): SentLine {
  const digest = bytesToHex(packetHash(reply.facts, reply.arrays)).slice(0, 32);
  return { at: Date.now(), model: stage.model, round: stage.round, stage: stage.name, bytes: sizeOf(reply), digest };
}
