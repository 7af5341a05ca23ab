/** Features of items, by whose cosine pseudo items are chosen: `parts/encoder`. */
import { beside, dot, row, table, unitRows, type Table } from "../engine/linear";
import type { Choice } from "../engine/format";
import type { PublicItems } from "../engine/public_items";
import { option, rounded } from "./device";

type Encoder = (V: Table, known: PublicItems, choice: Choice) => Table;

const ENCODERS: Readonly<Record<string, Encoder>> = {
  identity: (V) => V,
  centred,
  content: (_, known) => known.content,
  public: byContentAndPopularity,
};

export const KNOWN_ENCODERS = Object.keys(ENCODERS);

/** Encoded items with unit rows. */
export function encode(V: Table, known: PublicItems, choice: Choice): Table {
  return unitRows(ENCODERS[choice.rule]!(V, known, choice));
}

/** Cosine of two encoded items. */
export function similarity(first: Table, i: number, second: Table, j: number): number {
  return rounded(dot(row(first, i), row(second, j)));
}

function centred(V: Table): Table {
  const mean = new Float64Array(V.columns);
  for (let i = 0; i < V.rows; i++) for (let k = 0; k < V.columns; k++) mean[k]! += V.data[i * V.columns + k]!;
  return { ...V, data: V.data.map((value, at) => value - mean[at % V.columns]! / V.rows) };
}

/** Unit content features beside soft memberships in popularity bands. */
function byContentAndPopularity(V: Table, known: PublicItems, choice: Choice): Table {
  const level = known.popularity.map((count) => Math.log1p(count));
  const low = level.reduce((a, b) => Math.min(a, b), Infinity);
  const high = level.reduce((a, b) => Math.max(a, b), -Infinity) + 1e-9;
  const count = option(choice, "bands");
  const width = (high - low) / (count - 1);
  const bands = table(V.rows, count);
  for (let i = 0; i < V.rows; i++) {
    for (let k = 0; k < count; k++) bands.data[i * count + k] = Math.exp(-0.5 * ((level[i]! - (low + k * width)) / width) ** 2);
  }
  const weight = option(choice, "popularity_weight");
  const unit = unitRows(bands);
  return beside([unitRows(known.content), { ...unit, data: unit.data.map((value) => weight * value) }]);
}
