/** How a device's rows move in a round: `local_training` and `predict` of the models. */
import { columns, dot, part, row, solveFactored, table, times, type Table } from "../engine/linear";
import * as biases from "../engine/biases";
import { choiceGradient, confidence, personFactors } from "../engine/ials";
import * as joint from "../engine/joint";
import { MODELS } from "../engine/models";
import { numberOf, type PublicItems, type Settings } from "../engine/public_items";
import * as reconstruction from "../engine/reconstruction";
import type { Broadcast, Device, Rows } from "./device";

export interface Moved {
  /** a row per item of the client: after local training, less before */
  readonly delta: Table;
  readonly statistic: Float64Array;
}

type LocalTraining = (device: Device, rows: Rows, broadcast: Broadcast, settings: Settings) => Moved;
const NONE = new Float64Array(0);

export const LOCAL_TRAINING: Readonly<Record<string, LocalTraining>> = {
  mf: (device, rows, broadcast, settings) => stepped(device, rows, broadcast, settings, false),
  "biased-mf": (device, rows, broadcast, settings) => stepped(device, rows, broadcast, settings, true),
  reconstruction: (_, rows, broadcast, settings) => ({
    delta: expectedGradient(rows, broadcast.V, broadcast.known, settings),
    statistic: NONE,
  }),
  biases: (_, rows, broadcast, settings) => ({ delta: residuals(rows, broadcast, settings), statistic: NONE }),
  ials: (_, rows, broadcast, settings) => choices(rows, broadcast.V, broadcast.known, settings),
  joint: (_, rows, broadcast, settings) => {
    const k = numberOf(settings, "factors");
    const { V, known } = broadcast;
    const ofV = expectedGradient(rows, columns(V, 0, k), known, joint.ofRatings(settings));
    const ofW = choices(rows, columns(V, k, V.columns), known, settings);
    const delta = table(rows.items.length, V.columns);
    for (let j = 0; j < delta.rows; j++) delta.data.set([...row(ofV, j), ...row(ofW.delta, j)], j * V.columns);
    return { delta, statistic: ofW.statistic };
  },
};

/** e = r − r̂ of each row, with the person's bias solved for over the rated rows. */
function residuals(rows: Rows, { V, known }: Broadcast, settings: Settings): Table {
  const X = biases.itemColumns(V, known);
  const places = Array.from(rows.rated.keys()).filter((j) => rows.rated[j]);
  const w = biases.foldIn(X, places.map((j) => rows.items[j]!), Float64Array.from(places, (j) => rows.ratings[j]!), settings);
  const delta = table(rows.items.length, 1);
  for (let j = 0; j < delta.rows; j++) delta.data[j] = rows.ratings[j]! - dot(row(X, rows.items[j]!), w);
  return delta;
}

/** e_i w_V − S_V x_i, with the covariance S of weights solved over that row. */
export function expectedGradient(rows: Rows, V: Table, known: PublicItems, settings: Settings): Table {
  const X = reconstruction.itemColumns(V, known, settings);
  const used = rows.rated.map((rated) => rated || settings["user_step"] === "all");
  const places = Array.from(used.keys()).filter((j) => used[j]);
  const own = reconstruction.posterior(
    X,
    places.map((j) => rows.items[j]!),
    Float64Array.from(places, (j) => rows.ratings[j]!),
    settings,
    known,
  );
  const k = X.columns - V.columns;
  const noise = numberOf(settings, "noise") * known.noise;
  const gradient = table(rows.items.length, V.columns);
  for (let j = 0; j < gradient.rows; j++) {
    const x = row(X, rows.items[j]!);
    const error = rows.ratings[j]! - dot(x, own.mean);
    const covered = used[j] ? solveFactored(own.factor, x.slice(1)) : null;
    for (let c = 0; c < V.columns; c++) {
      gradient.data[j * V.columns + c] = error * own.mean[k + c]! - (covered ? noise * covered[k - 1 + c]! : 0);
    }
  }
  return gradient;
}

