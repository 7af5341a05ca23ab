/** What noised sums cost the person here: `deploy/device/budget.py`. */
import { epsilonOf } from "../privacy/accounting";
import type { SumTerms } from "../secure/terms";
import { digestOf } from "../wire/packet";
import { STATISTICS_ROUND } from "../wire/request";
import { fixedSettings, number, section, type TrainingConfig } from "../wire/settings";
import type { Keeping } from "./keeping";
import { checkBudget } from "./policy";

/** What is paid for together: a model under its settings. */
export function taskOf(model: string, config: TrainingConfig): string {
  return digestOf({ model, settings: fixedSettings(config) }, {});
}

/** ε and δ that a task claims; 0 where it claims none. */
export function askedBudget(config: TrainingConfig, round: number): { epsilon: number; delta: number } {
  const [privacy, statistics] = [section(config, "privacy"), section(config, "statistics")];
  const part = privacy.rule !== "none" ? privacy : round === STATISTICS_ROUND ? statistics : null;
  return part ? { epsilon: number(part, "epsilon"), delta: number(part, "delta") } : { epsilon: 0, delta: 0 };
}

/** What one more release costs; refused beyond the person's budget for a task, or for life. */
export async function checkCost(keeping: Keeping, model: string, config: TrainingConfig, round: number, terms: SumTerms): Promise<number> {
  const asked = askedBudget(config, round);
  const lines = (await keeping.ledger()).filter(({ task }) => task === taskOf(model, config));
  const again = lines.some(({ release }) => release === round) && terms.noise !== null;
  const repeated = again ? epsilonOf([terms.noise!.multiplier], asked.delta) : 0;
  const cost = asked.epsilon === 0 || lines.length === 0 ? asked.epsilon : repeated;
  checkBudget(await keeping.policy(), asked, await keeping.spent(), cost);
  return cost;
}
