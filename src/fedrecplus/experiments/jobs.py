"""One algorithm on one fold, and many such jobs side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data import Ratings, split
from fedrecplus.experiments.trivial import TRIVIAL
from fedrecplus.provenance import Stopwatch
from fedrecplus.training import Progress, train
from fedrecplus.training.evaluation import Fallback, score
from fedrecplus.training.groups import by_group, errors_of
from fedrecplus.training.progress import silent
from fedrecplus.training.ranking import rank
from fedrecplus.workers import Stop, run_tasks


@dataclass(frozen=True)
class Job:
    """An algorithm and a fold."""

    algorithm: str
    fold: int
    config: Config
    folder: Path | None = None
    """where its run folder goes"""

    @property
    def trivial(self) -> bool:
        """Whether there is nothing to train in rounds."""
        return self.algorithm in TRIVIAL


@dataclass(frozen=True)
class Outcome:
    """What a job came to."""

    job: Job
    row: dict[str, Any]
    client_rmse: NDArray[np.float64]
    """each client's RMSE on the fold; not a number for a client without test ratings there"""


@dataclass(frozen=True)
class Bench:
    """What all jobs share."""

    ratings: Ratings
    folds: int
    resume: bool = False

    def run(self, job: Job, progress: Progress = silent, stop: Stop = lambda: False) -> Outcome:
        """Train and test on one fold."""
        training, test = split(self.ratings, job.fold, self.folds, job.config.seed)
        if job.trivial:
            return _run_trivial(job, training, test)
        run = train(
            training,
            test,
            job.config,
            out=job.folder,
            resume=self.resume,
            overwrite=True,
            fold=job.fold,
            progress=progress,
            stop=stop,
            about_data={"dataset": self.ratings.name, "folds": self.folds},
        )
        row = {**run.result, "algorithm": job.algorithm}
        return Outcome(job, row, run.errors(training, test).rmse_by_client())


def _run_trivial(job: Job, training: Ratings, test: Ratings) -> Outcome:
    watch, started = Stopwatch(), time.perf_counter()
    factors = TRIVIAL[job.algorithm](training)
    seconds = time.perf_counter() - started
    # these predictors know by themselves what to do with the cold
    fallback = replace(Fallback.of(training), known_client=np.ones(training.clients, bool))
    fallback = replace(fallback, known_item=np.ones(training.item_count, bool))
    scores = score(test, factors.predict, fallback)
    errors = errors_of(test, factors.predict, fallback, training)
    row = {
        "dataset": training.name,
        "algorithm": job.algorithm,
        "fold": job.fold,
        "seed": job.config.seed,
        "mae": scores.mae,
        "rmse": scores.rmse,
        "nmse": scores.nmse,
        "rounds": 0,
        "seconds": seconds,
        "bytes_up_per_client_round": 0.0,
        "bytes_down_per_client_round": 0.0,
        "groups": by_group(errors, training),
        "ranking": rank(training, test, factors, fallback),
        "config": {"algorithm": job.algorithm, "seed": job.config.seed},
        "made": watch.made(job.config.seed),
    }
    return Outcome(job, row, errors.rmse_by_client())


def run_jobs(
    bench: Bench,
    jobs: Sequence[Job],
    workers: int,
    progress: Callable[[Job], Progress],
    stop: Stop,
) -> Iterator[Outcome]:
    """Outcomes as they come, ``workers`` trainings side by side; 0: one per core."""
    shown = [progress(job) for job in jobs]
    for _, outcome in run_tasks(bench.run, jobs, workers, told=lambda index, step: shown[index](step), stop=stop):
        yield outcome
