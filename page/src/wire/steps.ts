/** The sum that a table was moved by, as it travels: `deploy/wire/steps.py`. */
import type { Table } from "../engine/linear";
import type { Sums } from "../server/sums";
import { digestOf, numbersOf, Refusal, type Packet } from "./packet";

export const SUM = "sum.";
const NAMES = ["total", "weights", "statistic", "scalars"] as const;

/** The sums among a request's arrays, with their name in the task's log; null where there are none. */
export function sumsOf(arrays: Packet["arrays"], V: Table): { readonly sums: Sums; readonly digest: string } | null {
  const told = Object.fromEntries(Object.entries(arrays).filter(([name]) => name.startsWith(SUM)));
  if (!Object.keys(told).length) return null;
  const [total, weights, statistic, scalars] = NAMES.map((name) => told[SUM + name]);
  const fits = total && weights && statistic && scalars && total.shape[1] === V.columns && total.shape[0]! <= V.rows && weights.shape.join() === String(total.shape[0]);
  if (!fits || statistic.shape.length !== 1 || scalars.shape.join() !== "3") throw new Refusal("request", "a sum that is none");
  const numbers = [total, weights, statistic, scalars].map(numbersOf) as [Float64Array, Float64Array, Float64Array, Float64Array];
  if (!numbers.every((array) => array.every(Number.isFinite))) throw new Refusal("request", "a sum that is none");
  const [overall, clients, noise] = numbers[3] as unknown as [number, number, number];
  const sums = { total: { rows: total.shape[0]!, columns: V.columns, data: numbers[0] }, weights: numbers[1], overall, clients: Math.trunc(clients), statistic: numbers[2], noise };
  return { sums, digest: digestOf({}, told) };
}
