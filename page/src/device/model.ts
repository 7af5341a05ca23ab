/** The model that a server's table makes with its catalogue: what the page folds a person into. */
import type { SharedModel } from "../engine/format";
import { columns, dot, gram, times, type Table } from "../engine/linear";
import { MODELS } from "../engine/models";
import { sum, type ListFacts, type PublicItems, type Settings } from "../engine/public_items";
import type { Catalogue } from "../wire/catalogue";
import { number, optionsOf, section, type TrainingConfig } from "../wire/settings";

const STANDS_OUT = 3.2;
const CHANCE = 2.5;
const FEWEST_FACTORS = 16;
const TURNS = 300;
const FORMAT = 1;

export function sharedModel(config: TrainingConfig, V: Table, catalogue: Catalogue, round: number, server: string): SharedModel {
  const chosen = section(config, "model");
  const settings = optionsOf(chosen);
  const known: PublicItems = { ...catalogue.known, lists: listFacts(settings, V, catalogue.known) };
  const rule = MODELS[chosen.rule]!;
  const { average } = known;
  const facts = {
    format: FORMAT, algorithm: String(config.general.values["algorithm"]), dataset: new URL(server).host, scale: catalogue.scale,
    model: { rule: chosen.rule, options: settings }, mean: known.mean, noise: known.noise, rounds: round,
    likes_alone: average.length > 1 && Math.max(...average) - Math.min(...average) < 1e-9,
    scores_lists: chosen.rule !== "reconstruction" || number(chosen, "popularity_weight") > 0,
    lists: known.lists ?? null, arrays: [], precision: null, made: {},
  };
  return { facts, rule, settings, V, X: rule.itemColumns(V, known, settings), known };
}

/** What everybody's list score has in common; null where choices have no part in it: `ials.mixing_weights`. */
function listFacts(settings: Settings, V: Table, known: PublicItems): ListFacts | null {
  const factors = settings["interaction_factors"];
  if (typeof factors !== "number") return null;
  const counts = known.popularity;
  const met = dot(counts, counts) / Math.max(sum(counts), 1);
  const rare = 1 / (1 + (met / Number(settings["few_ratings"])) ** 4);
  const { alike, first } = likeness(columns(V, V.columns - factors, V.columns), counts);
  return { rating: Number(settings["rating_weight"]) / known.noise, popularity: Number(settings["popularity_weight"]) * known.noise * rare, alike, first: alike ? first : [] };
}

/** α, from 0 where W's components differ to 1 where all but the first are alike, and the direction of the first. */
function likeness(W: Table, popularity: Float64Array): { alike: number; first: number[] } {
  const G = gram(W, popularity.map((count) => Math.sqrt(1 + count)));
  const [first, second] = [strongest(G, null), strongest(G, strongest(G, null).direction)];
  const trace = Array.from({ length: G.columns }, (_, k) => G.data[k * (G.columns + 1)]!).reduce((total, value) => total + value, 0);
  const mean = W.columns >= FEWEST_FACTORS ? (trace - first.strength) / (G.columns - 1) : 0;
  const alike = mean > 0 ? Math.min(Math.max((STANDS_OUT - second.strength / mean) / (STANDS_OUT - CHANCE), 0), 1) : 0;
  return { alike, first: [...first.direction] };
}

/** The greatest eigenvalue and its direction, beside another direction: power iteration. */
function strongest(G: Table, beside: Float64Array | null): { strength: number; direction: Float64Array } {
  let direction = Float64Array.from({ length: G.columns }, (_, k) => 1 + 0.1 * Math.sin(k + 1));
  let strength = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    const along = beside ? dot(direction, beside) : 0;
    if (beside) direction = direction.map((value, k) => value - along * beside[k]!);
    const moved = times(G, direction);
    strength = Math.sqrt(dot(moved, moved)) / Math.max(Math.sqrt(dot(direction, direction)), Number.MIN_VALUE);
    const length = Math.sqrt(dot(moved, moved));
    if (length === 0) break;
    direction = moved.map((value) => value / length);
  }
  return { strength, direction };
}
