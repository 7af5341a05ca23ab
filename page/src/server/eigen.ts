/** Eigenvalues and eigenvectors of a symmetric matrix. After: Jacobi 1846, by sweeps over all pairs of columns */
import { table, type Table } from "../engine/linear";

const SWEEPS = 30;
const NOTHING = 1e-30;

/** Sizes, and directions as columns, in no order. */
export function eigen(symmetric: Table): { sizes: Float64Array; directions: Table } {
  const d = symmetric.columns;
  const A: Table = { ...symmetric, data: symmetric.data.slice() };
  const directions = table(d, d);
  for (let k = 0; k < d; k++) directions.data[k * (d + 1)] = 1;
  const whole = A.data.reduce((total, value) => total + value * value, 0);
  for (let sweep = 0; sweep < SWEEPS && beside(A) > NOTHING * whole; sweep++) {
    for (let p = 0; p < d; p++) for (let q = p + 1; q < d; q++) rotate(A, directions, p, q);
  }
  return { sizes: Float64Array.from({ length: d }, (_, k) => A.data[k * (d + 1)]!), directions };
}

/** Σ of squares beside the diagonal. */
function beside({ data, columns: d }: Table): number {
  return data.reduce((total, value, at) => (at % (d + 1) === 0 ? total : total + value * value), 0);
}

/** Turn columns p and q so that A_pq is 0. */
function rotate(A: Table, directions: Table, p: number, q: number): void {
  const d = A.columns;
  const between = A.data[p * d + q]!;
  if (between === 0) return;
  const theta = (A.data[q * (d + 1)]! - A.data[p * (d + 1)]!) / (2 * between);
  const tangent = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const cosine = 1 / Math.sqrt(tangent * tangent + 1);
  const sine = tangent * cosine;
  for (let k = 0; k < d; k++) turn(A.data, k * d + p, k * d + q, cosine, sine);
  for (let k = 0; k < d; k++) turn(A.data, p * d + k, q * d + k, cosine, sine);
  for (let k = 0; k < d; k++) turn(directions.data, k * d + p, k * d + q, cosine, sine);
}

function turn(data: Float64Array, one: number, other: number, cosine: number, sine: number): void {
  const [a, b] = [data[one]!, data[other]!];
  data[one] = cosine * a - sine * b;
  data[other] = sine * a + cosine * b;
}
