/** Reading an upload of a model that solves for its weights: `audit/attacks/_solved.py`. */
import { cholesky, dot, gram, part, row, solveFactored, table, times, transposedTimes, type Table } from "../engine/linear";
import { numberOf, type PublicItems, type Settings } from "../engine/public_items";
import * as reconstruction from "../engine/reconstruction";

const PARALLEL = 1e-9;
const FEWEST = 3;
const ROUNDING = 1e-6;

/** The nearest rating of the standard scale, 1 to 5. */
export function onScale(rating: number, step: number): number {
  const level = (rating - 1) / step;
  const below = Math.floor(level);
  const nearest = level - below === 0.5 ? (below % 2 === 0 ? below : below + 1) : Math.round(level);
  return Math.min(Math.max(1 + step * nearest, 1), 5);
}

/** The unit vector that the rows are multiples of, up to its sign: AᵀA, squared until one direction is left. */
export function commonDirection(A: Table): Float64Array {
  const d = A.columns;
  let G = normalised(gram(A));
  for (let time = 0; time < 40; time++) {
    const squared = table(d, d);
    for (let i = 0; i < d; i++) {
      for (let k = 0; k < d; k++) {
        const g = G.data[i * d + k]!;
        if (g !== 0) for (let j = 0; j < d; j++) squared.data[i * d + j]! += g * G.data[k * d + j]!;
      }
    }
    G = normalised(squared);
  }
  let best = 0;
  for (let k = 1; k < d; k++) if (G.data[k * d + k]! > G.data[best * d + best]!) best = k;
  const direction = Float64Array.from(row(G, best));
  const length = Math.sqrt(dot(direction, direction)) || 1;
  return direction.map((value) => value / length);
}

function normalised(G: Table): Table {
  let trace = 0;
  for (let k = 0; k < G.columns; k++) trace += G.data[k * G.columns + k]!;
  return { ...G, data: G.data.map((value) => value / (trace || 1)) };
}

/** One upload of a model, with all that is public about it. */
export interface Shown {
  readonly items: Int32Array;
  /** the uploaded items' columns, the baseline first */
  readonly X: Table;
  readonly delta: Table;
  readonly settings: Settings;
  readonly known: PublicItems;
}

/** Δ + S_V x_i = e_i·w_V, given the rows that w was solved over. */
export function gradientRows(shown: Shown, used: Float64Array): Table {
  const { X, delta, settings, known } = shown;
  const A = part(X, X.rows ? Array.from({ length: X.rows }, (_, j) => j) : [], 1);
  const G = gram(A, used);
  const { ridge } = reconstruction.ridgeAndPrior(A.columns, shown.items, used, settings, known);
  for (let k = 0; k < ridge.length; k++) G.data[k * ridge.length + k]! += ridge[k]!;
  const factor = cholesky(G);
  const noise = numberOf(settings, "noise") * known.noise;
  const from = A.columns - delta.columns;
  const rows = table(delta.rows, delta.columns);
  for (let j = 0; j < delta.rows; j++) {
    const covered = used[j] ? solveFactored(factor, Float64Array.from(row(A, j))) : null;
    for (let c = 0; c < delta.columns; c++) {
      rows.data[j * delta.columns + c] = delta.data[j * delta.columns + c]! + (covered ? used[j]! * noise * covered[from + c]! : 0);
    }
  }
  return rows;
}

/** Which rows w was fitted to: where it was the rated alone, those that aren't multiples of a vector that others are. */
export function usedRows(shown: Shown, over: string | null, hidden: boolean): Float64Array {
  const n = shown.items.length;
  const all = new Float64Array(n).fill(1);
  if (over === "all" || !hidden) return all;
  const sent = shown.delta;
  const sizes = Array.from({ length: n }, (_, j) => Math.sqrt(dot(row(sent, j), row(sent, j))));
  const largest = Math.max(...sizes, 1e-300);
  const empty = sizes.map((size) => size <= 1e-7 * largest);
  const parallel = (i: number, j: number): boolean => {
    if (empty[i] || empty[j]) return false;
    const cosine = dot(row(sent, i), row(sent, j)) / (sizes[i]! * sizes[j]!);
    return 1 - cosine ** 2 < PARALLEL;
  };
  const places = Array.from({ length: n }, (_, j) => j);
  const partners = places.map((i) => places.filter((j) => parallel(i, j)).length);
  const leader = partners.indexOf(Math.max(...partners));
  const multiples = places.map((j) => empty[j]! || (partners[leader]! >= FEWEST && parallel(leader, j)));
  return multiples.every(Boolean) ? all : Float64Array.from(multiples, (is) => Number(!is));
}

export interface Solved {
  readonly w: Float64Array;
  /** e: rating less prediction */
  readonly errors: Float64Array;
}

