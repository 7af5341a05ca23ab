"""What noised sums have cost the people here: the owner's budget for one task and for life, whatever a server calls it.

A task's ε is for each of its releases once. A vector that was given could be unmasked without this node's help, so one
that is given again, with other noise, is paid for again. Costs are added up, which is more than they are together.

After: Dwork, Rothblum and Vadhan 2010 (basic composition)
"""

from __future__ import annotations

from fedrecplus.config import Config
from fedrecplus.deploy.device.policy import load_policy
from fedrecplus.deploy.device.sent import now
from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.ring import STATISTICS_ROUND, SumTerms
from fedrecplus.deploy.wire.settings import fixed_settings
from fedrecplus.parts.privacy import Release, distributed, epsilon_of


def task_of(model: str, config: Config) -> str:
    """What is paid for together: a model under its settings. Another name, or another setting, is another task."""
    return Packet({"model": model, "settings": fixed_settings(config)}, {}).digest


def asked_budget(config: Config, round_number: int) -> tuple[float, float]:
    """ε and δ that a task claims; 0 where it claims none."""
    if config.privacy.rule != "none":
        return config.privacy.settings.epsilon, config.privacy.settings.delta
    if round_number == STATISTICS_ROUND:
        return config.statistics.epsilon, config.statistics.delta
    return 0.0, 0.0


def cost_of(store: Store, task: str, config: Config, round_number: int, terms: SumTerms | None) -> float:
    """What one more release of a task costs: the task's ε if it is the first, its own if it was given before, or 0."""
    epsilon, delta = asked_budget(config, round_number)
    if epsilon == 0.0 or store.value("SELECT task FROM ledger WHERE task = ?", task) is None:
        return epsilon
    given = store.value("SELECT task FROM ledger WHERE task = ? AND release = ?", task, round_number)
    if given is None or terms is None or terms.noise is None:
        return 0.0
    return epsilon_of([Release(terms.noise.multiplier)], delta, distributed.ACCOUNTANT)


def check_cost(store: Store, task: str, config: Config, round_number: int, terms: SumTerms | None) -> float:
    """What a release costs; refused beyond the owner's budget for a task, or for life."""
    policy, (epsilon, delta) = load_policy(store), asked_budget(config, round_number)
    change = "`fedrecplus device policy` changes it"
    if epsilon > policy.largest_epsilon or delta > policy.largest_delta:
        most = f"ε = {policy.largest_epsilon:g} and δ = {policy.largest_delta:g}"
        raise Refusal("policy", f"a task of ε = {epsilon:g}, δ = {delta:g}, and its owner allows {most}; {change}")
    cost, before = cost_of(store, task, config, round_number, terms), spent(store)
    if before + cost > policy.lifetime_epsilon:
        raise Refusal(
            "policy", f"ε = {before:g} is spent, {cost:g} more would exceed {policy.lifetime_epsilon:g}; {change}"
        )
    return cost


def book(store: Store, task: str, round_number: int, cost: float) -> None:
    """Note a release before it leaves, within ``changing``."""
    store.put("ledger", [(None, now(), task, round_number, cost)])


def spent(store: Store) -> float:
    """ε that all tasks together have cost, at most."""
    return float(store.value("SELECT COALESCE(SUM(epsilon), 0) FROM ledger"))
