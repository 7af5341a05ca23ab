/** Reading `model.json` and `model.bin`, which `fedrecplus page` writes: `web/page/quantise.py`. */
import { table, type Table } from "./linear";
import { MODELS, type ModelRule } from "./models";
import type { ListFacts, PublicItems, Settings } from "./public_items";

/** One array of `model.bin`: value = low + scale × code, column by column. */
export interface ArrayFacts {
  readonly name: string;
  readonly type: "uint8" | "uint16" | "uint32";
  readonly offset: number;
  readonly rows: number;
  readonly columns: number;
  readonly low: readonly number[];
  readonly scale: readonly number[];
}

export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly step: number;
}

export interface Choice {
  readonly rule: string;
  readonly options: Settings;
}

export interface ModelFacts {
  readonly format: number;
  readonly algorithm: string;
  readonly dataset: string;
  readonly scale: Scale;
  readonly model: Choice;
  readonly mean: number;
  readonly noise: number;
  readonly rounds: number;
  readonly likes_alone: boolean;
  /** whether lists are ranked by a score of their own; otherwise predicted ratings rank */
  readonly scores_lists: boolean;
  /** null where choices have no part in that score */
  readonly lists: ListFacts | null;
  readonly arrays: readonly ArrayFacts[];
  /** null where the table came as it is */
  readonly precision: { readonly bits: number; readonly mean_change: number; readonly largest_change: number; readonly same_top_ten: number } | null;
  readonly made: Readonly<Record<string, string | number>>;
}

export interface SharedModel {
  readonly facts: ModelFacts;
  readonly rule: ModelRule;
  readonly settings: Settings;
  readonly V: Table;
  readonly X: Table;
  readonly known: PublicItems;
}

const FORMAT = 1;

export function readModel(facts: ModelFacts, bytes: ArrayBuffer): SharedModel {
  if (facts.format !== FORMAT) throw new Error(`model.json has format ${facts.format}, and this page reads ${FORMAT}`);
  const rule = MODELS[facts.model.rule];
  if (!rule) throw new Error(`this page can't compute the model ${facts.model.rule}`);
  const read = (name: string): Table => readArray(facts.arrays, bytes, name);
  const known: PublicItems = {
    content: read("content"),
    popularity: read("popularity").data,
    average: read("average").data,
    years: read("years").data,
    mean: facts.mean,
    noise: facts.noise,
    lists: facts.lists,
  };
  const V = read("V");
  const settings = facts.model.options;
  return { facts, rule, settings, V, X: rule.itemColumns(V, known, settings), known };
}

export function readArray(arrays: readonly ArrayFacts[], bytes: ArrayBuffer, name: string): Table {
  const found = arrays.find((each) => each.name === name);
  if (!found) throw new Error(`the site has no array ${name}`);
  const size = found.rows * found.columns;
  const types = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array };
  const codes = new types[found.type](bytes, found.offset, size);
  const result = table(found.rows, found.columns);
  for (let at = 0, k = 0; at < size; at++) {
    result.data[at] = found.low[k]! + found.scale[k]! * codes[at]!;
    k = k + 1 === found.columns ? 0 : k + 1;
  }
  return result;
}
