/** Matrix factorisation: `parts/model/mf.py` and `biased_mf.py`. */
import { gram, part, sharesOf, solve, table, times, transposedTimes, type Table } from "./linear";
import { numberOf, type PublicItems, type Settings } from "./public_items";

export class MatrixFactorisation {
  readonly predictsColdItems = false;
  constructor(readonly biases: boolean) {}

  /** X = (V, 1), and with biases (V, μ + b_i, 1). */
  itemColumns(V: Table, known: PublicItems, settings: Settings): Table {
    const X = table(V.rows, V.columns + 1);
    const factors = numberOf(settings, "factors");
    for (let i = 0; i < V.rows; i++) {
      X.data.set(V.data.subarray(i * V.columns, (i + 1) * V.columns), i * X.columns);
      if (this.biases) X.data[i * X.columns + factors]! += known.mean;
      X.data[(i + 1) * X.columns - 1] = 1;
    }
    return X;
  }

  /** argmin_U mean (r − X·U)² + λ‖U‖² over the rated rows. */
  foldIn(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings): Float64Array {
    const { A, G, U, free, targets } = this.equations(X, items, ratings, settings);
    const solved = solve(G, transposedTimes(A, targets));
    free.forEach((k, at) => (U[k] = solved[at]!));
    return U;
  }

  weightShares(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings): Float64Array[] {
    const { A, G, free, targets } = this.equations(X, items, ratings, settings);
    return sharesOf(G, A, targets).map((share) => {
      const whole = new Float64Array(X.columns);
      free.forEach((k, at) => (whole[k] = share[at]!));
      return whole;
    });
  }

  private equations(X: Table, items: ArrayLike<number>, ratings: Float64Array, settings: Settings) {
    const factors = numberOf(settings, "factors");
    const U = new Float64Array(X.columns);
    if (this.biases) U[factors] = 1;
    const free = Array.from({ length: factors }, (_, k) => k).concat(this.biases ? [factors + 1] : []);
    const own = part(X, items);
    const predicted = times(own, U);
    const A = table(own.rows, free.length);
    for (let j = 0; j < own.rows; j++) free.forEach((k, at) => (A.data[j * free.length + at] = own.data[j * X.columns + k]!));
    const G = gram(A);
    const ridge = Math.max(numberOf(settings, "regularisation") * items.length, 1e-9);
    for (let k = 0; k < free.length; k++) G.data[k * free.length + k]! += ridge;
    return { A, G, U, free, targets: ratings.map((rating, j) => rating - predicted[j]!) };
  }
}
