/** What a secure sum adds up, and how it is laid out, scaled and noised: `deploy/wire/ring.py`, `privacy/distributed.py`. */
import { calibrated, CLOSE } from "../privacy/accounting";
import { discreteGaussian, type Uniform } from "../privacy/noise";
import { CLIPPED_SHARE, statisticsNorm } from "../privacy/person";
import type { Catalogue } from "../wire/catalogue";
import { Refusal } from "../wire/packet";
import { rounds, STATISTICS_ROUND } from "../wire/request";
import { number, section, type TrainingConfig } from "../wire/settings";
import { encodingFor, leastPersons, ringOptions, type Encoding, type Figures, type RingLayout, type RingOptions, type RingVector } from "./ring";

const ROUNDED = 1.001;
const LEAST_SHARE = 4;
const DEVIATIONS = 8;
/** The share of honest devices where the statistics have a budget of their own: the default of `distributed`. */
const OWN_HONEST = 0.7;

/** The noise of one sum that devices add up in the ring. */
export interface DeviceNoise {
  readonly multiplier: number;
  /** of one person's vector before it is rounded, at most */
  readonly norm: number;
  readonly honest: number;
  /** whose honest share adds enough noise; 0: all asked */
  readonly devices: number;
}

export interface SumTerms {
  readonly layout: RingLayout;
  readonly options: RingOptions;
  readonly figures: Figures;
  readonly noise: DeviceNoise | null;
  readonly corrupted: number;
  readonly demonstration: boolean;
  /** what a clipped person adds beside the statistic, under the noise; 0 where nobody is counted */
  readonly clippedUnit: number;
}

/** The terms of a round's sum, or of the statistics' before the first round. */
export function termsOf(config: TrainingConfig, catalogue: Catalogue, round: number, columns: number): SumTerms {
  if (round < STATISTICS_ROUND || round >= rounds(config)) throw new Refusal("sum", `round ${round} of ${rounds(config)}`);
  const channel = section(config, "channel");
  const common = { corrupted: number(channel, "corrupted"), demonstration: channel.values["demonstration"] === true };
  const items = catalogue.ids.length;
  const { source, epsilon, people, known } = catalogue;
  if (round === STATISTICS_ROUND) {
    const { cap, noise } = statisticsBudget(config);
    const norm = statisticsNorm(cap);
    const options = { bound: norm, statisticBound: norm, largestWeight: 1, fewestContributors: 1 };
    const figures = { source: "public", epsilon: null, people: 0, popularity: new Float64Array(items).fill(1) };
    return { ...common, layout: { items, columns: 2, bits: 32, statisticSize: 2, weights: false }, options, figures, noise, clippedUnit: 0 };
  }
  const layout = { items, columns, bits: number(channel, "bits"), statisticSize: statisticSize(config), weights: channel.values["weights"] === "sent" };
  const [figures, noise] = [{ source, epsilon, people, popularity: known.popularity }, noiseOf(config, round)];
  return { ...common, layout, options: ringOptions(config), figures, noise, clippedUnit: noise ? CLIPPED_SHARE * noise.norm : 0 };
}

/** The cap of the statistics' sum, and the devices' noise in it; a refusal where nobody would add any. */
export function statisticsBudget(config: TrainingConfig): { cap: number; noise: DeviceNoise } {
  const [privacy, statistics] = [section(config, "privacy"), section(config, "statistics")];
  const summed = statistics.values["source"] === "secure-sum";
  if (summed && privacy.rule === "distributed") {
    const cap = number(privacy, "cap");
    const z = calibrated(number(privacy, "epsilon"), number(privacy, "delta")) / Math.sqrt(number(privacy, "statistics_share"));
    return { cap, noise: { multiplier: z, norm: statisticsNorm(cap), honest: number(privacy, "honest"), devices: number(privacy, "devices") } };
  }
  if (!summed || number(statistics, "epsilon") <= 0) throw new Refusal("policy", "exact figures of the participants are not to be published");
  const cap = Number(statistics.constants["cap"]);
  return { cap, noise: { multiplier: calibrated(number(statistics, "epsilon"), number(statistics, "delta")), norm: statisticsNorm(cap), honest: OWN_HONEST, devices: number(statistics, "devices") } };
}

