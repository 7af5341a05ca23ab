/** What a person adds to a round's sum, in double precision, by the plain equations: `rounds/client.py`. */
import { LOCAL_TRAINING } from "../client/local_training";
import { wassersteinWeight } from "../client/weights";
import { table } from "../engine/linear";
import { standardise } from "../engine/recommender";
import type { Scale } from "../engine/format";
import { bounded } from "../privacy/person";
import type { Contribution } from "../secure/ring";
import type { Catalogue } from "../wire/catalogue";
import { matrixOf, type Request } from "../wire/request";
import { optionsOf, section } from "../wire/settings";

export const BATCH = 5;

/** Ratings by item number, ascending, in standard units. */
export function ratedItems(ratings: ReadonlyMap<string, number>, catalogue: Catalogue): Map<number, number> {
  const places = new Map(catalogue.ids.map((id, item) => [id, item]));
  const known = [...ratings].flatMap(([id, rating]) => (places.has(id) ? [[places.get(id)!, onScale(catalogue.scale, rating)] as const] : []));
  return new Map(known.sort(([one], [other]) => one - other));
}

/** All changes, if they are enough for a batch; otherwise as it was. A first round takes everything. */
export function withBatch(before: ReadonlyMap<number, number> | undefined, now: ReadonlyMap<number, number>): ReadonlyMap<number, number> {
  if (!before?.size) return now;
  const items = new Set([...before.keys(), ...now.keys()]);
  const changes = [...items].filter((item) => before.get(item) !== now.get(item)).length;
  return now.size === 0 || changes < BATCH ? before : now;
}

/** The weighed, and where there is a budget clipped, change of a person's rows. */
export function contributionOf(rated: ReadonlyMap<number, number>, request: Request, catalogue: Catalogue): Contribution | null {
  if (!rated.size) return null;
  const { config } = request;
  const [items, ratings] = [Int32Array.from(rated.keys()), Float64Array.from(rated.values())];
  const rows = { items, ratings, rated: Array.from(items, () => true) };
  const broadcast = { round: request.round, V: matrixOf(request.tables["V"]!), known: catalogue.known, features: table(0, 0) };
  const device = { items, ratings, step: 0, U: new Float64Array(0), secret: 0n };
  const model = section(config, "model");
  const { delta, statistic } = LOCAL_TRAINING[model.rule]!(device, rows, broadcast, optionsOf(model));
  const upload = weighed({ items, delta, statistic, weight: null }, request);
  const privacy = section(config, "privacy");
  return privacy.rule === "distributed" ? bounded(upload, privacy) : upload;
}

/** Where clients weigh themselves: w·Δ and w instead of Δ. */
function weighed(upload: Contribution, request: Request): Contribution {
  const rule = section(request.config, "aggregation");
  if (rule.values["weigh_on"] !== "client") return upload;
  const weight = rule.rule === "uniform" ? 1 : wassersteinWeight(upload.items, upload.delta, matrixOf(request.tables["last_step"]!), rule);
  const times = (values: Float64Array): Float64Array => values.map((value) => weight * value);
  return { ...upload, delta: { ...upload.delta, data: times(upload.delta.data) }, statistic: times(upload.statistic), weight };
}

/** A rating as a level of the scale, in standard units. */
function onScale(scale: Scale, rating: number): number {
  const level = Math.floor((rating - scale.low) / scale.step + 0.5);
  return standardise(scale, scale.low + scale.step * level);
}
