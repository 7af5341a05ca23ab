"""Canary clients: an empirical lower bound on ε from one run, beside the claimed one.

Each canary takes part and sends, by its own coin, one number as large as clipping lets through, or zero (or its
opposite, where the claim is about replacing). It goes the way of every upload: weigh, clip, add up, add noise. An
attacker who knows everything but the coins guesses them. Whoever guesses too well refutes the claim. Canaries have a
number each, so that they don't disturb one another.

After: Steinke, Nasr, Jagielski 2023 (one training run); Andrew et al. 2023 (one-shot estimates, Gaussian)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, norm

from fedrecplus.config import Config
from fedrecplus.engines import Problem, engine_of, message_of
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import epsilon_of
from fedrecplus.protocol import Broadcast, Sums, Upload
from fedrecplus.randomness import subkey
from fedrecplus.rounds import outgoing, plan_of, released

Array = NDArray[np.float64]
LEVEL = 0.95
REFUTES = 0.999
"""a claim is called refuted at this level: at 95 % one audit in forty would slander a tight one"""
_HUGE = 1e6
"""what a canary sends before it is clipped"""
_GUESSED = (0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
"""shares of the canaries that are guessed, those with the clearest scores; the bound pays for choosing among them"""


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


def claims(config: Config) -> bool:
    """Whether there is an ε to test."""
    return config.privacy.UNIT is not None


def audited(problem: Problem, count: int) -> dict[str, Any]:
    """The claimed ε and δ of what is attacked, and what canaries show of it, with 95 % confidence."""
    config, plan = problem.config, plan_of(problem.config)
    canaries = Canaries.drawn(count, problem.ratings.item_count * _columns(problem), config.seed)
    if plan is not None:
        scores, claimed = _scores_of_sums(problem, canaries), plan.releases()
        rounds_alone = [one for one in claimed if one.noise_multiplier in plan.rounds]
        claim = {
            "epsilon": epsilon_of(rounds_alone, config.privacy.settings.delta, plan.accountant),
            "delta": config.privacy.settings.delta,
            "of": "all rounds' sums",
        }
    elif (own := config.privacy.claim(1, 1)) is not None:
        scores = _scores_of_uploads(problem, canaries)
        claim = {"epsilon": own["epsilon"], "delta": own["delta"], "of": f"one {own['unit']}"}
    else:
        raise UserError(
            f"privacy.rule={config.privacy.rule} claims no ε", "give --canaries with a scheme that has a budget"
        )
    bound, gaussian = _bounds(scores, canaries.included, claim["delta"], LEVEL)
    refuted = max(*_bounds(scores, canaries.included, claim["delta"], REFUTES)) > claim["epsilon"]
    return {**claim, "canaries": count, "epsilon_shown": bound, "epsilon_shown_gaussian": gaussian, "refuted": refuted}


def _bounds(scores: Array, included: NDArray[np.bool_], delta: float, level: float) -> tuple[float, float]:
    """By right guesses, whatever the noise; and by distance, where it is Gaussian (0 of a claim without δ)."""
    gaussian = gaussian_bound(scores, included, delta, level) if delta > 0.0 else 0.0
    return epsilon_bound(scores, included, delta, level), gaussian


def _columns(problem: Problem) -> int:
    return int(engine_of(problem.config).start(problem).server.V.shape[1])


def _scores_of_sums(problem: Problem, canaries: Canaries) -> Array:
    """What is left at each canary's number when everybody else's part is known, over all rounds, by their noise."""
    scores = np.zeros(len(canaries.cells))
    for message, sums in _sums(problem):
        own = [_sent(problem, message, canaries, number)[1] for number in range(len(scores))]
        cells = sums.total.astype(np.float64).ravel()
        with_canaries = cells.copy()
        with_canaries[canaries.cells] += np.where(canaries.included, own, 0.0)
        people = sums.clients + len(scores)
        told = replace(sums, total=with_canaries.reshape(sums.total.shape), clients=people)
        seen = released(told, message.round, problem.public, problem.config, asked=people)
        scores += (seen.total.ravel() - cells)[canaries.cells] * own / seen.noise**2
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


def sentence(shown: dict[str, Any]) -> str:
    """What canaries say, in words."""
    most = max(shown["epsilon_shown"], shown["epsilon_shown_gaussian"])
    verdict = "the claim is refuted" if shown["refuted"] else "they don't contradict it"
    return (
        f"{shown['canaries']} canaries show ε ≥ {most:.2f} (95 %) where {shown['epsilon']:.2f} is claimed of "
        f"{shown['of']}: {verdict}"
    )


def epsilon_bound(scores: Array, included: NDArray[np.bool_], delta: float, level: float = LEVEL) -> float:
    """The largest ε that so many right guesses refute. After: Steinke, Nasr, Jagielski 2023, Theorem 5.2"""
    order, count = np.argsort(scores, kind="stable"), len(scores)
    best = 0.0
    for share in _GUESSED:
        half = max(1, round(share * count / 2))
        right = int((~included[order[:half]]).sum() + included[order[-half:]].sum())
        best = max(best, _refuted(count, 2 * half, right, delta, (1.0 - level) / len(_GUESSED)))
    return best


def _refuted(count: int, guesses: int, right: int, delta: float, chance: float) -> float:
    """The largest ε under which so many right guesses have at most this chance."""
    low, high = 0.0, 50.0
    if _chance_of(count, guesses, right, 0.0, delta) > chance:
        return 0.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _chance_of(count, guesses, right, middle, delta) <= chance else (low, middle)
    return low


def _chance_of(count: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Of so many right guesses, at most, under (ε, δ): a binomial's tail, and what δ adds to it."""
    q = 1.0 / (1.0 + math.exp(-epsilon))
    tail = float(binom.sf(right - 1, guesses, q))
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, q)) / np.arange(1, right + 1)
    return min(1.0, tail + 2.0 * count * delta * float(below.max(initial=0.0)))


def gaussian_bound(scores: Array, included: NDArray[np.bool_], delta: float, level: float = LEVEL) -> float:
    """ε of a Gaussian mechanism whose scores are as far apart as these, at the lower end of that distance's interval.

    Holds where scores are normal, as sums with Gaussian noise are; goes beyond what so few right guesses can show.
    """
    inside, outside, count = scores[included], scores[~included], len(scores)
    if min(len(inside), len(outside)) < 2:
        return 0.0
    spread = math.sqrt(0.5 * (float(inside.var(ddof=1)) + float(outside.var(ddof=1))))
    apart = float(inside.mean() - outside.mean()) / max(spread, 1e-300)
    error = math.sqrt(1.0 / len(inside) + 1.0 / len(outside) + apart**2 / (2.0 * count))
    return gaussian_epsilon(max(0.0, apart - float(norm.ppf(0.5 + level / 2.0)) * error), delta)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The ε at which a Gaussian mechanism of this μ has this δ. After: Balle and Wang 2018, Theorem 8"""

    def delta_at(epsilon: float) -> float:
        first = norm.cdf(mu / 2.0 - epsilon / mu)
        return float(first - math.exp(min(epsilon + norm.logcdf(-mu / 2.0 - epsilon / mu), 700.0)))

    if mu <= 0.0 or delta_at(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        high *= 2.0
    while high - low > 1e-4 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return low
