/** The sums that a table was moved by, as they travel, one of each group: `deploy/wire/steps.py`. */
import type { Table } from "../engine/linear";
import type { Sums } from "../server/sums";
import { digestOf, numbersOf, Refusal, type Packet, type WireArray } from "./packet";

export const SUM = "sum.";
const NAMES = ["total", "weights", "statistic", "scalars"] as const;

type Shape = Pick<Table, "rows" | "columns">;

/** The sums among a request's arrays, with their names in the task's log; null where there are none. */
export function sumsOf(arrays: Packet["arrays"], V: Shape): { readonly groups: readonly Sums[]; readonly digest: string } | null {
  const told = Object.fromEntries(Object.entries(arrays).filter(([name]) => name.startsWith(SUM)));
  if (!Object.keys(told).length) return null;
  const count = told[`${SUM}total`]?.shape[0] ?? 0;
  const each = Array.from({ length: count }, (_, place) => Object.fromEntries(NAMES.map((name) => [name, partOf(told[SUM + name], place, count)])));
  if (!count) throw refused();
  return { groups: each.map((one) => sumOf(one, V)), digest: each.map((one) => digestOf({}, one)).join(" ") };
}

/** One group's part of tables that lie above each other. */
function partOf(array: WireArray | undefined, place: number, count: number): WireArray {
  if (!array || array.shape[0] !== count) throw refused();
  const size = array.content.length / count;
  return { ...array, shape: array.shape.slice(1), content: array.content.slice(place * size, (place + 1) * size) };
}

function sumOf(told: Packet["arrays"], V: Shape): Sums {
  const arrays = NAMES.map((name) => told[name]!);
  const [total, weights, statistic, scalars] = arrays.map(({ shape }) => shape) as [number[], number[], number[], number[]];
  const fits = total.length === 2 && total[1] === V.columns && total[0]! <= V.rows && weights.join() === String(total[0]) && statistic.length === 1 && scalars.join() === "3";
  const numbers = arrays.map(numbersOf) as [Float64Array, Float64Array, Float64Array, Float64Array];
  if (!fits || !numbers.every((array) => array.every(Number.isFinite))) throw refused();
  const [overall, clients, noise] = numbers[3] as unknown as [number, number, number];
  return { total: { rows: total[0]!, columns: V.columns, data: numbers[0] }, weights: numbers[1], overall, clients: Math.trunc(clients), statistic: numbers[2], noise };
}

function refused(): Refusal {
  return new Refusal("request", "a sum that is none");
}
