/** What a client does in a round: `rounds/client.py`. */
import { encode, KNOWN_ENCODERS } from "./encoders";
import { LOCAL_TRAINING, predictions } from "./local_training";
import { KNOWN_RULES, selectItems } from "./pseudo_items";
import { fill, KNOWN_FILLS } from "./virtual_ratings";
import type { Broadcast, Config, Device, Rows, Upload } from "./device";
import { table, type Table } from "../engine/linear";
import { MODELS } from "../engine/models";
import type { PublicItems } from "../engine/public_items";

/** Whether every part of a config that runs on a device can run here. */
export function canRun(config: Config): boolean {
  const decoys = !config.hides_rows || (KNOWN_RULES.includes(config.pseudo_items.rule) && KNOWN_FILLS.includes(config.virtual_ratings.rule));
  const encoder = !config.needs_features || KNOWN_ENCODERS.includes(config.encoder.rule);
  return config.model.rule in LOCAL_TRAINING && !config.model.options["batch_size"] && decoys && encoder;
}

export function broadcastOf(round: number, V: Table, known: PublicItems, config: Config): Broadcast {
  return { round, V, known, features: config.needs_features ? encode(V, known, config.encoder) : table(0, 0) };
}

/** A newcomer's device: where a model keeps weights between rounds, those that its steps come to rest at. */
export function deviceOf(items: Int32Array, ratings: Float64Array, step: number, secret: bigint, broadcast: Broadcast, config: Config): Device {
  const { rule, options } = config.model;
  const keeps = rule === "mf" || rule === "biased-mf";
  const model = MODELS[rule]!;
  const U = keeps ? model.foldIn(model.itemColumns(broadcast.V, broadcast.known, options), items, ratings, options, broadcast.known) : new Float64Array(0);
  return { items, ratings, step, U, secret };
}

/** The rows that a client trains on: rated and pseudo items, ascending. */
export function rowsOf(device: Device, broadcast: Broadcast, config: Config): Rows {
  const none = new Int32Array(0);
  const pseudo = config.hides_rows ? selectItems(device, broadcast, config.pseudo_items) : none;
  const predict = predictions(device, broadcast, config.model.rule, config.model.options);
  const ratings = pseudo.length ? fill(pseudo, device, broadcast, predict, config.virtual_ratings) : new Float64Array(0);
  const all = [
    ...Array.from(device.items, (item, j) => ({ item, rating: device.ratings[j]!, rated: true })),
    ...Array.from(pseudo, (item, j) => ({ item, rating: ratings[j]!, rated: false })),
  ].sort((a, b) => a.item - b.item);
  return {
    items: Int32Array.from(all, (each) => each.item),
    ratings: Float64Array.from(all, (each) => each.rating),
    rated: all.map((each) => each.rated),
  };
}

/** Choose pseudo items, train locally, and upload how V's rows moved. The rows themselves stay on the device. */
export function clientRound(broadcast: Broadcast, device: Device, config: Config): { upload: Upload; rows: Rows } {
  const rows = rowsOf(device, broadcast, config);
  const { delta, statistic } = LOCAL_TRAINING[config.model.rule]!(device, rows, broadcast, config.model.options);
  return { upload: { items: rows.items, delta, statistic }, rows };
}
