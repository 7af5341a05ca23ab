/** What a person demands of a server's requests, and why one is refused: `deploy/device/policy.py`. */
import { isPublic, tellsParticipants, type Catalogue } from "../wire/catalogue";
import { Refusal } from "../wire/packet";
import { number, section, type TrainingConfig } from "../wire/settings";
import type { SumTerms } from "../secure/terms";

export interface Policy {
  /** how uploads may travel: a page carries secure sums alone */
  readonly channels: readonly string[];
  /** fewest nodes of a sum */
  readonly leastCohort: number;
  /** whether sums may be of so few persons that they can be taken apart */
  readonly demonstration: boolean;
  /** most that one task may cost, and all tasks together */
  readonly largestEpsilon: number;
  readonly largestDelta: number;
  readonly lifetimeEpsilon: number;
  /** most devices that share the noise of a sum; 0: as many as the task says */
  readonly mostSharing: number;
  /** people who are expected to have rated a row, at least, for it to be in a sum that is no demonstration */
  readonly fewestContributors: number;
}

export const POLICY: Policy = {
  channels: ["secure"], leastCohort: 3, demonstration: false, largestEpsilon: 10, largestDelta: 1e-3, lifetimeEpsilon: 30, mostSharing: 0, fewestContributors: 6,
};

/** Refuse a request that asks for less, whatever the ratings here are: who refuses must not tell of them. */
export function checkPolicy(policy: Policy, config: TrainingConfig, catalogue: Catalogue): void {
  const [channel, privacy] = [section(config, "channel"), section(config, "privacy")];
  if (!policy.channels.includes(channel.rule)) throw refused(`channel.rule=${channel.rule} is not among ${policy.channels.join(", ")}`);
  if (privacy.rule !== "none" && tellsParticipants(catalogue)) throw refused(`privacy.rule=${privacy.rule} with exact figures, which no budget covers`);
  if (channel.values["demonstration"] === true && !policy.demonstration) throw refused("sums of so few people can be taken apart, and you haven't agreed to that");
  const inEarnest = channel.rule === "secure" && channel.values["demonstration"] !== true;
  if (inEarnest && number(channel, "fewest_contributors") < policy.fewestContributors) throw refused("rows of few people alone in the sums");
  if (channel.values["weights"] === "sent") throw refused("each sum would count exactly who in it rated what");
  if (!isPublic(catalogue) && tellsParticipants(catalogue)) throw refused("exact figures of the participants beside secure sums tell what the sums hide");
}

/** Refuse shares of noise that count on more devices than the person does: a server could invent them. */
export function checkNoisePolicy(policy: Policy, { noise }: SumTerms): void {
  if (!noise) return;
  if (!noise.devices) throw refused("noise that as many devices share as the server names: a task says how many");
  if (policy.mostSharing && noise.devices > policy.mostSharing) throw refused(`noise that ${noise.devices} devices share, and ${policy.mostSharing} at most are relied on`);
}

/** Refuse what would cost more than the person allows, for one task or for life. */
export function checkBudget(policy: Policy, asked: { epsilon: number; delta: number }, spent: number, cost: number): void {
  if (asked.epsilon > policy.largestEpsilon || asked.delta > policy.largestDelta) {
    throw refused(`a task of ε = ${asked.epsilon}, δ = ${asked.delta}, and at most ε = ${policy.largestEpsilon}, δ = ${policy.largestDelta} are allowed`);
  }
  if (spent + cost > policy.lifetimeEpsilon) throw refused(`ε = ${spent} is spent, ${cost} more would exceed ${policy.lifetimeEpsilon}`);
}

function refused(why: string): Refusal {
  return new Refusal("policy", why);
}
