"""One algorithm on one fold, and many such jobs side by side."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.config import Config
from fedrecplus.data import Ratings, Split, split
from fedrecplus.errors import UserError
from fedrecplus.experiments.baselines import OutsideModel, fitted
from fedrecplus.experiments.statistics import FoldMean, PairedTest, client_means, fold_mean, paired_test
from fedrecplus.experiments.trivial import TRIVIAL, measured
from fedrecplus.provenance import Stopwatch
from fedrecplus.training import AUTO, Progress, choose, evaluate, silent_progress, train
from fedrecplus.workers import Stop, Tell, run_tasks


@dataclass(frozen=True)
class Job:
    """An algorithm and a fold."""

    algorithm: str
    fold: int
    config: Config
    folder: Path | None = None
    """where its run folder goes"""
    outside: OutsideModel | None = None
    """a model that doesn't come with the package, instead of the config's"""


@dataclass(frozen=True)
class JobOutcome:
    """What a job came to."""

    job: Job
    row: dict[str, Any]
    client_rmse: Array
    """each client's RMSE on the fold; not a number for a client without test ratings there"""
    client_ndcg: Array
    """each client's NDCG@10 on the fold; not a number for a client without relevant items there"""


@dataclass(frozen=True)
class Monitor:
    """How jobs tell what they do, and are told to stop."""

    progress: Callable[[Job], Progress] = lambda _: silent_progress
    """makes a job's progress function"""
    done: Callable[[JobOutcome], None] = lambda _: None
    stop: Stop = lambda: False


def cross_validation(
    ratings: Ratings,
    configs: dict[str, Config],
    folds: int,
    workers: int,
    folder_of: Callable[[str, int], Path | None] = lambda _, __: None,
    monitor: Monitor = Monitor(),  # noqa: B008 -- it can't be changed
    resume: bool = False,
    how: Split = Split(),  # noqa: B008 -- it can't be changed
    outside: Mapping[str, OutsideModel] = MappingProxyType({}),
) -> dict[str, list[JobOutcome]]:
    """Every config on every fold, ``workers`` trainings side by side (0: one per core); outcomes by name and fold.

    ``outside`` has the models that some of the names stand for instead of a config.
    """
    seed = next(iter(configs.values())).seed
    how.numbers(ratings, folds, seed)  # a split that can't be is found before anything is trained
    folds = how.folds(ratings, folds)
    jobs = [
        Job(name, fold, config, folder_of(name, fold), outside.get(name))
        for fold in range(folds)
        for name, config in configs.items()
    ]
    run = functools.partial(_run, ratings, folds, how, resume)
    outcomes: dict[tuple[str, int], JobOutcome] = {}
    # an object of the user's own may not travel to another process, so such jobs stay in this one
    tied = [job for job in jobs if job.outside is not None and not job.outside.portable]
    for batch, side_by_side in (([job for job in jobs if job not in tied], workers), (tied, 1)):
        shown = [monitor.progress(job) for job in batch]
        report = functools.partial(_tell, shown)
        for _, outcome in run_tasks(run, batch, side_by_side, report=report, stop=monitor.stop):
            outcomes[outcome.job.algorithm, outcome.job.fold] = outcome
            monitor.done(outcome)
    return {name: [outcomes[name, fold] for fold in range(folds)] for name in configs}


def _tell(shown: Sequence[Progress], index: int, step: Any) -> None:
    shown[index](step)


def against(baseline: Sequence[JobOutcome], own: Sequence[JobOutcome]) -> PairedTest | None:
    """The paired test over clients, each client's RMSE averaged over folds; None for the baseline itself.

    None, too, for likes alone, which have no RMSE, and where one of the two failed.
    """
    if own is baseline or any(outcome.row["rmse"] is None for outcome in (*own, *baseline)):
        return None
    return _paired([outcome.client_rmse for outcome in own], [outcome.client_rmse for outcome in baseline], baseline)


def lists_against(baseline: Sequence[JobOutcome], own: Sequence[JobOutcome]) -> PairedTest | None:
    """The same of each client's NDCG@10, where positive differences are better."""
    if own is baseline or any("failure" in outcome.row for outcome in (*own, *baseline)):
        return None
    return _paired([outcome.client_ndcg for outcome in own], [outcome.client_ndcg for outcome in baseline], baseline)


def _paired(own: Sequence[Array], others: Sequence[Array], baseline: Sequence[JobOutcome]) -> PairedTest:
    return paired_test(client_means(own), client_means(others), baseline[0].job.algorithm)


