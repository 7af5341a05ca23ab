/** A client's half of a secure sum without pinned identities: `parts/channel/secure/client.py` and its stages.
 *
 * Everything secret comes from one random root, so the same question gives the same answer again. The state is written
 * to the device's own store before an answer goes.
 */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, concatBytes } from "@noble/hashes/utils.js";
import * as keys from "./keys";
import { groupOf, type Grouping } from "./groups";
import { addMask } from "./masks";
import * as messages from "./messages";
import { refused, type Advertisement } from "./messages";
import { vectorBytes, type RingVector } from "./ring";
import { SHARE_BYTES, split } from "./shamir";

const STAGES = ["advertise", "share", "mask", "reveal"] as const;
export type StageName = (typeof STAGES)[number];
/** Smaller cohorts are complete graphs; in larger ones nobody has fewer neighbours than these: `graph.py`. */
const [LEAST_SPARSE, FEWEST_NEIGHBOURS] = [100, 22];
const SEALED_BYTES = 2 * SHARE_BYTES + 16;
const NOTHING = new Uint8Array(0);

/** All that a client keeps between stages. As secret as its ratings. */
export interface ClientState {
  readonly number: bigint;
  readonly session: Uint8Array;
  readonly root: Uint8Array;
  /** smaller cohorts are refused */
  readonly leastCohort: number;
  /** share of the cohort whose vectors must be in the sum, where devices add noise */
  readonly honest: number;
  /** where the cohort falls into groups with a sum each */
  readonly grouping: Grouping | null;
  /** stage → digest of what it was asked */
  readonly done: Readonly<Partial<Record<StageName, string>>>;
  readonly neighbourhood: Uint8Array;
  readonly inbox: Uint8Array;
}

/** A stage's answer, and the state to keep before it goes. */
export interface Answered {
  readonly state: ClientState;
  readonly answer: Uint8Array<ArrayBuffer>;
}

export function newClient(session: Uint8Array, leastCohort: number, honest: number, grouping: Grouping | null): ClientState {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2)) as unknown as [number, number];
  const number = ((BigInt(high) << 32n) | BigInt(low)) >> 2n;
  return { number, session, root: crypto.getRandomValues(new Uint8Array(32)), leastCohort, honest, grouping, done: {}, neighbourhood: NOTHING, inbox: NOTHING };
}

/** A secret of this sum under a name of its own. */
export function secretOf(state: ClientState, name: string): Uint8Array {
  return keys.derive(state.root, name, state.session);
}

/** Clients that advertised keys, this one included, as the server says. */
export function cohortOf(state: ClientState): number {
  return neighbourhoodOf(state, state.neighbourhood).cohort;
}

/** Stage 1: fresh public keys. */
export function advertise(state: ClientState): Answered {
  const [cipher, mask] = ["cipher key", "mask key"].map((name) => keys.publicKey(secretOf(state, name))) as [Uint8Array, Uint8Array];
  const answer = messages.pack("Advertisement", state.session, messages.numberBytes(state.number), cipher, mask, NOTHING, NOTHING);
  return { state: once(state, "advertise", NOTHING), answer };
}

/** Stage 2: a share of the mask key and one of the self-mask seed for every neighbour, encrypted to it. */
export function share(state: ClientState, asked: Uint8Array): Answered {
  comesAfter(state, "advertise", "share");
  const { threshold, cohort, adverts, everybody } = neighbourhoodOf(state, asked);
  checkNeighbours(state, threshold, cohort, adverts);
  checkGroup(state, cohort, adverts, everybody);
  const after = { ...once(state, "share", asked), neighbourhood: asked };
  const draw = keys.drawing(secretOf(state, "coefficients"));
  const ofKey = split(secretOf(state, "mask key"), adverts.length, threshold, draw);
  const seed = secretOf(state, "self mask");
  const ofSeed = split(seed, adverts.length, threshold, draw);
  const sealed = adverts.map((advert, place) => {
    const header = keys.pair(state.session, state.number, advert.number);
    return keys.sealShares(keys.derive(cipherWith(state, advert), "shares", header), concatBytes(ofKey[place]!, ofSeed[place]!), header);
  });
  const commitment = keys.commit(state.session, seed);
  return { state: after, answer: messages.pack("SealedShares", state.session, messages.numberBytes(state.number), commitment, concatBytes(...sealed)) };
}

