/** The server's half of the models that a page can train: `start_items` and `update_items` in `parts/model`. */
import { normals, subkey } from "../client/randomness";
import { beside, columns, row, rows, solve, table, times, transposedTimes, gram, type Table } from "../engine/linear";
import { ofRatings } from "../engine/joint";
import { features, numberOf, sum, type PublicItems, type Settings } from "../engine/public_items";
import { eigen } from "./eigen";
import type { Sums } from "./sums";

const LEAST = 1e-12;

export interface ServerModel {
  startItems(seed: bigint, items: number, settings: Settings): Table;
  updateItems(sums: Sums, V: Table, known: PublicItems, settings: Settings): Table;
}

const reconstruction: ServerModel = {
  startItems: (seed, items, settings) => start(seed, "start-V", items, numberOf(settings, "factors"), numberOf(settings, "init_scale")),
  updateItems: mStep,
};

const ials: ServerModel = {
  startItems: (seed, items, settings) => start(seed, "start-W", items, numberOf(settings, "interaction_factors"), numberOf(settings, "interaction_init")),
  updateItems: newtonStep,
};

const joint: ServerModel = {
  startItems: (...asked) => beside([reconstruction.startItems(...asked), ials.startItems(...asked)]),
  updateItems: (sums, T, known, settings) => {
    const k = numberOf(settings, "factors");
    const part = (from: number, to: number): Sums => ({ ...sums, total: columns(sums.total, from, to) });
    const ofV = mStep(part(0, k), columns(T, 0, k), known, ofRatings(settings));
    return beside([ofV, newtonStep(part(k, T.columns), columns(T, k, T.columns), known, settings)]);
  },
};

export const SERVER_MODELS: Readonly<Record<string, ServerModel>> = { reconstruction, ials, joint };

function start(seed: bigint, name: string, items: number, factors: number, scale: number): Table {
  const draw = normals(subkey(seed, name));
  return { ...table(items, factors), data: Float64Array.from({ length: items * factors }, (_, cell) => scale * draw(cell)) };
}

/** (Σ w Δ_i − K w̄ (V_i − V̂_i))/(Σ w E[w_V²] + K w̄). */
function mStep(sums: Sums, V: Table, known: PublicItems, settings: Settings): Table {
  const ofFactor = new Float64Array(V.columns).fill(numberOf(settings, "curvature"));
  ofFactor[0]! += numberOf(settings, "user_mean") ** 2;
  const strength = numberOf(settings, "item_prior") * (sums.clients ? sums.overall / sums.clients : 0);
  const ofRatings = numberOf(settings, "noise") * known.noise;
  const expected = fromFeatures(V, known, settings);
  const step = table(V.rows, V.columns);
  for (let at = 0; at < step.data.length; at++) {
    const weight = sums.weights[Math.floor(at / V.columns)]! * ofFactor[at % V.columns]!;
    const pull = strength * (sums.noise > 0 ? 1 + sums.noise ** 2 / (ofRatings * Math.max(weight, 1)) : 1);
    step.data[at] = (sums.total.data[at]! - pull * (V.data[at]! - expected.data[at]!)) / Math.max(weight + pull, LEAST);
  }
  return step;
}

/** Rows for items that enter a trained model: `rows_from_features` in `parts/model/_public.py`. */
export function newRows(V: Table, known: PublicItems, settings: Settings): Table {
  return rows(fromFeatures(V, known, settings), V.rows, known.popularity.length);
}

/** F R V: the rows of all items that public features predict from V's, by a ridge regression in which the mean row is free. */
function fromFeatures(V: Table, known: PublicItems, settings: Settings): Table {
  const { popularity, average, content } = features(known);
  const items = popularity.length;
  const others = table(items, 6);
  for (let i = 0; i < items; i++) {
    const [p, a] = [popularity[i]!, average[i]!];
    others.data.set([1, p, a, p * p, a * a, p * a], 6 * i);
  }
  const all = beside([others, content]);
  const F = rows(all, 0, V.rows);
  const prior = numberOf(settings, "item_prior");
  const weights = known.popularity.slice(0, V.rows).map((count) => count / (count + prior));
  const G = gram(F, weights);
  for (let k = 0; k < G.columns; k++) G.data[k * (G.columns + 1)]! += k === 0 ? 1e-9 : 1;
  const predicted = Array.from({ length: V.columns }, (_, c) => {
    const column = weights.map((weight, i) => weight * V.data[i * V.columns + c]!);
    return { rows: items, columns: 1, data: times(all, solve(G, transposedTimes(F, column))) };
  });
  return beside(predicted);
}

/** The gradient Σ c(1 − s)u − a S w_i − λ_i w_i, divided by (a + κ n_i/n) S + λ_i I, where S = Σ u uᵀ. */
function newtonStep(sums: Sums, W: Table, _known: PublicItems, settings: Settings): Table {
  const a = numberOf(settings, "unobserved_weight");
  const S = symmetric(sums.statistic, W.columns);
  const mean = sums.clients ? sums.overall / sums.clients : 0;
  const people = sums.weights.map((weight) => (mean > 0 ? Math.max(weight / mean, 0) : 0));
  const more = Math.max((4 * sum(people)) / Math.max(people.length, 1), 1);
  const { sizes, directions } = eigen(S);
  const step = table(W.rows, W.columns);
  for (let i = 0; i < W.rows; i++) {
    const ridge = Math.sqrt(people[i]! + more) * numberOf(settings, "interaction_item_ridge") * mean;
    const strength = a + (numberOf(settings, "interaction_curvature") * people[i]!) / Math.max(sums.clients, 1);
    const [w, total, pulled] = [row(W, i), row(sums.total, i), times(S, row(W, i))];
    const gradient = total.map((value, k) => value - a * pulled[k]! - ridge * w[k]!);
    const along = transposedTimes(directions, gradient).map((value, k) => value / Math.max(strength * Math.max(sizes[k]!, 0) + ridge, LEAST));
    step.data.set(times(directions, along), i * W.columns);
  }
  return step;
}

/** The matrix of an upper triangle, row by row. */
function symmetric(upper: Float64Array, size: number): Table {
  const S = table(size, size);
  for (let a = 0, at = 0; a < size; a++) {
    for (let b = a; b < size; b++, at++) S.data[a * size + b] = S.data[b * size + a] = upper[at]!;
  }
  return S;
}
