/** What the server does in a round, made here from the sums as they were told: `rounds/server.py`. */
import { table, type Table } from "../engine/linear";
import type { PublicItems } from "../engine/public_items";
import { number, optionsOf, section, type Part, type TrainingConfig } from "../wire/settings";
import type { Catalogue } from "../wire/catalogue";
import { joined } from "./groups";
import { newRows, SERVER_MODELS } from "./models";
import type { Sums } from "./sums";

const SMALL = 1e-8;

/** What a device knows of the server. */
export interface ServerState {
  readonly round: number;
  readonly V: Table;
  readonly lastStep: Table;
  readonly moments: readonly Table[];
}

/** A step from an aggregate, and what is kept between rounds: `parts/server_optimizer`. */
interface Optimizer {
  readonly moments: number;
  step(aggregate: Table, moments: readonly Table[], round: number, options: Part): { step: Table; moments: Table[] };
  /** the moments after a round, from the step that it took, where that tells them */
  momentsOf(step: Table, round: number, options: Part): Table[];
}

const OPTIMIZERS: Readonly<Record<string, Optimizer>> = {
  sgd: {
    moments: 0,
    step: (aggregate, _, __, options) => ({ step: scaled(aggregate, rate(options)), moments: [] }),
    momentsOf: () => [],
  },
  momentum: {
    moments: 1,
    step: (aggregate, [before], _, options) => {
      const direction = combined(before!, aggregate, (m, a) => number(options, "momentum") * m + a);
      return { step: scaled(direction, rate(options)), moments: [direction] };
    },
    momentsOf: (step, _, options) => [scaled(step, 1 / rate(options))],
  },
  adam: { moments: 2, step: adam, momentsOf: () => [] },
};

/** Before the first round: a start that follows from the task's seed. */
export function firstState(config: TrainingConfig, known: PublicItems): ServerState {
  const model = section(config, "model");
  const V = SERVER_MODELS[model.rule]!.startItems(BigInt(config.general.values["seed"] as number | bigint), known.popularity.length, optionsOf(model));
  const zeros = table(V.rows, V.columns);
  return inPrecision({ round: 0, V, lastStep: zeros, moments: Array.from({ length: optimizerOf(config).moments }, () => zeros) }, config);
}

/** V ← V + η A, from the sums as they were told. */
export function nextState(state: ServerState, groups: readonly Sums[], { known, people }: Pick<Catalogue, "known" | "people">, config: TrainingConfig): ServerState {
  const [model, options, optimizer] = [section(config, "model"), section(config, "server_optimizer"), optimizerOf(config)];
  const aggregate = SERVER_MODELS[model.rule]!.updateItems(joined(groups, known, people), state.V, known, optionsOf(model));
  const { step, moments } = optimizer.step(aggregate, state.moments, state.round, options);
  const lastStep = scaled(step, cooldown(config, state.round));
  return inPrecision({ round: state.round + 1, V: combined(state.V, lastStep, (v, s) => v + s), lastStep, moments }, config);
}

/** With rows for items that came since, from their features: `grown_state` in `deploy/wire/steps.py`. */
export function grownState(state: ServerState, known: PublicItems, config: TrainingConfig): ServerState {
  const added = known.popularity.length - state.V.rows;
  if (!added) return state;
  const nothing = table(added, state.V.columns);
  const entered = newRows(state.V, known, optionsOf(section(config, "model")));
  const [V, lastStep] = [below(state.V, entered), below(state.lastStep, nothing)];
  return inPrecision({ ...state, V, lastStep, moments: state.moments.map((moment) => below(moment, nothing)) }, config);
}

function below(one: Table, other: Table): Table {
  const both = table(one.rows + other.rows, one.columns);
  both.data.set(one.data);
  both.data.set(other.data, one.data.length);
  return both;
}

/** How much an optimizer remembers. */
export function momentCount(config: TrainingConfig): number {
  return optimizerOf(config).moments;
}

/** What was remembered after the last round, as far as its step tells. */
export function momentsOf(lastStep: Table, round: number, config: TrainingConfig): Table[] {
  const step = scaled(lastStep, 1 / Math.max(cooldown(config, round), 1e-12));
  return optimizerOf(config).momentsOf(step, round, section(config, "server_optimizer"));
}

/** Factor on the step: 1, and in the last rounds falling linearly to 0. */
function cooldown(config: TrainingConfig, round: number): number {
  const server = section(config, "server");
  const share = number(server, "cooldown");
  return share > 0 ? Math.min(1, (1 - round / Number(server.values["rounds"])) / share) : 1;
}

function optimizerOf(config: TrainingConfig): Optimizer {
  return OPTIMIZERS[section(config, "server_optimizer").rule]!;
}

function adam(aggregate: Table, [before, squared]: readonly Table[], round: number, options: Part): { step: Table; moments: Table[] } {
  const [b, c] = [number(options, "momentum"), number(options, "second_momentum")];
  const first = combined(before!, aggregate, (m, a) => b * m + (1 - b) * a);
  const second = combined(squared!, aggregate, (m, a) => c * m + (1 - c) * a * a);
  const size = (m: number, s: number): number => (rate(options) * m) / (1 - b ** (round + 1)) / (Math.sqrt(s / (1 - c ** (round + 1))) + SMALL);
  return { step: combined(first, second, size), moments: [first, second] };
}

function rate(options: Part): number {
  return number(options, "learning_rate");
}

function inPrecision(state: ServerState, config: TrainingConfig): ServerState {
  if (config.general.values["precision"] !== "float32") return state;
  return { ...state, V: { ...state.V, data: state.V.data.map(Math.fround) } };
}

function scaled(one: Table, by: number): Table {
  return { ...one, data: one.data.map((value) => by * value) };
}

function combined(one: Table, other: Table, how: (a: number, b: number) => number): Table {
  return { ...one, data: one.data.map((value, at) => how(value, other.data[at]!)) };
}
