"""Canary clients: an empirical lower bound on ε from one run, beside the claimed one.

Each canary takes part by its own coin and sends as much as clipping lets through, or zero (or its opposite, where the
claim is about replacing). It goes the way of every device: into the sum of the statistics, then into every round's
(where the claim counts on nobody knowing who is drawn, into those it is drawn for), weighed, clipped, added up, with
noise. An attacker who knows everything but coins and draws guesses the coins. Whoever guesses too well refutes the
claim. In rounds canaries have a number of the table each, so that they don't disturb one another.

After: Steinke, Nasr, Jagielski 2023 (one training run)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.audit.epsilon_bounds import bounds
from fedrecplus.config import Config
from fedrecplus.engines import Problem, engine_of, message_of, noisy_statistics, statistics_budget, statistics_total
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import contribution, epsilon_of
from fedrecplus.protocol import Broadcast, Sums, Upload
from fedrecplus.randomness import subkey, uniform
from fedrecplus.rounds import outgoing, plan_of, released

REFUTES = 0.999
"""a claim is called refuted at this level: at 95 % one audit in forty would slander a tight one"""
_HUGE = 1e6
"""what a canary sends before it is clipped"""
_RATED = 10
"""items that a canary has rated with one star or five: its part of the statistics is about as large as clipping lets"""


@dataclass(frozen=True)
class Canaries:
    """Who has which number of the table, with which sign, and who is in."""

    cells: NDArray[np.int64]
    signs: Array
    included: NDArray[np.bool_]

    @classmethod
    def drawn(cls, count: int, size: int, seed: int) -> Canaries:
        """So many of a table with so many numbers."""
        if count > size:
            raise UserError(f"{count} canaries in a table of {size} numbers", f"give --canaries {size} or fewer")
        random = np.random.default_rng(subkey(seed, "canaries"))
        return cls(
            random.choice(size, count, replace=False),
            random.choice([-1.0, 1.0], count),
            random.random(count) < 0.5,
        )


def claims_epsilon(config: Config) -> bool:
    """Whether there is an ε to test."""
    return config.privacy.UNIT is not None or statistics_budget(config) is not None


def audited_by_canaries(problem: Problem, count: int) -> dict[str, Any]:
    """The claimed ε and δ of what is attacked, and what canaries show of it, with 95 % confidence."""
    canaries = Canaries.drawn(count, problem.ratings.item_count * _columns(problem), problem.config.seed)
    claim, scores = _claim_and_scores(problem, canaries)
    normal = not problem.config.privacy.amplifies  # of sums with and without a canary, by chance, scores are a mixture
    epsilon, gaussian = bounds(scores, canaries.included, claim["delta"], normal=normal)
    refuted = max(*bounds(scores, canaries.included, claim["delta"], REFUTES, normal)) > claim["epsilon"]
    return {
        **claim,
        "canaries": count,
        "epsilon_shown": epsilon,
        "epsilon_shown_gaussian": gaussian,
        "refuted": refuted,
    }


def _claim_and_scores(problem: Problem, canaries: Canaries) -> tuple[dict[str, Any], Array]:
    """Of a whole training; of one upload, where no more is claimed; of the statistics, where they alone have noise."""
    config = problem.config
    plan, own, statistics = plan_of(config), config.privacy.claim(1, 1), statistics_budget(config)
    if plan is not None:
        delta = config.privacy.settings.delta
        claim = {"epsilon": epsilon_of(plan.releases(), delta, plan.accountant), "delta": delta}
        scores = _scores_of_sums(problem, canaries)
        if statistics is None:
            return {**claim, "of": "all rounds' sums"}, scores
        return {**claim, "of": "the statistics and all rounds' sums"}, scores + _scores_of_statistics(problem, canaries)
    if own is not None:
        claim = {"epsilon": own["epsilon"], "delta": own["delta"], "of": f"one {own['unit']}"}
        return claim, _scores_of_uploads(problem, canaries)
    if statistics is not None:
        claim = {"epsilon": statistics.epsilon, "delta": statistics.delta, "of": "the statistics"}
        return claim, _scores_of_statistics(problem, canaries)
    raise UserError(
        f"privacy.rule={config.privacy.rule} claims no ε", "give --canaries with a scheme that has a budget"
    )


def _columns(problem: Problem) -> int:
    return int(engine_of(problem.config).start(problem).server.V.shape[1])


def _scores_of_statistics(problem: Problem, canaries: Canaries) -> Array:
    """Log odds of each coin, given all that is left of the noisy sum when everybody else's part is known.

    Canaries rate some of the same items. So the coins, ±½ around what is expected, are estimated together.
    """
    config, budget = problem.config, statistics_budget(problem.config)
    assert budget is not None
    parts = _parts_of_statistics(problem, canaries, budget.cap)
    others = statistics_total(problem.ratings, budget.cap)
    people = int(np.count_nonzero(np.diff(problem.ratings.indptr))) + len(parts)
    seen, sd = noisy_statistics(others + canaries.included @ parts, budget, people, config)
    noise = 4.0 * sd**2
    overlaps = parts @ parts.T
    coins = np.linalg.solve(overlaps + noise * np.eye(len(parts)), parts @ (seen - others - 0.5 * parts.sum(axis=0)))
    return np.asarray(coins * (np.diag(overlaps) + noise) / sd**2)


def _parts_of_statistics(problem: Problem, canaries: Canaries, cap: int) -> Array:
    """What each canary adds to the statistics: a few items, half with one star and half with five."""
    random, items = np.random.default_rng(subkey(problem.config.seed, "canaries' ratings")), problem.ratings.item_count
    rated = min(_RATED, items)
    parts = []
    for sign in canaries.signs:
        ratings = np.where(np.arange(rated) % 2 == 0, 3.0 + 2.0 * sign, 3.0 - 2.0 * sign)
        parts.append(contribution(random.choice(items, rated, replace=False), ratings, items, cap))
    return np.stack(parts)


def _scores_of_sums(problem: Problem, canaries: Canaries) -> Array:
    """Log odds of each coin, by what is left at each canary's number in all rounds: everybody else's part is known."""
    config, scores = problem.config, np.zeros(len(canaries.cells))
    chance = config.cohort.fraction if config.privacy.amplifies else 1.0
    for message, sums in _sums(problem):
        drawn = uniform(subkey(config.seed, "canaries' rounds", message.round), np.arange(len(scores))) < chance
        own = np.array([_sent(problem, message, canaries, number)[1] for number in range(len(scores))])
        cells = sums.total.astype(np.float64).ravel()
        with_canaries = cells.copy()
        with_canaries[canaries.cells] += np.where(canaries.included & drawn, own, 0.0)
        people = sums.clients + len(scores)
        told = replace(sums, total=with_canaries.reshape(sums.total.shape), clients=people)
        seen = released(told, message.round, problem.public, config, asked=people)
        left = (seen.total.ravel() - cells)[canaries.cells]
        there = (left - 0.5 * own) * own / seen.noise**2
        scores += there if chance == 1.0 else np.logaddexp(np.log1p(-chance), np.log(chance) + there)
    return scores


def _sums(problem: Problem) -> Iterator[tuple[Broadcast, Sums]]:
    """Every round's broadcast, and the sums without noise. V stays where it starts: noise doesn't depend on it."""
    engine = engine_of(problem.config)
    state = engine.start(problem)
    message = message_of(problem, state)
    for t in range(problem.config.server.rounds):
        told = replace(message, round=t)
        yield told, engine.sums(problem, state.private, told, problem.cohort(t))[0]


def _scores_of_uploads(problem: Problem, canaries: Canaries) -> Array:
    """What the server sees of each canary's number in its own upload; whoever is out sends the opposite."""
    engine = engine_of(problem.config)
    message = message_of(problem, engine.start(problem))
    way = np.where(canaries.included, 1.0, -1.0)
    seen = [_sent(problem, message, canaries, number, way[number])[1] for number in range(len(way))]
    return np.asarray(seen) * canaries.signs


def _sent(problem: Problem, message: Broadcast, canaries: Canaries, number: int, way: float = 1.0) -> tuple[int, float]:
    """A canary's number and what is sent there, after all that a device does."""
    item, column = divmod(int(canaries.cells[number]), message.V.shape[1])
    delta = np.zeros((1, message.V.shape[1]))
    delta[0, column] = way * canaries.signs[number] * _HUGE
    size = problem.config.model.statistic_size
    update = Upload(problem.ratings.clients + number, np.array([item]), delta, statistic=np.zeros(size))
    secret = subkey(problem.config.seed, "canary", number)
    return item, float(outgoing(update, secret, message, problem.config).delta[0, column])


def canary_sentence(shown: dict[str, Any]) -> str:
    """What canaries say, in words."""
    most = max(shown["epsilon_shown"], shown["epsilon_shown_gaussian"])
    verdict = "the claim is refuted" if shown["refuted"] else "they don't contradict it"
    return (
        f"{shown['canaries']} canaries show ε ≥ {most:.2f} (95 %) where {shown['epsilon']:.2f} is claimed of "
        f"{shown['of']}: {verdict}"
    )