/** w and e, given the rows that w was fitted to: of the few lengths that fit best, that which puts ratings on the scale. */
export function solveFor(shown: Shown, used: Float64Array, step: number): Solved {
  const { X } = shown;
  const A = gradientRows(shown, used);
  const direction = commonDirection(A);
  const c = times(A, direction);
  const size = X.columns - 1;
  const { ridge, prior } = reconstruction.ridgeAndPrior(size, shown.items, used, shown.settings, shown.known);
  const pull = transposedTimes(X, c.map((value, j) => used[j]! * value)).subarray(1);
  const from = size - direction.length;
  let [aa, ab, bb, ay, by] = [0, 0, 0, 0, 0];
  for (let k = 0; k < direction.length; k++) {
    const a = ridge[from + k]! * direction[k]!;
    const b = ridge[from + k]! * prior[from + k]!;
    const y = pull[from + k]!;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    ay += a * y;
    by += b * y;
  }
  let best: Solved = { w: new Float64Array(X.columns), errors: new Float64Array(c.length).fill(NaN) };
  let most = -1;
  for (const s of cubicRoots(4 * aa, -6 * ab, 2 * bb - 4 * ay, 2 * by).filter((root) => Math.abs(root) > 1e-9)) {
    const w = new Float64Array(X.columns);
    w[0] = 1;
    for (let k = 0; k < size; k++) w[k + 1] = k >= from ? s * direction[k - from]! : prior[k]! + pull[k]! / (s * ridge[k]!);
    const ratings = times(X, w).map((predicted, j) => predicted + c[j]! / s);
    const sharp = ratings.map((rating) => Math.exp(-0.5 * ((onScale(rating, step) - rating) / (0.02 * step)) ** 2));
    const sharpness = sharp.reduce((total, value) => total + value, 0) / sharp.length;
    if (sharpness > most) [best, most] = [{ w, errors: c.map((value) => value / s) }, sharpness];
  }
  return best;
}

/** The real roots of a x³ + b x² + c x + d, a > 0. */
export function cubicRoots(a: number, b: number, c: number, d: number): number[] {
  if (!(a > 0)) return [];
  const [p, q, r] = [b / a, c / a, d / a];
  const shift = p / 3;
  const Q = (p * p - 3 * q) / 9;
  const R = (2 * p ** 3 - 9 * p * q + 27 * r) / 54;
  let roots: number[];
  if (R * R < Q ** 3) {
    const angle = Math.acos(Math.min(Math.max(R / Math.sqrt(Q ** 3), -1), 1));
    roots = [0, 1, 2].map((turn) => -2 * Math.sqrt(Q) * Math.cos((angle + 2 * Math.PI * (turn - 1)) / 3) - shift);
  } else {
    const A = -Math.sign(R || 1) * Math.cbrt(Math.abs(R) + Math.sqrt(R * R - Q ** 3));
    roots = [A + (A === 0 ? 0 : Q / A) - shift];
  }
  // Newton's step or two: what cancels in the formula
  return roots.map((root) => {
    let x = root;
    for (let time = 0; time < 3; time++) {
      const slope = 3 * a * x * x + 2 * b * x + c;
      if (slope !== 0) x -= (a * x ** 3 + b * x * x + c * x + d) / slope;
    }
    return x;
  });
}

/** How likely each row was among those that w was fitted to: the smallest departure from "all alike" that fits. */
export function memberships(shown: Shown, solved: Solved, share: number): Float64Array {
  const n = shown.items.length;
  const size = shown.X.columns - 1;
  const w = solved.w.subarray(1);
  const { ridge, prior } = reconstruction.ridgeAndPrior(size, shown.items, new Float64Array(n), shown.settings, shown.known);
  const M = table(size, n);
  for (let j = 0; j < n; j++) {
    const alone = new Float64Array(n);
    alone[j] = 1;
    const more = reconstruction.ridgeAndPrior(size, shown.items, alone, shown.settings, shown.known).ridge;
    for (let k = 0; k < size; k++) {
      M.data[k * n + j] = solved.errors[j]! * shown.X.data[j * shown.X.columns + 1 + k]! - (more[k]! - ridge[k]!) * (w[k]! - prior[k]!);
    }
  }
  const length = Math.max(Math.sqrt(dot(M.data, M.data)), 1e-300);
  const scaled: Table = { ...M, data: M.data.map((value) => value / length) };
  const alike = new Float64Array(n).fill(share);
  const expected = times(scaled, alike);
  const left = Float64Array.from({ length: size }, (_, k) => (ridge[k]! * (w[k]! - prior[k]!)) / length - expected[k]!);
  const G = table(size, size);
  for (let k = 0; k < size; k++) for (let l = 0; l < size; l++) G.data[k * size + l] = dot(row(scaled, k), row(scaled, l));
  let trace = 0;
  for (let k = 0; k < size; k++) trace += G.data[k * size + k]!;
  for (let k = 0; k < size; k++) G.data[k * size + k]! += (ROUNDING * trace) / size;
  const found = transposedTimes(scaled, solveFactored(cholesky(G), left));
  return found.map((value) => Math.round((share + value) * 1e5) / 1e5);
}