/** Stage 3: the vector plus its self mask and a mask with each neighbour that has shared its secrets. */
export async function mask(state: ClientState, asked: Uint8Array, vector: RingVector, told: Uint8Array): Promise<Answered> {
  comesAfter(state, "share", "mask");
  const { threshold, adverts, everybody } = neighbourhoodOf(state, state.neighbourhood);
  const context = everybody.length ? concatBytes(told, sha256(everybody)) : told;
  const { plain, garbled } = opened(state, asked, adverts);
  const own = messages.numberBytes(state.number);
  if (garbled.size) {
    const dealers = messages.toBits(adverts.map(({ number }) => garbled.has(number)));
    return { state: once(state, "mask", asked), answer: messages.pack("Complaint", state.session, own, dealers) };
  }
  if (plain.size < threshold) throw refused(`${plain.size} neighbours have shared their secrets, and ${threshold} are needed`);
  const after = { ...once(state, "mask", concatBytes(asked, vectorBytes(vector), context)), inbox: asked };
  const masked = { moves: vector.moves.slice(), weights: vector.weights.slice() };
  await addMask(masked, keys.selfMaskKey(secretOf(state, "self mask"), state.session), false);
  const secret = secretOf(state, "mask key");
  for (const advert of adverts) {
    if (!plain.has(advert.number)) continue;
    const key = keys.pairKey(secret, advert.maskKey, state.session, state.number, advert.number, context);
    await addMask(masked, key, state.number > advert.number);
  }
  return { state: after, answer: messages.pack("MaskedVector", state.session, own, vectorBytes(masked)) };
}

/** Last stage: of each neighbour one share, of its seed if its vector arrived, of its mask key if not. Never both. */
export function reveal(state: ClientState, asked: Uint8Array): Answered {
  comesAfter(state, "mask", "reveal");
  const { threshold, cohort, adverts } = neighbourhoodOf(state, state.neighbourhood);
  const alive = checkedSurvivors(state, asked, threshold, cohort, adverts);
  const { plain } = opened(state, state.inbox, adverts);
  agreed.secrets.clear(); // nobody needs them any more
  const shares = [...plain].map(([other, both]) => (alive.has(other) ? both.slice(SHARE_BYTES) : both.slice(0, SHARE_BYTES)));
  return { state: once(state, "reveal", asked), answer: messages.pack("Reveal", state.session, messages.numberBytes(state.number), concatBytes(...shares)) };
}

function neighbourhoodOf(state: ClientState, data: Uint8Array): { threshold: number; cohort: number; adverts: Advertisement[]; everybody: Uint8Array } {
  const [threshold, cohort, records, everybody] = messages.unpack("Neighbourhood", data, state.session) as [number, number, Uint8Array, Uint8Array];
  return { threshold, cohort, adverts: messages.advertisements(records), everybody };
}

/** Refuse another group than the one that follows from who is in the cohort. */
function checkGroup({ grouping, number }: ClientState, cohort: number, adverts: readonly Advertisement[], everybody: Uint8Array): void {
  if (!grouping) {
    if (everybody.length) throw refused("a cohort in groups, where one sum of all was asked for");
    return;
  }
  const size = messages.NUMBER_BYTES;
  const numbers = messages.cut(everybody, Math.floor(everybody.length / size), size).map(messages.toNumber);
  if (numbers.some((one, place) => place > 0 && one <= numbers[place - 1]!) || !numbers.includes(number)) throw refused("a cohort without this client, or with somebody twice or out of order");
  const group = groupOf(grouping, number, numbers);
  if (cohort !== group.size || !adverts.every((advert) => group.has(advert.number))) throw refused("another group than the one that is drawn for this cohort");
}

