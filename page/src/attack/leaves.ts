/** `leaves.json` and `leaves.bin`: every preset's client step, and the tables of other runs. */
import { columns, type Table } from "../engine/linear";
import { readArray, type ArrayFacts, type SharedModel } from "../engine/format";
import type { Config } from "../client/device";

export interface Attacker {
  /** weight on log popularity: how much more popular rated items are than pseudo items */
  readonly popularity: number;
  /** weight on a row's residual */
  readonly residual: number;
  /** how weights come about, and over which rows; null where the model says nothing */
  readonly fitted: "by steps" | "exactly" | null;
  readonly over: "all" | "rated" | null;
}

export interface Preset extends Config {
  /** whether the page's own model was trained by it */
  readonly own: boolean;
  /** null where the site has no table that its model can step from */
  readonly table: { readonly number: number; readonly from: number; readonly to: number } | null;
  /** the algorithm of the run that has this table */
  readonly trained_by: string;
  readonly round: number;
  /** of its item table */
  readonly columns: number;
  readonly view: "uploads" | "sums" | "nothing";
  readonly weighs_on_client: boolean;
  readonly ratio: number;
  readonly attacker: Attacker;
}

export interface LeavesFacts {
  readonly presets: readonly Preset[];
  readonly arrays: readonly ArrayFacts[];
  /** between two ratings of the scale, in standard units */
  readonly step: number;
}

/** The table that a preset's client step runs at. */
export function tableOf(preset: Preset, facts: LeavesFacts, bytes: ArrayBuffer, model: SharedModel): Table | null {
  if (!preset.table) return null;
  const { number, from, to } = preset.table;
  const whole = number === 0 ? model.V : readArray(facts.arrays, bytes, `V${number}`);
  return from === 0 && to === whole.columns ? whole : columns(whole, from, to);
}
