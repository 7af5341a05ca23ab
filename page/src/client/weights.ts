/** A client's own weight: `parts/aggregation/wasserstein.py`. */
import { row, type Table } from "../engine/linear";
import { number, type Part } from "../wire/settings";

const SMALLEST = 1e-12;
const LARGEST = 32;
const TINY = 2.2250738585072014e-308;

/** w = D^(−τ), D the squared distance between the client's update and the last step. */
export function wassersteinWeight(items: Int32Array, delta: Table, step: Table, rule: Part): number {
  const tau = number(rule, "temperature");
  const squares = Float64Array.from({ length: step.rows }, (_, i) => squareOf(row(step, i)));
  const { unit, smallest } = publicScale(step, squares, rule, tau);
  const least = number(rule, "bound") * overRows(items, squares, rule);
  const apart = squares.slice();
  items.forEach((item, place) => (apart[item] = squareOf(row(delta, place).map((value, k) => value - step.data[item * step.columns + k]!))));
  return unit * Math.max(overRows(items, apart, rule), least, smallest) ** -tau;
}

/** Factor on the weights, and the least D; both follow from what everybody was told. */
function publicScale(step: Table, squares: Float64Array, rule: Part, tau: number): { unit: number; smallest: number } {
  const size = rule.values["rows"] === "table" ? sum(squares) : sum(squares) / squares.length;
  if (tau === 0 || !(size > 0 && size < Infinity)) return { unit: 1, smallest: SMALLEST };
  const largest = step.data.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  return { unit: size ** tau / largest, smallest: Math.max(size * LARGEST ** (-1 / tau), TINY) };
}

function overRows(items: Int32Array, squares: Float64Array, rule: Part): number {
  if (rule.values["rows"] === "table") return sum(squares);
  const own = sum(Float64Array.from(items, (item) => squares[item]!));
  return rule.values["rows"] === "own" ? own : own / items.length;
}

function squareOf(values: Float64Array): number {
  return values.reduce((total, value) => total + value * value, 0);
}

function sum(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0);
}
