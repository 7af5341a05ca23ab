/** A training's settings as they travel: `deploy/wire/settings.py`, over what Python says of every setting. */
import { parse } from "smol-toml";
import type { Settings as Options } from "../engine/public_items";
import { isRecord, quoted, Refusal } from "./packet";
import known from "./settings.json";

type Value = number | string | boolean | bigint;

interface Setting {
  readonly kind: string;
  readonly default: Value;
  readonly low?: number;
  readonly high?: number;
  readonly values?: readonly string[];
}

interface Described {
  readonly settings: Readonly<Record<string, Setting>>;
  readonly constants: Readonly<Record<string, Value>>;
}

/** A section's or a rule's settings, all of them. */
export interface Part {
  /** empty of sections that choose no rule */
  readonly rule: string;
  readonly values: Readonly<Record<string, Value>>;
  readonly constants: Readonly<Record<string, Value>>;
}

export type Sections = Readonly<Record<string, Part>>;

export interface TrainingConfig {
  readonly general: Part;
  readonly sections: Sections;
}

const GENERAL = known.general as unknown as Described;
const SECTIONS = known.sections as unknown as Readonly<Record<string, Described>>;
const RULES = known.rules as unknown as Readonly<Record<string, Readonly<Record<string, Described>>>>;
/** What a kind has where nothing is told: `config.Config`. */
const FIRST: Readonly<Record<string, string>> = {
  model: "mf", pseudo_items: "none", virtual_ratings: "user-average", encoder: "centred", aggregation: "uniform",
  channel: "clear", privacy: "none", server_optimizer: "sgd",
};

/** The config in a server's text. A name that isn't known came later than this page, or was invented. */
export function configOf(text: string): TrainingConfig {
  let tables: Record<string, unknown>;
  try {
    tables = parse(text, { integersAsBigInt: true });
  } catch {
    throw new Refusal("rule", "the server's config is no TOML");
  }
  const own = Object.entries(tables).filter(([, value]) => !isRecord(value));
  const general = partOf("", GENERAL, Object.fromEntries(own), "");
  for (const name of Object.keys(tables)) {
    if (isRecord(tables[name]) && !(name in SECTIONS) && !(name in RULES)) throw unknown(name);
  }
  const told = (name: string): Record<string, unknown> => (isRecord(tables[name]) ? (tables[name] as Record<string, unknown>) : {});
  const plain = Object.keys(SECTIONS).map((name) => [name, partOf("", SECTIONS[name]!, told(name), `${name}.`)] as const);
  const chosen = Object.keys(RULES).map((name) => [name, chosenPart(name, told(name))] as const);
  return { general, sections: Object.fromEntries([...plain, ...chosen]) };
}

export function section(config: TrainingConfig, name: string): Part {
  return config.sections[name]!;
}

export function number(part: Part, name: string): number {
  const value = part.values[name] ?? part.constants[name];
  if (typeof value !== "number") throw new Error(`no number ${name}`);
  return value;
}

/** Options as models take them: what is set, and what is the same in every training. */
export function optionsOf(part: Part): Options {
  return { ...part.constants, ...part.values } as Options;
}

/** The settings that must not change while a model is trained, as Python writes them. */
export function fixedSettings(config: TrainingConfig): string {
  const budget = section(config, "privacy").rule !== "none";
  const fields: [string, string][] = tellings(config.general, GENERAL).map(([name, value]) => [name, value]);
  for (const [name, part] of Object.entries(config.sections)) {
    if (name === "evaluation") continue;
    const described = part.rule ? RULES[name]![part.rule]! : SECTIONS[name]!;
    const told = tellings(part, described).filter(([option]) => budget || name !== "server" || option !== "rounds");
    if (part.rule) told.push(["rule", quoted(part.rule)]);
    if (told.length) fields.push([name, jsonObject(told)]);
  }
  return jsonObject(fields);
}

function tellings(part: Part, described: Described): [string, string][] {
  const other = Object.entries(part.values).filter(([name, value]) => value !== described.settings[name]!.default);
  return other.map(([name, value]) => [name, written(described.settings[name]!, value)]);
}

function jsonObject(fields: readonly (readonly [string, string])[]): string {
  const sorted = [...fields].sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${sorted.map(([name, value]) => `${quoted(name)}: ${value}`).join(", ")}}`;
}

function written(setting: Setting, value: Value): string {
  if (typeof value === "string") return quoted(value);
  return typeof value === "number" && setting.kind === "number" ? pythonFloat(value) : String(value);
}

/** A number as Python's repr has it: 1e-05, 5.0, 1e+16. */
export function pythonFloat(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits, power] = value.toExponential().split("e") as [string, string];
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  const plain = exponent < 0 ? value.toFixed(digits.replace(/[-.]/g, "").length - 1 - exponent) : String(value);
  return plain.includes(".") ? plain : `${plain}.0`;
}

function chosenPart(kind: string, told: Record<string, unknown>): Part {
  const { rule = FIRST[kind], ...rest } = told;
  const described = typeof rule === "string" && Object.hasOwn(RULES[kind]!, rule) ? RULES[kind]![rule]! : null;
  if (!described) throw new Refusal("rule", `${kind}.rule = ${String(rule).slice(0, 40)} would run code that doesn't come with this page`);
  return partOf(rule as string, described, rest, `${kind}.`);
}

function partOf(rule: string, described: Described, told: Record<string, unknown>, prefix: string): Part {
  const values: Record<string, Value> = Object.fromEntries(Object.entries(described.settings).map(([name, setting]) => [name, setting.default]));
  for (const [name, value] of Object.entries(told)) {
    if (!Object.hasOwn(described.settings, name)) throw unknown(prefix + name);
    values[name] = checked(described.settings[name]!, value, prefix + name);
  }
  return { rule, values, constants: described.constants };
}

function checked(setting: Setting, told: unknown, path: string): Value {
  const wrong = new Refusal("rule", `${path} = ${String(told).slice(0, 40)} is no value that it may have`);
  if (setting.kind === "flag") {
    if (typeof told !== "boolean") throw wrong;
    return told;
  }
  if (setting.kind === "text") {
    if (typeof told !== "string" || (setting.values && !setting.values.includes(told))) throw wrong;
    return told;
  }
  if (typeof told !== "bigint" && (setting.kind === "whole" || typeof told !== "number")) throw wrong;
  const value = Number(told);
  if (!Number.isFinite(value) || value < setting.low! || value > setting.high!) throw wrong;
  return typeof told === "bigint" && !Number.isSafeInteger(value) ? told : value;
}

function unknown(path: string): Refusal {
  return new Refusal("version", `the setting ${path.slice(0, 60)} in the server's config is not known here: load this page anew`);
}
