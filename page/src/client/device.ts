/** What a device has, what it is told, and what it makes of both: `device.py`, `protocol.py`, `config`. */
import type { Choice } from "../engine/format";
import type { Table } from "../engine/linear";
import type { PublicItems } from "../engine/public_items";

export interface Device {
  /** rated items, ascending */
  readonly items: Int32Array;
  /** in standard units */
  readonly ratings: Float64Array;
  /** between two ratings of the scale, in standard units */
  readonly step: number;
  /** what the model keeps on the device between rounds; empty where it keeps nothing */
  readonly U: Float64Array;
  readonly secret: bigint;
}

export interface Broadcast {
  readonly round: number;
  readonly V: Table;
  readonly features: Table;
  readonly known: PublicItems;
}

export interface Config {
  readonly name: string;
  readonly model: Choice;
  readonly pseudo_items: Choice;
  readonly virtual_ratings: Choice;
  readonly encoder: Choice;
  readonly channel: Choice;
  /** whether there are pseudo items: where the channel shows no lists, there is nothing to hide */
  readonly hides_rows: boolean;
  readonly needs_features: boolean;
}

/** Rated and pseudo items together, ascending by item, so that their order tells nothing. */
export interface Rows {
  readonly items: Int32Array;
  readonly ratings: Float64Array;
  readonly rated: readonly boolean[];
}

export interface Upload {
  readonly items: Int32Array;
  readonly delta: Table;
  readonly statistic: Float64Array;
}

export function option(choice: Choice, name: string): number {
  const value = choice.options[name];
  return typeof value === "number" ? value : Number(value ?? 0);
}

/** To the nearest whole number, halves to the even one, as Python and NumPy round. */
export function rint(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest !== 0.5) return Math.round(value);
  return below % 2 === 0 ? below : below + 1;
}

/** Rounded so that ties are ties on every machine: `parts/similarity.py`. */
export function rounded(value: number): number {
  return rint(value * 1e10) / 1e10;
}
