"""What the aggregation is for: rules side by side where clients differ, err or lie."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fedrecplus.config import Config, dumps
from fedrecplus.data import Ratings
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments.heterogeneity_scenarios import RULES, SCENARIOS
from fedrecplus.experiments.heterogeneity_trial import Field, Trial
from fedrecplus.experiments.statistics import PairedTest, Spread, mean_over_folds, paired_test, spread
from fedrecplus.workers import Stop, run_tasks

REFERENCE = "uniform"
"""what the other rules are tested against"""


@dataclass(frozen=True)
class Cell:
    """One scenario under one rule, over all folds that were trained."""

    scenario: str
    rule: str
    rmse: Spread | None
    """of honest clients; None where a training diverged"""
    rmse_affected: Spread | None
    target_rating: Spread | None
    weight_share: Spread | None
    test: PairedTest | None
    """against uniform weights, a pair per honest client; None for uniform itself and where a training diverged"""
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = ("rmse", "rmse_affected", "target_rating", "weight_share")
        spreads = {name: getattr(self, name) and getattr(self, name).to_dict() for name in names}
        against = self.test.to_dict() if self.test else None
        head = {"scenario": self.scenario, "rule": self.rule, "diverged": self.rmse is None}
        return {**head, **spreads, "against_uniform": against, "seconds": self.seconds}


@dataclass(frozen=True)
class Study:
    """What ``ablate heterogeneity`` found."""

    dataset: str
    algorithm: str
    share: float
    folds: int
    config: str
    cells: list[Cell]

    def cell(self, scenario: str, rule: str) -> Cell | None:
        """One of them, if it was run."""
        return next((cell for cell in self.cells if (cell.scenario, cell.rule) == (scenario, rule)), None)

    @property
    def scenarios(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(cell.scenario for cell in self.cells))

    @property
    def rules(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(cell.rule for cell in self.cells))


SHARE = 0.3
FOLDS = 5


@dataclass(frozen=True)
class Extent:
    """What is run."""

    scenarios: tuple[str, ...] = tuple(SCENARIOS)
    rules: tuple[str, ...] = tuple(RULES)
    share: float = SHARE
    """of the clients that is not like the others"""
    folds: int = 1
    """so many of five"""


def heterogeneity(
    ratings: Ratings,
    config: Config,
    extent: Extent = Extent(),  # noqa: B008 -- it can't be changed
    *,
    workers: int = 0,
    stop: Stop = lambda: False,
    done: Callable[[Trial], None] = lambda _: None,
) -> Study:
    """Every scenario under every rule, on the first of five folds or some more of them."""
    check_extent(extent, config)
    scenarios, folds = extent.scenarios, extent.folds
    rules = [REFERENCE, *(rule for rule in extent.rules if rule != REFERENCE)]
    field = Field(ratings, config, extent.share, FOLDS)
    # dear rules first, so that no core waits at the end
    jobs = sorted(itertools.product(rules, scenarios, range(folds)), key=lambda job: -list(RULES).index(job[0]))
    trials = {}
    for _, trial in run_tasks(field.run, jobs, workers, stop=stop):
        trials[trial.scenario, trial.rule, trial.fold] = trial
        done(trial)
    cells = [
        _cell([trials[scenario, rule, fold] for fold in range(folds)],
              [trials[scenario, REFERENCE, fold] for fold in range(folds)])
        for scenario in scenarios for rule in rules
    ]  # fmt: skip
    return Study(ratings.name, config.algorithm, extent.share, folds, dumps(config), cells)


def check_extent(extent: Extent, config: Config) -> None:
    """Refuse names that nobody knows, numbers that make no sense, and settings that no scenario can be played with."""
    for names, known, kind in ((extent.scenarios, SCENARIOS, "scenario"), (extent.rules, RULES, "rule")):
        if not names:
            raise UserError(f"no {kind} is named", f"name some of {', '.join(known)}")
        for name in names:
            if name not in known:
                raise unknown_name(kind, name, known)
    if not 0.0 <= extent.share < 1.0:
        raise UserError(f"a share of {extent.share:g} of the clients is none", "give a share from 0 to below 1")
    if not 1 <= extent.folds <= FOLDS:
        raise UserError(f"{extent.folds} of {FOLDS} folds can't be run", f"give 1 to {FOLDS} folds")
    if config.trainer != "federated":
        raise UserError(f"{config.algorithm} trains in one place: nothing is aggregated", "name a federated preset")
    if config.aggregation.denoising > 0.0:
        raise UserError(f"{config.algorithm} denoises, which only uniform weights allow", "name another preset")


def _cell(trials: Sequence[Trial], uniform: Sequence[Trial]) -> Cell:
    first, test = trials[0], None
    if first.rule != REFERENCE and not any(trial.diverged for trial in [*trials, *uniform]):
        errors = [mean_over_folds([trial.client_rmse for trial in some]) for some in (trials, uniform)]
        test = paired_test(errors[0], errors[1], REFERENCE)
    return Cell(
        first.scenario,
        first.rule,
        _spread([trial.rmse for trial in trials]),
        _spread([trial.rmse_affected for trial in trials]),
        _spread([trial.target_rating for trial in trials]),
        _spread([trial.weight_share for trial in trials]),
        test,
        sum(trial.seconds for trial in trials),
    )


def _spread(values: Sequence[float]) -> Spread | None:
    return None if any(math.isnan(value) for value in values) else spread(values)
