/** What a client claims to have given its pseudo items: `parts/virtual_ratings`. */
import type { Choice } from "../engine/format";
import { averages } from "../engine/public_items";
import { similarity } from "./encoders";
import { option, type Broadcast, type Device } from "./device";
import { subkey, uniform } from "./randomness";

/** The client's own predictions, after so many more user steps on its real ratings. */
export type Predict = (items: Int32Array, steps: number) => Float64Array;
type Fill = (items: Int32Array, device: Device, broadcast: Broadcast, predict: Predict, choice: Choice) => Float64Array;

const TIE = 1e-9;
const LOW = 1;
const HIGH = 5;

const FILLS: Readonly<Record<string, Fill>> = {
  "user-average": (items, device) => new Float64Array(items.length).fill(mean(device.ratings)),
  predicted: (items, _device, _broadcast, predict) => predict(items, 0),
  hybrid: (items, device, broadcast, predict, choice) =>
    broadcast.round < option(choice, "predict_after")
      ? new Float64Array(items.length).fill(mean(device.ratings))
      : predict(items, option(choice, "local_steps")),
  nearest,
  weighted,
  drawn,
  plausible,
};

export const KNOWN_FILLS = Object.keys(FILLS);

/** Virtual ratings, on the scale where that is asked for. */
export function fill(items: Int32Array, device: Device, broadcast: Broadcast, predict: Predict, choice: Choice): Float64Array {
  const ratings = FILLS[choice.rule]!(items, device, broadcast, predict, choice);
  return putOnScale(ratings, items, device, choice, broadcast.round);
}

function mean(values: Float64Array): number {
  return values.reduce((total, value) => total + value, 0) / values.length;
}

function keptRound(choice: Choice, round: number): number {
  return choice.options["refresh"] ? round : 0;
}

/** Clip to the scale's ends and, if asked, round to its levels. */
function putOnScale(ratings: Float64Array, items: Int32Array, device: Device, choice: Choice, round: number): Float64Array {
  const clip = (value: number): number => Math.min(Math.max(value, LOW), HIGH);
  const rounding = choice.options["rounding"];
  if (rounding === "none") return ratings.map(clip);
  const key = subkey(device.secret, "rounding", keptRound(choice, round));
  return ratings.map((rating, j) => {
    const level = (clip(rating) - LOW) / device.step;
    const threshold = rounding === "stochastic" ? uniform(key, items[j]!) : 0.5;
    const below = Math.floor(level);
    return clip(LOW + device.step * (below + Number(level - below > threshold + TIE)));
  });
}

/** The rating of the rated item with the greatest cosine. */
function nearest(items: Int32Array, device: Device, { features }: Broadcast): Float64Array {
  return Float64Array.from(items, (item) => {
    let [best, most] = [0, -Infinity];
    device.items.forEach((rated, j) => {
      const alike = similarity(features, item, features, rated);
      if (alike > most) [best, most] = [j, alike];
    });
    return device.ratings[best]!;
  });
}

/** The mean of the client's ratings, those of similar items weighing more. */
function weighted(items: Int32Array, device: Device, { features }: Broadcast): Float64Array {
  return Float64Array.from(items, (item) => {
    const weights = Array.from(device.items, (rated) => Math.max(similarity(features, item, features, rated), 0));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    if (total <= 0) return mean(device.ratings);
    return weights.reduce((sum, weight, j) => sum + weight * device.ratings[j]!, 0) / total;
  });
}

/** One of the client's own ratings, drawn, those of similar items more often. */
function drawn(items: Int32Array, device: Device, broadcast: Broadcast, _predict: Predict, choice: Choice): Float64Array {
  const average = averages(broadcast.known);
  const key = subkey(device.secret, "drawn", keptRound(choice, broadcast.round));
  const { features } = broadcast;
  return Float64Array.from(items, (item) => {
    let total = 0;
    const shares = Array.from(device.items, (rated) => {
      const apart = (average[item]! - average[rated]!) / option(choice, "width");
      const cosine = similarity(features, item, features, rated);
      return (total += Math.exp((cosine - 1) / option(choice, "temperature") - 0.5 * apart ** 2));
    });
    const draw = uniform(key, item) * total;
    const place = shares.filter((share) => share <= draw).length;
    return device.ratings[Math.min(place, device.items.length - 1)]!;
  });
}

/** The item's public average, and one of the client's own deviations. */
function plausible(items: Int32Array, device: Device, broadcast: Broadcast, _predict: Predict, choice: Choice): Float64Array {
  const average = averages(broadcast.known);
  const deviations = device.ratings.map((rating, j) => rating - average[device.items[j]!]!);
  const key = subkey(device.secret, "plausible", keptRound(choice, broadcast.round));
  const bias = mean(deviations);
  return Float64Array.from(items, (item) => {
    const place = Math.floor(uniform(key, item) * deviations.length);
    return average[item]! + bias + option(choice, "share") * (deviations[place]! - bias);
  });
}