/** Refuse a neighbourhood that no secret should be shared in: `checked_neighbours`. */
function checkNeighbours(state: ClientState, threshold: number, cohort: number, adverts: readonly Advertisement[]): void {
  const count = adverts.length;
  if (adverts.some(({ number }) => number === state.number)) throw refused("a client is no neighbour of itself");
  if (cohort < state.leastCohort) throw refused(`a cohort of ${cohort}, and at least ${state.leastCohort} are asked for`);
  if (count < (cohort < LEAST_SPARSE ? cohort - 1 : FEWEST_NEIGHBOURS)) throw refused(`${count} neighbours in a cohort of ${cohort}: a sum of so few could be unmasked apart`);
  const least = Math.floor(count / 2) + 1;
  if (count >= cohort || threshold < least || threshold > count) throw refused(`a threshold of ${threshold} of ${count} neighbours, in a cohort of ${cohort}`);
  const own = ["cipher key", "mask key"].map((name) => keys.publicKey(secretOf(state, name)));
  const seen = [...own, ...adverts.flatMap(({ cipherKey, maskKey }) => [cipherKey, maskKey])].map(bytesToHex);
  if (new Set(seen).size !== seen.length) throw refused("two of the neighbourhood have the same key");
}

/** The survivors among neighbours, and itself, if they are such that a share can be given away: `checked_survivors`. */
function checkedSurvivors(state: ClientState, asked: Uint8Array, threshold: number, cohort: number, adverts: readonly Advertisement[]): Set<bigint> {
  const [said, bits] = messages.unpack("Survivors", asked, state.session) as [number, Uint8Array];
  const near = [state.number, ...adverts.map(({ number }) => number)].sort((a, b) => (a < b ? -1 : 1));
  const alive = new Set(messages.fromBits(bits, near));
  if (!alive.has(state.number)) throw refused("the server counts this client among those that dropped out");
  const count = near.length === cohort ? alive.size : said;
  if (count < Math.max(state.leastCohort, alive.size)) throw refused(`${count} survivors, and at least ${state.leastCohort} are asked for`);
  if (count < Math.floor(state.honest * cohort)) throw refused(`${count} of ${cohort} survived: less noise than ${state.honest} would add`);
  if (alive.size - 1 < threshold) throw refused(`${alive.size - 1} neighbours survived, and ${threshold} are needed`);
  return alive;
}

/** The shares that neighbours sealed for this client, and the neighbours whose shares don't open. */
function opened(state: ClientState, inbox: Uint8Array, adverts: readonly Advertisement[]): { plain: Map<bigint, Uint8Array>; garbled: Set<bigint> } {
  const [present, all] = messages.unpack("Inbox", inbox, state.session) as [Uint8Array, Uint8Array];
  const senders = new Set(messages.fromBits(present, adverts.map(({ number }) => number)));
  const pieces = messages.cut(all, senders.size, SEALED_BYTES);
  const plain = new Map<bigint, Uint8Array>();
  const garbled = new Set<bigint>();
  adverts.filter(({ number }) => senders.has(number)).forEach((advert, place) => {
    const header = keys.pair(state.session, advert.number, state.number);
    const shares = keys.unsealShares(keys.derive(cipherWith(state, advert), "shares", header), pieces[place]!, header);
    if (shares) plain.set(advert.number, shares);
    else garbled.add(advert.number);
  });
  return { plain, garbled };
}

/** Of the sum that is being made: an agreement takes milliseconds, and three stages need it. */
const agreed = { session: "", secrets: new Map<bigint, Uint8Array>() };

function cipherWith(state: ClientState, advert: Advertisement): Uint8Array {
  const session = `${bytesToHex(state.session)} ${state.number}`;
  if (agreed.session !== session) Object.assign(agreed, { session, secrets: new Map<bigint, Uint8Array>() });
  let secret = agreed.secrets.get(advert.number);
  if (!secret) agreed.secrets.set(advert.number, (secret = keys.agree(secretOf(state, "cipher key"), advert.cipherKey, "cipher", state.session)));
  return secret;
}

/** Refuse a stage whose turn hasn't come, or is over. */
function comesAfter(state: ClientState, before: StageName, stage: StageName): void {
  if (!(before in state.done)) throw refused(`${stage} comes after ${before}`);
  const later = STAGES.slice(STAGES.indexOf(stage) + 1);
  if (!(stage in state.done) && later.some((each) => each in state.done)) throw refused(`it is too late to ${stage}`);
}

/** A stage is answered once; the same question gets the same answer, another one none. */
function once(state: ClientState, stage: StageName, asked: Uint8Array): ClientState {
  const digest = bytesToHex(sha256(asked));
  if ((state.done[stage] ?? digest) !== digest) throw refused(`this client has answered the stage ${stage} of this sum already, to another message`);
  return { ...state, done: { ...state.done, [stage]: digest } };
}
