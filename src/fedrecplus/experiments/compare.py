"""Many algorithms on the same folds of the same data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, check, preset, presets
from fedrecplus.data import Ratings, folds
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments.jobs import Bench, Job, Outcome, run_jobs
from fedrecplus.experiments.published import Published, published
from fedrecplus.experiments.statistics import PairedTest, Spread, mean_over_folds, paired_test, spread
from fedrecplus.experiments.trivial import TRIVIAL
from fedrecplus.training import Progress
from fedrecplus.training.progress import silent
from fedrecplus.training.run_folder import RunFolder
from fedrecplus.workers import Stop

FIGURES = ("mae", "rmse", "nmse", "rounds", "seconds", "bytes_up_per_client_round", "bytes_down_per_client_round")
GROUPS = ("few_ratings", "tail_items", "worst_tenth")
RANKING = ("ndcg@10", "hr@10", "recall@10")


@dataclass(frozen=True)
class Summary:
    """One algorithm over all folds."""

    dataset: str
    algorithm: str
    figures: dict[str, Spread]
    groups: dict[str, Spread | None]
    """RMSE by group; None where no fold has test ratings of that group"""
    ranking: dict[str, Spread]
    test: PairedTest | None
    """against the baseline; None for the baseline itself"""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        figures = {name: value.to_dict() for name, value in self.figures.items()}
        further = {
            "groups": {name: {"rmse": value and value.to_dict()} for name, value in self.groups.items()},
            "ranking": {name: value.to_dict() for name, value in self.ranking.items()},
            "against_baseline": self.test.to_dict() if self.test else None,
        }
        return {"dataset": self.dataset, "algorithm": self.algorithm, **figures, **further}


@dataclass(frozen=True)
class Comparison:
    """What ``compare`` found on one data set."""

    dataset: str
    rows: list[dict[str, Any]]
    """one per algorithm and fold, as in ``result.json``"""
    trivial: list[dict[str, Any]]
    """the same for predictors that nobody asked for by name but that every table should have"""
    summaries: list[Summary]
    published: list[Published]
    """what others report; their folds are not ours, so no test is made"""

    def mean(self, algorithm: str, figure: str = "rmse") -> float:
        """A figure's mean over the folds."""
        return next(s for s in self.summaries if s.algorithm == algorithm).figures[figure].mean


def compare(
    ratings: Ratings,
    algorithms: Sequence[str | Config],
    *,
    folds_count: int = 5,
    seed: int = 0,
    baseline: str | None = None,
    workers: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: Callable[[Job], Progress] = lambda _: silent,
    done: Callable[[Outcome], None] = lambda _: None,
    stop: Stop = lambda: False,
) -> Comparison:
    """Train every algorithm on every fold. An algorithm is a preset's name, a trivial predictor's, or a config.

    ``baseline`` is what the others are tested against (the first algorithm, if not given). ``workers`` 0 means one per
    core. ``out`` gets a run folder per job; with ``resume``, jobs that are finished there are not run again. Runs that
    are in the way are refused, unless ``overwrite`` says that they may be replaced.
    """
    configs = named_configs(algorithms, seed)
    baseline = baseline or next(iter(configs))
    if baseline not in {*configs, *TRIVIAL}:
        raise unknown_name("baseline", baseline, {*configs, *TRIVIAL})
    folds(ratings, folds_count, seed)  # a wrong number of folds is found before anything is trained
    extra = {name: Config(algorithm=name, seed=seed) for name in TRIVIAL if name not in configs}
    jobs = [
        Job(name, fold, config, Path(out) / name / f"fold-{fold}" if out and name not in TRIVIAL else None)
        for fold in range(folds_count)
        for name, config in {**extra, **configs}.items()
    ]
    for job in jobs:
        if job.folder and not resume:
            RunFolder(job.folder).check_free(overwrite=overwrite)
    outcomes: dict[tuple[str, int], Outcome] = {}
    for outcome in run_jobs(Bench(ratings, folds_count, resume), jobs, workers, progress, stop):
        outcomes[outcome.job.algorithm, outcome.job.fold] = outcome
        done(outcome)
    return _comparison(ratings, list(configs), list(extra), outcomes, folds_count, baseline)


def cross_validate(
    ratings: Ratings, algorithms: str | Config | Sequence[str | Config], *, folds: int = 5, seed: int = 0
) -> Comparison:
    """k-fold cross-validation of one or more algorithms: ``compare`` for the Python prompt."""
    several = [algorithms] if isinstance(algorithms, str | Config) else algorithms
    return compare(ratings, several, folds_count=folds, seed=seed)


def named_configs(algorithms: Sequence[str | Config], seed: int) -> dict[str, Config]:
    """Name → config, all with the same seed, so that they see the same folds."""
    configs: dict[str, Config] = {}
    for algorithm in algorithms:
        config = algorithm if isinstance(algorithm, Config) else _config_by_name(algorithm)
        if config.algorithm in configs:
            raise UserError(f"{config.algorithm} is there twice", "name each algorithm once")
        configs[config.algorithm] = check(replace(config, seed=seed))
    if not configs:
        raise UserError("there is nothing to compare", f"name algorithms: {', '.join(presets())}")
    return configs


def _config_by_name(name: str) -> Config:
    if name in TRIVIAL:
        return Config(algorithm=name)
    if name not in presets():
        raise unknown_name("algorithm", name, [*presets(), *TRIVIAL])
    return preset(name)


def _spread_of_known(values: Sequence[float | None]) -> Spread | None:
    known = [value for value in values if value is not None]
    return spread(known) if known else None


def _comparison(
    ratings: Ratings,
    asked: list[str],
    extra: list[str],
    outcomes: dict[tuple[str, int], Outcome],
    folds_count: int,
    baseline: str,
) -> Comparison:
    def rows(name: str) -> list[dict[str, Any]]:
        return [outcomes[name, fold].row for fold in range(folds_count)]

    def errors(name: str) -> NDArray[np.float64]:
        return mean_over_folds([outcomes[name, fold].client_rmse for fold in range(folds_count)])

    summaries = [
        Summary(
            ratings.name,
            name,
            {figure: spread([row[figure] for row in rows(name)]) for figure in FIGURES},
            {group: _spread_of_known([row["groups"][group]["rmse"] for row in rows(name)]) for group in GROUPS},
            {figure: spread([row["ranking"][figure] for row in rows(name)]) for figure in RANKING},
            None if name == baseline else paired_test(errors(name), errors(baseline), baseline),
        )
        for name in [*extra, *asked]
    ]
    asked_rows = [row for name in asked for row in rows(name)]
    extra_rows = [row for name in extra for row in rows(name)]
    return Comparison(ratings.name, asked_rows, extra_rows, summaries, published(ratings.name))