/** c_i (1 − s_i)u for chosen items and 0 for the others, and u uᵀ as its upper triangle, row by row. */
function choices(rows: Rows, W: Table, known: PublicItems, settings: Settings): Moved {
  const rated = Array.from(rows.items.keys()).filter((j) => rows.rated[j]);
  const u = personFactors(W, rated.map((j) => rows.items[j]!), Float64Array.from(rated, (j) => rows.ratings[j]!), settings, known);
  const delta = table(rows.items.length, W.columns);
  for (const j of rated) delta.data.set(choiceGradient(row(W, rows.items[j]!), u, confidence(rows.ratings[j]!, settings, known)), j * W.columns);
  const statistic: number[] = [];
  for (let a = 0; a < u.length; a++) for (let b = a; b < u.length; b++) statistic.push(u[a]! * u[b]!);
  return { delta, statistic: Float64Array.from(statistic) };
}

/** K epochs of a U step and a step on the client's copy of its rows of V. */
function stepped(device: Device, rows: Rows, broadcast: Broadcast, settings: Settings, biases: boolean): Moved {
  const rate = localRate(settings, broadcast.round);
  const regularisation = numberOf(settings, "regularisation");
  const targets = rows.ratings.map((rating) => rating - (biases ? broadcast.known.mean : 0));
  const before = part(broadcast.V, rows.items);
  const V: Table = { ...before, data: before.data.slice() };
  const used = Array.from(rows.items.keys()).filter((j) => rows.rated[j] || settings["user_step"] === "all");
  let U = device.U;
  for (let epoch = 0; epoch < numberOf(settings, "local_epochs"); epoch++) {
    if (used.length) U = userStep(U, part(V, used), Float64Array.from(used, (j) => targets[j]!), rate, settings, biases);
    const e = errors(U, V, targets);
    for (let j = 0; j < V.rows; j++) {
      for (let c = 0; c < V.columns; c++) {
        const at = j * V.columns + c;
        V.data[at] = V.data[at]! - rate * (regularisation * V.data[at]! - e[j]! * U[c]!);
      }
    }
  }
  return { delta: { ...V, data: V.data.map((value, at) => value - before.data[at]!) }, statistic: NONE };
}

function localRate(settings: Settings, round: number): number {
  return numberOf(settings, "learning_rate") * numberOf(settings, "learning_rate_decay") ** round;
}

/** e = r − r̂, for ratings less the global mean. */
function errors(U: Float64Array, V: Table, targets: Float64Array): Float64Array {
  const bias = U[U.length - 1]!;
  return times(V, U).map((predicted, j) => targets[j]! - predicted - bias);
}

/** U ← U − η_L (λ U − mean of e V over the rows), in the columns that training moves. */
function userStep(U: Float64Array, V: Table, targets: Float64Array, rate: number, settings: Settings, biases: boolean): Float64Array {
  const e = errors(U, V, targets);
  const pull = new Float64Array(U.length);
  for (let j = 0; j < V.rows; j++) {
    for (let c = 0; c < V.columns; c++) pull[c]! += (e[j]! * V.data[j * V.columns + c]!) / V.rows;
    pull[U.length - 1]! += e[j]! / V.rows;
  }
  const factors = numberOf(settings, "factors");
  const trained = (c: number): boolean => c < factors || (biases && c === U.length - 1);
  return U.map((value, c) => (trained(c) ? value - rate * (numberOf(settings, "regularisation") * value - pull[c]!) : value));
}

/** The client's own predictions; models that take steps may take some more over the rated rows, with V fixed. */
export function predictions(device: Device, broadcast: Broadcast, rule: string, settings: Settings): (items: Int32Array, steps: number) => Float64Array {
  return (items, steps) => {
    if (rule !== "mf" && rule !== "biased-mf") {
      const X = MODELS[rule]!.itemColumns(broadcast.V, broadcast.known, settings);
      const w = MODELS[rule]!.foldIn(X, device.items, device.ratings, settings, broadcast.known);
      return Float64Array.from(items, (item) => dot(row(X, item), w));
    }
    const biases = rule === "biased-mf";
    const mean = biases ? broadcast.known.mean : 0;
    const rated = part(broadcast.V, device.items);
    let U = device.U;
    const rate = localRate(settings, broadcast.round);
    for (let step = 0; step < steps; step++) U = userStep(U, rated, device.ratings.map((rating) => rating - mean), rate, settings, biases);
    return errors(U, part(broadcast.V, items), new Float64Array(items.length)).map((error) => mean - error);
  };
}