function noiseOf(config: TrainingConfig, round: number): DeviceNoise | null {
  const privacy = section(config, "privacy");
  if (privacy.rule !== "distributed") return null;
  const growth = number(privacy, "growth");
  const shares = Array.from({ length: rounds(config) }, (_, place) => (place + 1) ** growth);
  const total = shares.reduce((sum, share) => sum + share, 0);
  const left = section(config, "statistics").values["source"] === "secure-sum" ? 1 - number(privacy, "statistics_share") : 1;
  const z = calibrated(number(privacy, "epsilon"), number(privacy, "delta"));
  return { multiplier: z / Math.sqrt((shares[round]! / total) * left), norm: number(privacy, "clip"), honest: number(privacy, "honest"), devices: number(privacy, "devices") };
}

function statisticSize(config: TrainingConfig): number {
  const model = section(config, "model");
  const d = Number(model.values["interaction_factors"] ?? 0);
  return (d * (d + 1)) / 2;
}

/** Persons that a sum must have, lest it be taken apart; noise of the devices hides them by itself. */
export function leastPersonsOf(terms: SumTerms): number {
  return terms.demonstration || terms.noise ? 0 : leastPersons(terms.layout.columns);
}

/** Share of the nodes that must be in the sum: without those that collude, their noise is enough. */
export function survivingOf({ noise, corrupted }: SumTerms): number {
  return !noise || noise.devices ? 0 : noise.honest + corrupted;
}

/** Nodes that must be in the sum where the task fixes how many devices share the noise. */
export function leastNodesOf({ noise, corrupted }: SumTerms): number {
  return !noise || !noise.devices ? 0 : Math.ceil((noise.honest * noise.devices) / (1 - corrupted) - 1e-9);
}

/** The scales of a sum of so many persons at most, behind so many nodes. */
export function encodingOf(terms: SumTerms, persons: number, nodes: number): Encoding {
  const { noise, options } = terms;
  const room = noise ? Math.max(roomFor(noise, options.bound, nodes), roomFor(noise, options.statisticBound, nodes)) : 0;
  return encodingFor(terms.layout, terms.figures, persons, options, room, noise ? terms.clippedUnit : undefined);
}

/** A node's share of the noise, added to its vector before any mask. */
export function addShare(terms: SumTerms, vector: RingVector, encoding: Encoding, nodes: number, draw: Uniform): void {
  const { noise, layout } = terms;
  if (!noise) return;
  const share = shareScale(noise, noise.multiplier * (1 + CLOSE), ringSensitivity(noise, encoding), nodes);
  const drawn = (steps: number): number => {
    const sigma = share * steps;
    if (sigma > 0 && sigma < LEAST_SHARE) throw new Refusal("sum", "a share of the noise is too coarse for the ring");
    return sigma > 0 ? discreteGaussian(sigma, draw) : 0;
  };
  for (let at = 0; at < vector.moves.length; at++) vector.moves[at]! += drawn(encoding.scales[Math.floor(at / layout.columns)]!);
  const beside = vector.weights.length - layout.statisticSize - 3;
  for (let at = 0; at <= layout.statisticSize; at++) vector.weights[beside + at]! += drawn(encoding.statisticScale);
}

/** As how many contributions at the bound the ring counts the noise: the same on all devices, or there is no sum. */
function roomFor(noise: DeviceNoise, bound: number, nodes: number): number {
  const room = (multiplier: number): number =>
    Math.ceil((DEVIATIONS * Math.sqrt(nodes) * shareScale(noise, multiplier, ROUNDED * noise.norm, nodes)) / bound);
  const [least, most] = [room(noise.multiplier * (1 - CLOSE)), room(noise.multiplier * (1 + CLOSE))];
  if (least !== most) throw new Refusal("sum", "this page can't tell how other devices scale this sum");
  return least;
}

function shareScale(noise: DeviceNoise, multiplier: number, sensitivity: number, nodes: number): number {
  return (multiplier * sensitivity) / Math.sqrt(Math.max(1, Math.floor(noise.honest * (noise.devices || nodes))));
}

/** The norm of one device's vector in the ring: each number moves by half a step. */
function ringSensitivity(noise: DeviceNoise, { scales, layout, statisticScale }: Encoding): number {
  const rows = scales.reduce((total, scale) => (scale > 0 ? total + scale ** -2 : total), 0);
  const sensitivity = noise.norm + 0.5 * Math.sqrt(layout.columns * rows + (layout.statisticSize + 1) * statisticScale ** -2);
  if (sensitivity > ROUNDED * noise.norm) throw new Refusal("sum", "rounding to the ring's steps adds too much to a person's norm");
  return sensitivity;
}
