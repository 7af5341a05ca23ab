"""One training among clients that differ, judged by the honest ones."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus import simulation
from fedrecplus.config import Config, assign, check
from fedrecplus.data import Ratings, split
from fedrecplus.experiments.heterogeneity_attacker import Attack, attacked_round
from fedrecplus.experiments.heterogeneity_clients import Mask, affected, promoted_item, skewed
from fedrecplus.experiments.heterogeneity_scenarios import RULES, SCENARIOS
from fedrecplus.simulation import Problem, SimulationState
from fedrecplus.training.divergence import Diverged, Watch
from fedrecplus.training.evaluation import Factors, Fallback, score
from fedrecplus.training.groups import errors_of
from fedrecplus.workers import Stop, Tell

_BY_V_ALONE = [f"prediction.{option}=0" for option in ("average_ratings", "trait_ratings", "traits", "content")]
"""rules are judged by the V they make, and what else is public would cover up for it"""
_ROUNDS_BETWEEN_LOOKS = 10


@dataclass(frozen=True)
class Trial:
    """One scenario, one rule, one fold."""

    scenario: str
    rule: str
    fold: int
    diverged: bool
    rmse: float
    """of honest, unaffected clients; not a number where the training diverged"""
    rmse_affected: float
    target_rating: float
    """mean prediction of the promoted item among honest clients, on the data's scale"""
    weight_share: float
    """of the attackers, mean over rounds; not a number where the rule has no weights or nobody attacks"""
    seconds: float
    client_rmse: NDArray[np.float64]
    """of honest clients; not a number for the others"""


@dataclass(frozen=True)
class Field:
    """What all trials share."""

    ratings: Ratings
    config: Config
    share: float
    folds: int

    def run(self, job: tuple[str, str, int], _: Tell, stop: Stop) -> Trial:
        """Train under one rule where clients are as the scenario says, and judge by the honest ones."""
        rule, scenario_name, fold = job
        began, scenario, seed = time.perf_counter(), SCENARIOS[scenario_name], self.config.seed
        training, test = split(self.ratings, fold, self.folds, seed)
        who = affected(self.ratings, self.share if scenario.affects else 0.0, seed)
        target = promoted_item(training, seed)
        changed = scenario.change(training, who, seed) if scenario.change else training
        config = check(assign(self.config, [*scenario.settings, *RULES[rule], *_BY_V_ALONE]))
        problem = simulation.prepare(changed, config)
        problem = skewed(problem) if scenario.skewed else problem
        attack = Attack(who, target if scenario.pushes else None) if scenario.adaptive else None
        judge = _Judge(training, test, who, target)
        try:
            factors, earned = _train(problem, attack, judge, stop)
            figures, by_client, diverged = judge.figures(factors), judge.by_client(factors), False
        except Diverged:
            nothing = float("nan")
            figures, earned, diverged = (nothing, nothing, nothing), [], True
            by_client = np.full(training.clients, np.nan)
        share = float(np.mean(earned)) if earned else float("nan")
        return Trial(scenario_name, rule, fold, diverged, *figures, share, time.perf_counter() - began, by_client)


def _train(problem: Problem, attack: Attack | None, judge: _Judge, stop: Stop) -> tuple[Factors, list[float]]:
    from fedrecplus import fast  # here: it brings numba, which takes its time

    state = simulation.start(problem, np.dtype(problem.config.precision).type)
    watch = Watch.of(judge.test, Factors(state.U, state.server.V, problem.mean), judge.fallback)
    earned: list[float] = []
    for number in range(1, problem.config.server.rounds + 1):
        if stop():
            raise KeyboardInterrupt
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for afterwards
            if attack is None:
                state, _ = fast.simulate_round(problem, state)
            else:
                state, share = attacked_round(problem, state, attack)
                earned += [share] if share is not None and number > 1 else []
        watch.look_at_state(state)
        if number % _ROUNDS_BETWEEN_LOOKS == 0:
            watch.look_at_scores(score(judge.test, _own(problem, state).predict, judge.fallback), number)
    return Factors(fast.prediction_factors(problem, state), state.server.V, problem.mean), earned


def _own(problem: Problem, state: SimulationState) -> Factors:
    return Factors(state.U, state.server.V, problem.mean)


@dataclass(frozen=True)
class _Judge:
    """Looks at clean test ratings, honest clients and affected ones apart."""

    training: Ratings
    test: Ratings
    who: Mask
    target: int

    @property
    def fallback(self) -> Fallback:
        return Fallback.of(self.training)

    def by_client(self, factors: Factors) -> NDArray[np.float64]:
        errors = errors_of(self.test, factors.predict, self.fallback, self.training).rmse_by_client()
        return np.where(self.who, np.nan, errors)

    def figures(self, factors: Factors) -> tuple[float, float, float]:
        """RMSE of honest clients, RMSE of the others, and what honest ones are told of the promoted item."""
        errors = errors_of(self.test, factors.predict, self.fallback, self.training)
        of = [_rmse(errors.squared[some].sum(), errors.count[some].sum()) for some in (~self.who, self.who)]
        honest = np.flatnonzero(~self.who & (np.diff(self.training.indptr) > 0))
        told = factors.predict(honest, np.full(len(honest), self.target))
        return of[0], of[1], float(self.test.scale.restore(told).mean())


def _rmse(squared: float, count: int) -> float:
    return float(np.sqrt(squared / count)) if count else float("nan")
