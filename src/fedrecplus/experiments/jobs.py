"""One algorithm on one fold, and many such jobs side by side."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
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

Stop = Callable[[], bool]


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
    """Outcomes as they come. Compiled kernels let go of the interpreter's lock, so threads do and share the ratings;
    the reference engine holds it, so its jobs go to processes, which tell of a job only when it is done."""
    from fedrecplus.fast.threads import thread_count  # here: it brings numba, which takes its time

    workers = max(1, min(workers or thread_count(), len(jobs)))
    in_python = any(not job.trivial and is_reference(job.config) for job in jobs)
    if in_python and workers > 1:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, initializer=_die_quietly) as pool:
            yield from _as_they_come(pool, [pool.submit(bench.run, job) for job in jobs], stop)
        return
    with ThreadPoolExecutor(workers) as threads:
        yield from _as_they_come(threads, [threads.submit(bench.run, job, progress(job), stop) for job in jobs], stop)


def _die_quietly() -> None:
    # Ctrl-C reaches the whole process group; only the first process has something to say about it
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_reference(config: Config) -> bool:
    """Whether rounds run in Python."""
    return config.trainer == "federated" and config.engine == "reference"


def _as_they_come(pool: Executor, futures: list[Future[Outcome]], stop: Stop) -> Iterator[Outcome]:
    try:
        for future in as_completed(futures):
            yield future.result()
    except BrokenProcessPool:
        if stop():
            raise KeyboardInterrupt from None
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
