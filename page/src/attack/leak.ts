/** One round's upload of this person under a preset, and what the server reads from it. */
import { broadcastOf, canRun, clientRound, deviceOf } from "../client/round";
import type { Rows, Upload } from "../client/device";
import { averages } from "../engine/public_items";
import type { SharedModel } from "../engine/format";
import { tableOf, type LeavesFacts, type Preset } from "./leaves";
import { oneRound } from "./one_round";
import { onScale } from "./solved";

/** A person's ratings in standard units, items ascending. */
export interface Rated {
  readonly items: Int32Array;
  readonly ratings: Float64Array;
}

/** A row of an upload in the clear, with the truth beside what the server makes of it. */
export interface LeakRow {
  readonly item: number;
  readonly cells: Float64Array;
  readonly rated: boolean;
  /** real or virtual, in standard units */
  readonly rating: number;
  /** whether the server takes it for rated */
  readonly taken: boolean;
  readonly read: number;
}

export interface InTheClear {
  readonly kind: "uploads";
  readonly rows: readonly LeakRow[];
  readonly bytes: number;
  readonly rated: number;
  readonly decoys: number;
  /** rated items among as many rows as are most likely rated, and how many chance would find */
  readonly named: number;
  readonly namedByChance: number;
  /** real ratings that are read exactly, and how many the public averages give without any upload */
  readonly read: number;
  readonly readFromAverages: number;
}

export interface Masked {
  readonly kind: "sums";
  readonly items: number;
  readonly columns: number;
  readonly bits: number;
  readonly bytes: number;
  /** whether the site has the preset's own table; a masked upload of another looks alike */
  readonly own: boolean;
}

export type Leak = InTheClear | Masked | { readonly kind: "no-model" };

const BYTES_PER_NUMBER = 4;

export function leakOf(preset: Preset, person: Rated, secret: bigint, facts: LeavesFacts, bytes: ArrayBuffer, model: SharedModel): Leak {
  const V = tableOf(preset, facts, bytes, model);
  if (preset.view !== "uploads") return masked(preset, V?.columns ?? preset.columns, model.V.rows, V !== null);
  if (!V || !canRun(preset) || preset.weighs_on_client || preset.attacker.fitted === null) return { kind: "no-model" };
  const message = broadcastOf(preset.round, V, model.known, preset);
  const device = deviceOf(person.items, person.ratings, facts.step, secret, message, preset);
  const { upload, rows } = clientRound(message, device, preset);
  const guess = oneRound(upload, message, preset, facts.step);
  return inTheClear(upload, rows, guess, facts.step, averages(model.known));
}

function inTheClear(
  upload: Upload, rows: Rows, guess: { ratings: Float64Array; evidence: Float64Array }, step: number, average: Float64Array,
): InTheClear {
  const places = Array.from(upload.items.keys());
  const rated = places.filter((j) => rows.rated[j]);
  const likely = [...places].sort((a, b) => guess.evidence[b]! - guess.evidence[a]! || a - b);
  const taken = new Set(likely.slice(0, rated.length));
  const same = (one: number, other: number): boolean => Math.abs(one - other) < step / 2;
  return {
    kind: "uploads",
    rows: places.map((j) => ({
      item: upload.items[j]!,
      cells: upload.delta.data.subarray(j * upload.delta.columns, (j + 1) * upload.delta.columns),
      rated: rows.rated[j]!,
      rating: rows.ratings[j]!,
      taken: taken.has(j),
      read: guess.ratings[j]!,
    })),
    bytes: BYTES_PER_NUMBER * (upload.items.length + upload.delta.data.length + upload.statistic.length),
    rated: rated.length,
    decoys: places.length - rated.length,
    named: rated.filter((j) => taken.has(j)).length,
    namedByChance: (rated.length * rated.length) / Math.max(places.length, 1),
    read: rated.filter((j) => same(guess.ratings[j]!, rows.ratings[j]!)).length,
    readFromAverages: rated.filter((j) => same(onScale(average[upload.items[j]!]!, step), rows.ratings[j]!)).length,
  };
}

function masked(preset: Preset, columns: number, items: number, own: boolean): Masked {
  const bits = Number(preset.channel.options["bits"] ?? 32);
  return { kind: "sums", items, columns, bits, bytes: (items * columns * bits) / 8, own };
}
