/** Dense linear algebra, as much of it as a person's weights need. Tables are row-major. */

export interface Table {
  readonly rows: number;
  readonly columns: number;
  readonly data: Float64Array;
}

export function table(rows: number, columns: number): Table {
  return { rows, columns, data: new Float64Array(rows * columns) };
}

export function row(X: Table, i: number): Float64Array {
  return X.data.subarray(i * X.columns, (i + 1) * X.columns);
}

export function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let k = 0; k < a.length; k++) sum += a[k]! * b[k]!;
  return sum;
}

/** X·w for every row. */
export function times(X: Table, w: Float64Array): Float64Array {
  const { rows, columns, data } = X;
  const result = new Float64Array(rows);
  for (let i = 0, at = 0; i < rows; i++) {
    let sum = 0;
    for (let k = 0; k < columns; k++, at++) sum += data[at]! * w[k]!;
    result[i] = sum;
  }
  return result;
}

/** Some rows of X, without the first columns. */
export function part(X: Table, items: ArrayLike<number>, from = 0, to = X.columns): Table {
  const result = table(items.length, to - from);
  for (let j = 0; j < items.length; j++) {
    const start = items[j]! * X.columns;
    result.data.set(X.data.subarray(start + from, start + to), j * (to - from));
  }
  return result;
}

/** Aᵀ diag(weights) A. */
export function gram(A: Table, weights?: Float64Array): Table {
  const d = A.columns;
  const G = table(d, d);
  for (let i = 0; i < A.rows; i++) {
    const a = row(A, i);
    const c = weights ? weights[i]! : 1;
    if (c === 0) continue;
    for (let k = 0; k < d; k++) {
      const ak = c * a[k]!;
      if (ak === 0) continue;
      const at = k * d;
      for (let l = k; l < d; l++) G.data[at + l]! += ak * a[l]!;
    }
  }
  for (let k = 0; k < d; k++) for (let l = 0; l < k; l++) G.data[k * d + l] = G.data[l * d + k]!;
  return G;
}

/** Aᵀ y. */
export function transposedTimes(A: Table, y: Float64Array): Float64Array {
  const result = new Float64Array(A.columns);
  for (let i = 0; i < A.rows; i++) {
    const a = row(A, i);
    const yi = y[i]!;
    if (yi === 0) continue;
    for (let k = 0; k < result.length; k++) result[k]! += yi * a[k]!;
  }
  return result;
}

/** The lower Cholesky factor of a symmetric positive definite matrix. */
export function cholesky(G: Table): Table {
  const d = G.columns;
  const L = table(d, d);
  for (let i = 0; i < d; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = G.data[i * d + j]!;
      for (let k = 0; k < j; k++) sum -= L.data[i * d + k]! * L.data[j * d + k]!;
      if (i === j) {
        if (!(sum > 0)) throw new Error("the normal equations have no single solution");
        L.data[i * d + i] = Math.sqrt(sum);
      } else L.data[i * d + j] = sum / L.data[j * d + j]!;
    }
  }
  return L;
}

/** x of L Lᵀ x = b. */
export function solveFactored(L: Table, b: Float64Array): Float64Array {
  const d = L.columns;
  const x = Float64Array.from(b);
  for (let i = 0; i < d; i++) {
    for (let k = 0; k < i; k++) x[i]! -= L.data[i * d + k]! * x[k]!;
    x[i]! /= L.data[i * d + i]!;
  }
  for (let i = d - 1; i >= 0; i--) {
    for (let k = i + 1; k < d; k++) x[i]! -= L.data[k * d + i]! * x[k]!;
    x[i]! /= L.data[i * d + i]!;
  }
  return x;
}

/** x of G x = b for a symmetric positive definite G. */
export function solve(G: Table, b: Float64Array): Float64Array {
  return solveFactored(cholesky(G), b);
}

/** For each row a_k of A and its target t_k, G⁻¹ a_k t_k. */
export function sharesOf(G: Table, A: Table, targets: ArrayLike<number>): Float64Array[] {
  const L = cholesky(G);
  return Array.from({ length: A.rows }, (_, k) => solveFactored(L, row(A, k).map((value) => value * targets[k]!)));
}

/** Rows of length one; zero rows stay zero. */
export function unitRows(E: Table): Table {
  const result = table(E.rows, E.columns);
  for (let i = 0; i < E.rows; i++) {
    const e = row(E, i);
    const length = Math.sqrt(dot(e, e));
    if (length > 0) for (let k = 0; k < E.columns; k++) result.data[i * E.columns + k] = e[k]! / length;
  }
  return result;
}

/** Tables beside each other. */
export function beside(tables: readonly Table[]): Table {
  const rows = tables[0]!.rows;
  const result = table(rows, tables.reduce((sum, each) => sum + each.columns, 0));
  let from = 0;
  for (const each of tables) {
    for (let i = 0; i < rows; i++) result.data.set(row(each, i), i * result.columns + from);
    from += each.columns;
  }
  return result;
}

/** Some rows of a table. */
export function rows(X: Table, from: number, to: number): Table {
  return { ...table(to - from, X.columns), data: X.data.slice(from * X.columns, to * X.columns) };
}

/** Some columns of a table. */
export function columns(X: Table, from: number, to: number): Table {
  const result = table(X.rows, to - from);
  for (let i = 0; i < X.rows; i++) {
    result.data.set(X.data.subarray(i * X.columns + from, i * X.columns + to), i * (to - from));
  }
  return result;
}