def _run(ratings: Ratings, folds: int, split_by: Split, resume: bool, job: Job, tell: Tell, stop: Stop) -> JobOutcome:
    """Train and test on one fold."""
    training, test = split(ratings, job.fold, folds, job.config.seed, split_by)
    if job.outside is not None or job.algorithm in TRIVIAL:
        watch, nobody = Stopwatch(), np.full(training.clients, np.nan)
        try:
            outcome = _run_without_rounds(job, training, test)
        except Exception as error:  # somebody else's code may raise anything, and the others' figures are still wanted
            if job.outside is None:
                raise
            outcome = JobOutcome(job, {"failure": f"{type(error).__name__}: {error}"}, nobody, nobody)
        return replace(outcome, row=_row_without_rounds(job, training, watch, outcome.row))
    config, about = job.config, {"dataset": ratings.name, "folds": folds, "split": str(split_by)}
    if job.algorithm == AUTO:
        choice = choose(training, config.seed, split_by)
        config, about["choice"] = replace(choice.config, evaluation=config.evaluation), choice.why
    run = train(
        training,
        test,
        config,
        out=job.folder,
        resume=resume,
        overwrite=True,
        fold=job.fold,
        progress=tell,
        stop=stop,
        about_data=about,
    )
    evaluation = evaluate(run, training, test, at=(10,))
    row = {**run.result, "algorithm": job.algorithm}
    return JobOutcome(job, row, evaluation.rmse_by_client, evaluation.ndcg_by_client)


def _run_without_rounds(job: Job, training: Ratings, test: Ratings) -> JobOutcome:
    started = time.perf_counter()
    predictor = TRIVIAL[job.algorithm](training) if job.outside is None else fitted(job.outside, training)
    seconds = time.perf_counter() - started
    evaluation = measured(predictor, training, test, job.config.evaluation, job.config.seed)
    figures = {name: getattr(evaluation, name) for name in ("mae", "rmse", "nmse", "groups", "ranking")}
    row = {**figures, "likes_alone": training.likes_alone and test.likes_alone, "seconds": seconds}
    return JobOutcome(job, row, evaluation.rmse_by_client, evaluation.ndcg_by_client)


def _row_without_rounds(job: Job, training: Ratings, watch: Stopwatch, found: Mapping[str, Any]) -> dict[str, Any]:
    """What a result says of a model that is not trained in rounds, with what was found of it."""
    seed, costs = job.config.seed, ("seconds", "bytes_up_per_client_round", "bytes_down_per_client_round")
    return {
        **{"dataset": training.name, "algorithm": job.algorithm, "fold": job.fold, "seed": seed},
        **dict.fromkeys(("mae", "rmse", "nmse")),
        **{"likes_alone": training.likes_alone, "rounds": 0, **dict.fromkeys(costs, 0.0)},
        **{"groups": {}, "ranking": {}, **found},
        **{"config": {"algorithm": job.algorithm, "seed": seed}, "made": watch.made(seed)},
    }


FIGURES = ("mae", "rmse", "nmse", "rounds", "seconds", "bytes_up_per_client_round")
"""that studies of ratings show"""


def over_folds(outcomes: Sequence[JobOutcome]) -> dict[str, FoldMean]:
    """Each figure's mean over the folds."""
    return {name: fold_mean([outcome.row[name] for outcome in outcomes]) for name in FIGURES}


def require_ratings(ratings: Ratings) -> None:
    """Refuse likes alone where errors are compared."""
    if ratings.likes_alone:
        raise UserError(
            f"{ratings.name} has no ratings, only who chose what: there is no error to compare",
            "compare lists with `fedrecplus compare`",
        )


def require_federation(config: Config, *, any_weights: bool = False, model: str | None = None) -> None:
    """Refuse a config without uploads to look at.

    With ``any_weights``, also a channel that allows uniform weights alone. With ``model``, also any other model.
    """
    name = config.algorithm
    if config.engine == "central":
        raise UserError(f"{name} trains in one place, without rounds and uploads", "name a federated algorithm")
    if any_weights and config.channel.exchanges:
        raise UserError(
            f"{name} has channel.rule={config.channel.rule}, which allows uniform weights alone",
            "set channel.rule=clear, or name another algorithm",
        )
    if model is not None and config.model.rule != model:
        raise UserError(
            f"{name} has model.rule={config.model.rule}, and the theorem is about gradient steps of model.rule={model}",
            f"train with model.rule={model}: fedrec+paper, or another preset of that model",
        )
