/** Everything that a single upload shows: `audit/attacks/one_round.py` with its reading and its evidence. */
import { columns, part, table, times, type Table } from "../engine/linear";
import { numberOf } from "../engine/public_items";
import * as joint from "../engine/joint";
import * as reconstruction from "../engine/reconstruction";
import type { Broadcast, Upload } from "../client/device";
import type { Preset } from "./leaves";
import { columnsOf, scan } from "./stepped";
import { memberships, onScale, solveFor, usedRows, type Shown } from "./solved";

const CAP = 8;
const MEMBER = 8;

export interface Reading {
  /** as they come out of the upload, in standard units */
  readonly ratings: Float64Array;
  readonly errors: Float64Array;
  /** how likely each row was among those that w was fitted to; null where nothing is known of that */
  readonly members: Float64Array | null;
}

export interface Guess {
  /** the rating of the scale that each row is read as */
  readonly ratings: Float64Array;
  /** what speaks for a row being of a rated item: more is likelier */
  readonly evidence: Float64Array;
}

/** The attack: ratings by the scale, rows by what they say about being real. */
export function oneRound(upload: Upload, broadcast: Broadcast, preset: Preset, step: number): Guess {
  const wire = onTheWire(upload);
  const found = read(wire, broadcast, preset, step);
  return { ratings: found.ratings.map((rating) => onScale(rating, step)), evidence: evidence(found, wire, broadcast, preset, step) };
}

/** Numbers travel with 32 bits. */
function onTheWire(upload: Upload): Upload {
  return { ...upload, delta: { ...upload.delta, data: upload.delta.data.map(Math.fround) } };
}

/** Rated rows per row of an upload, as far as the config tells. */
export function ratedShare(preset: Preset): number {
  return preset.hides_rows ? 1 / (1 + preset.ratio) : 1;
}

export function read(upload: Upload, broadcast: Broadcast, preset: Preset, step: number): Reading {
  const { rule, options } = preset.model;
  if (preset.attacker.fitted === "by steps") {
    const biases = rule === "biased-mf";
    const X = columnsOf(broadcast.V, upload.items, biases, numberOf(options, "factors"), broadcast.known.mean);
    const { w, errors } = scan(upload.delta, part(broadcast.V, upload.items), X, options, broadcast.round, biases, step);
    return { ratings: times(X, w).map((predicted, j) => predicted + errors[j]!), errors, members: null };
  }
  const shown = shownBy(upload, broadcast, preset);
  const share = ratedShare(preset);
  const used = usedRows(shown, preset.attacker.over, share < 1);
  const solved = solveFor(shown, used, step);
  const seen = used.some((value) => value !== used[0]);
  const members = seen ? used : memberships(shown, solved, share);
  return { ratings: times(shown.X, solved.w).map((predicted, j) => predicted + solved.errors[j]!), errors: solved.errors, members };
}

function shownBy(upload: Upload, broadcast: Broadcast, preset: Preset): Shown {
  const { rule, options } = preset.model;
  const settings = rule === "joint" ? joint.ofRatings(options) : options;
  const factors = numberOf(options, "factors");
  const V = rule === "joint" ? columns(broadcast.V, 0, factors) : broadcast.V;
  const delta: Table = rule === "joint" ? columns(upload.delta, 0, factors) : upload.delta;
  const X = part(reconstruction.itemColumns(V, broadcast.known, settings), upload.items);
  return { items: upload.items, X, delta, settings, known: broadcast.known };
}

/** What scale, residuals, popularity and membership in the fit say: log likelihood ratios, roughly. */
export function evidence(found: Reading, upload: Upload, broadcast: Broadcast, preset: Preset, step: number): Float64Array {
  const { attacker } = preset;
  const level = Float64Array.from(upload.items, (item) => Math.log1p(broadcast.known.popularity[item]!));
  const popular = mean(level);
  const typical = Math.sqrt(mean(found.errors.map((error) => error * error)));
  const scale = scaleEvidence(found.ratings, 1 - ratedShare(preset), step);
  const score = scale.map(
    (value, j) =>
      value + (attacker.residual * Math.abs(found.errors[j]!)) / Math.max(typical, 1e-300) + attacker.popularity * (level[j]! - popular),
  );
  if (!found.members || attacker.over !== "rated") return score;
  const belonging = mean(found.members);
  return score.map((value, j) => value + MEMBER * (found.members![j]! - belonging));
}

/** log P(distance to the scale | real) − log P(… | virtual), both from the upload's own distances. */
function scaleEvidence(ratings: Float64Array, virtual: number, step: number): Float64Array {
  if (virtual === 0) return table(1, ratings.length).data;
  const off = ratings.map((rating) => Math.abs(rating - onScale(rating, step)) / step);
  const { share, blur } = mixture(off);
  const also = Math.min(Math.max((share - (1 - virtual)) / virtual, 0), 1);
  return off.map((distance) => {
    const near = Math.exp(-0.5 * (distance / blur) ** 2) / (blur * Math.sqrt(0.5 * Math.PI)) + 1e-9;
    const anywhere = also * near + (1 - also) * 2;
    return Math.min(Math.max(Math.log(near) - Math.log(anywhere), -CAP), CAP);
  });
}

/** Share of the rows that lie on the scale, and their blur: half-normal against uniform, by EM. */
function mixture(off: Float64Array): { share: number; blur: number } {
  let share = 0.7;
  let blur = Math.max(quantile(off, 0.3), 1e-5);
  for (let time = 0; time < 30; time++) {
    let [total, weighted] = [0, 0];
    for (const distance of off) {
      const near = (share * Math.exp(-0.5 * (distance / blur) ** 2)) / (blur * Math.sqrt(0.5 * Math.PI));
      const belongs = near / (near + (1 - share) * 2 + 1e-300);
      total += belongs;
      weighted += belongs * distance * distance;
    }
    share = Math.min(Math.max(total / off.length, 0.02), 0.999);
    blur = Math.min(Math.max(Math.sqrt(weighted / Math.max(total, 1e-9)), 1e-5), 0.5);
  }
  return { share, blur };
}

function quantile(values: Float64Array, share: number): number {
  const sorted = Float64Array.from(values).sort();
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  return sorted[below]! + (place - below) * ((sorted[below + 1] ?? sorted[below]!) - sorted[below]!);
}

function mean(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}
