/** Discrete Gaussian noise as ring integers: `parts/privacy/_noise.py`. */

/** Uniform numbers of 53 bits, as whole numbers and in [0, 1). */
export interface Uniform {
  whole(): number;
  unit(): number;
}

const BITS = 2 ** 53;
const CHUNK = 65_536;

/** Draws from a stream of bytes, from its beginning. */
export function uniformOf(stream: (size: number) => Uint8Array): Uniform {
  let words = new Uint32Array(0);
  let at = 0;
  const next = (): number => {
    if (at === words.length) [words, at] = [new Uint32Array(stream(CHUNK).slice().buffer), 0];
    return words[at++]!;
  };
  const whole = (): number => (next() >>> 5) * 2 ** 26 + (next() >>> 6);
  return { whole, unit: () => whole() / BITS };
}

/** One integer with probability ∝ exp(−k²/2σ²). After: Canonne, Kamath and Steinke 2020, Algorithm 3 */
export function discreteGaussian(sigma: number, draw: Uniform): number {
  const t = Math.floor(sigma) + 1;
  for (;;) {
    const y = discreteLaplace(t, draw);
    if (coin((Math.abs(y) - sigma ** 2 / t) ** 2 / (2 * sigma ** 2), draw)) return y;
  }
}

/** One integer with probability ∝ exp(−|k|/t). After: Algorithm 2 there */
function discreteLaplace(t: number, draw: Uniform): number {
  for (;;) {
    const u = below(t, draw);
    if (!coin(u / t, draw)) continue;
    let v = 0;
    while (coin(1, draw)) v += 1;
    const value = u + t * v;
    const negative = draw.unit() >= 0.5;
    if (negative && value === 0) continue; // zero would come twice
    return negative ? -value : value;
  }
}

/** A uniform integer below a bound, by rejection, so that none is favoured. */
function below(bound: number, draw: Uniform): number {
  const most = BITS - (BITS % bound);
  for (;;) {
    const whole = draw.whole();
    if (whole < most) return whole % bound;
  }
}

/** True with probability exp(−x), to 53 bits. */
function coin(x: number, draw: Uniform): boolean {
  return draw.unit() < Math.exp(-x);
}
