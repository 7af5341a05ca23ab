/** Which settings a page can take part in: what devices everywhere refuse, and what this page hasn't learnt. */
import { Refusal } from "./packet";
import { number, section, type TrainingConfig } from "./settings";

/** Models that keep nothing between rounds. */
const MODELS: readonly string[] = ["reconstruction", "ials", "joint"];
/** Models that upload a small statistic beside their rows. */
const STATISTIC: readonly string[] = ["ials", "joint"];
const AGGREGATIONS: readonly string[] = ["uniform", "wasserstein"];
const PRIVACY: readonly string[] = ["none", "distributed"];

export function isSecure(config: TrainingConfig): boolean {
  return section(config, "channel").rule === "secure";
}

/** Refuse what can't be together, what is for simulation, and what can't be computed here. */
export function checkRunnable(config: TrainingConfig): void {
  checkDeployable(config);
  if (isSecure(config)) checkHere(config); // any other channel is refused by the policy, in its own words
}

/** `check_deployable` in `deploy/wire/request.py`. */
function checkDeployable(config: TrainingConfig): void {
  const { general } = config;
  const [channel, privacy, cohort] = ["channel", "privacy", "cohort"].map((name) => section(config, name)) as [ReturnType<typeof section>, ReturnType<typeof section>, ReturnType<typeof section>];
  demand(general.values["engine"] !== "central", "training in one place needs no devices");
  demand(general.values["simulation_only"] === false, "simulation_only is for simulation");
  demand(general.values["seeded_noise"] === false, "whoever knows the seed of noise knows the noise");
  demand(channel.rule === "clear" || channel.rule === "secure", `channel.rule=${channel.rule} is for simulation`);
  demand(number(cohort, "dropout") === 0, "cohort.dropout is for simulation");
  demand(privacy.rule !== "local", "privacy.rule=local is for simulation");
  demand(privacy.values["amplification"] !== true, "privacy.amplification counts on nobody knowing who takes part");
  demand(privacy.rule !== "distributed" || channel.rule === "secure", "a share of the noise hides no upload by itself");
  demand(channel.rule === "secure" || !STATISTIC.includes(section(config, "model").rule), "a statistic that nobody may see of one person");
  if (channel.rule !== "secure") return;
  demand(channel.values["cryptography"] === "computed", "channel.cryptography=skipped hides nothing");
  demand(number(channel, "groups") === 1 || (privacy.rule !== "central" && privacy.rule !== "distributed"), "noise is planned for one sum of all");
  demand(number(channel, "dropout") === 0, "channel.dropout is for simulation");
  demand(number(channel, "bits") === 16 || number(channel, "bits") === 32, "there is no such ring");
  if (privacy.rule === "distributed") checkNoise(config);
}

/** Refuse noise that hides nothing on a real device, and clips that the ring has no room for. */
function checkNoise(config: TrainingConfig): void {
  const [channel, privacy, aggregation] = [section(config, "channel"), section(config, "privacy"), section(config, "aggregation")];
  const clip = number(privacy, "clip");
  demand(clip > 0, "one person's update has no bound, so no noise covers it");
  demand(number(privacy, "honest") + number(channel, "corrupted") <= 1, "more nodes would have to answer than there are");
  demand(clip <= Math.min(number(channel, "bound"), number(channel, "statistic_bound")), "privacy.clip beyond the channel's bounds");
  demand(section(config, "statistics").values["source"] !== "participants", "exact figures are no part of any budget");
  demand(aggregation.rule === "uniform" && aggregation.values["normalise"] !== "cohort", "weights are no part of the budget");
  demand(number(channel, "bits") === 32, "noise takes a ring of 32 bits");
}

function checkHere(config: TrainingConfig): void {
  const [model, channel, aggregation, privacy] = ["model", "channel", "aggregation", "privacy"].map((name) => section(config, name)) as [ReturnType<typeof section>, ReturnType<typeof section>, ReturnType<typeof section>, ReturnType<typeof section>];
  can(MODELS.includes(model.rule), `model.rule=${model.rule}`);
  can(channel.values["rows"] === "whole", `channel.rows=${String(channel.values["rows"])}`);
  can(PRIVACY.includes(privacy.rule), `privacy.rule=${privacy.rule}`);
  can(model.values["interaction_start"] !== "features", "model.interaction_start=features");
  can(AGGREGATIONS.includes(aggregation.rule), `aggregation.rule=${aggregation.rule}`);
  can(aggregation.rule === "uniform" || aggregation.values["covariance"] === "none", "aggregation.covariance");
  if (aggregation.rule !== "wasserstein") return;
  demand(aggregation.values["weigh_on"] === "client", "weights by the server need single uploads");
  demand(aggregation.values["global_step"] === "last", "a client doesn't know this round's mean");
}

function demand(sound: boolean, problem: string): void {
  if (!sound) throw new Refusal("request", problem);
}

function can(possible: boolean, setting: string): void {
  if (!possible) throw new Refusal("rule", `this page can't take part with ${setting}; a node of fedrecplus can`);
}
