/** What releases cost, by Rényi divergences of Gaussians: `parts/privacy/_accounting.py` with its accountant RDP. */

/** Orders of dp-accounting's accountant. */
const ORDERS = [
  ...Array.from({ length: 99 }, (_, place) => (11 + place) / 10),
  ...Array.from({ length: 53 }, (_, place) => 11 + place),
  128, 256, 512, 1024,
];
const HALVINGS = 200;
/** How much multipliers of other devices may differ from those here. */
export const CLOSE = 1e-8;

/** ε of sums with Gaussian noise of these multipliers, together. After: Canonne, Kamath and Steinke 2020, Proposition 12 */
export function epsilonOf(multipliers: readonly number[], delta: number): number {
  const spent = multipliers.reduce((total, z) => total + z ** -2, 0);
  const bounds = ORDERS.map((order) => {
    const divergence = (order * spent) / 2;
    if (delta ** 2 + Math.expm1(-divergence) > 0) return 0;
    return divergence + Math.log1p(-1 / order) - Math.log(delta * order) / (order - 1);
  });
  return Math.max(0, Math.min(...bounds));
}

/** The least noise multiplier of one sum that keeps within a budget. */
export function calibrated(epsilon: number, delta: number): number {
  let [low, high] = [1e-3, 1e6];
  for (let turn = 0; turn < HALVINGS && high / low > 1 + 1e-12; turn++) {
    const middle = Math.sqrt(low * high);
    if (epsilonOf([middle], delta) <= epsilon) high = middle;
    else low = middle;
  }
  return high;
}
