/** Sums of groups, joined so that few clients can't do much to all: `joined` in `parts/channel/_groups.py`. */
import { dot, row, type Table } from "../engine/linear";
import { sum, type PublicItems } from "../engine/public_items";
import type { Sums } from "./sums";

const ODD = 1.5;
const ROW = 2.5;
const LEAST = 1e-12;
const BESIDE = 1.5;
const PEERS = 401;

/** The groups' sums in one: odd groups are left out, and of the others each row is bounded. */
export function joined(groups: readonly Sums[], { popularity }: PublicItems, people: number): Sums {
  if (groups.length < 3) return added(groups);
  const expected = groups.map(({ clients }) => popularity.map((count) => clients * (count / Math.max(people || 1, 1))));
  const norms = groups.map(({ total }) => Float64Array.from({ length: total.rows }, (_, i) => Math.sqrt(dot(row(total, i), row(total, i)))));
  const sizes = norms.map((each, g) => Math.sqrt(dot(each, each) / Math.max(sum(expected[g]!), LEAST)));
  const beside = groups.map(({ statistic, clients }) => Math.sqrt(dot(statistic, statistic)) / Math.max(clients, 1));
  const like = [likeOthers(groups.map(({ clients }) => clients)), likeOthers(groups.map(({ overall, clients }) => overall / Math.max(clients, 1)))];
  const alike = sizes.map((one, g) => like.every((each) => each[g]!) && Number.isFinite(one + beside[g]!));
  const judges = alike.some(Boolean) ? alike : alike.map(() => true); // who lies of persons has no say of sizes
  const [size, other] = [sizes, beside].map((each) => median(each.filter((_, g) => judges[g]!))) as [number, number];
  const odd = sizes.map((one, g) => !(alike[g]! && one <= ODD * size && beside[g]! <= ODD * other));
  if (odd.every(Boolean)) odd[sizes.indexOf(Math.min(...sizes))] = false;
  const kept = groups.map((group, g) => ({ ...group, total: bounded(group.total, norms[g]!, expected[g]!, ROW * size) }));
  const sums = added(kept.filter((_, g) => !odd[g]));
  return { ...sums, total: likePeers(sums.total, popularity) };
}

/** Which groups' figures are near the median group's: each member of a group can say what it likes of them. */
function likeOthers(figures: readonly number[]): boolean[] {
  const middle = median(figures);
  return figures.map((one) => one <= ODD * middle && middle <= ODD * one);
}

/** Each row no longer, per n^¾, than BESIDE times the median of the PEERS rows nearest in how many are expected. */
function likePeers(total: Table, popularity: ArrayLike<number>): Table {
  const norms = Float64Array.from({ length: total.rows }, (_, i) => {
    const root = Math.sqrt(Math.max(popularity[i]!, LEAST));
    return Math.sqrt(dot(row(total, i), row(total, i))) / (root * Math.sqrt(root));
  });
  const order = [...norms.keys()].filter((i) => norms[i]! > 0).sort((i, j) => popularity[i]! - popularity[j]!);
  const width = Math.min(PEERS, order.length);
  const factors = new Float64Array(total.rows).fill(1);
  order.forEach((i, place) => {
    const first = Math.min(Math.max(place - (width >> 1), 0), order.length - width);
    const most = BESIDE * median(order.slice(first, first + width).map((peer) => norms[peer]!));
    factors[i] = Math.min(1, most / norms[i]!);
  });
  return { ...total, data: total.data.map((value, at) => value * factors[Math.floor(at / total.columns)]!) };
}

function bounded(total: Table, norms: Float64Array, expected: Float64Array, most: number): Table {
  const factors = norms.map((norm, i) => Math.min(1, (most * Math.sqrt(expected[i]!)) / Math.max(norm, LEAST)));
  return { ...total, data: total.data.map((value, at) => value * factors[Math.floor(at / total.columns)]!) };
}

function added(groups: readonly Sums[]): Sums {
  const plus = (a: Float64Array, b: Float64Array): Float64Array => a.map((value, at) => value + b[at]!);
  return groups.reduce((one, other) => ({
    ...one, total: { ...one.total, data: plus(one.total.data, other.total.data) }, weights: plus(one.weights, other.weights),
    overall: one.overall + other.overall, clients: one.clients + other.clients, statistic: plus(one.statistic, other.statistic),
  }));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}
