"""One training from its first round, or from a checkpoint, to its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, check, preset
from fedrecplus.data.joining import join
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.shards.read import ShardedRatings
from fedrecplus.data.sources import RatingsLike, as_ratings, as_test
from fedrecplus.engines import Diverged, engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.provenance import Stopwatch
from fedrecplus.randomness import uniform
from fedrecplus.training.attempt import Outcome, Task, attempt
from fedrecplus.training.callbacks import Callback, check_callbacks
from fedrecplus.training.checkpoint import Checkpoint
from fedrecplus.training.divergence import MOST_RETRIES, step_size, with_smaller_step
from fedrecplus.training.evaluation import Fallback
from fedrecplus.training.fingerprint import fingerprint
from fedrecplus.training.judging import Judge, RatingsJudge
from fedrecplus.training.model_files import SharedModel
from fedrecplus.training.privacy import Ledger
from fedrecplus.training.progress import Progress, Step, silent
from fedrecplus.training.recommender import Recommender
from fedrecplus.training.results import result_of
from fedrecplus.training.run import Run, finished_run, recommender_of
from fedrecplus.training.run_folder import RunFolder
from fedrecplus.training.sharded import ShardJudge
from fedrecplus.training.warm_start import Earlier

Start = str | Path | Run | Recommender | SharedModel
"""what a training may begin with: a run, its folder, or its model"""
_MOST_JUDGED = 200_000
CHECKPOINT_SECONDS = 5.0
SHARDED_CHECKPOINT_SECONDS = 300.0
"""at least: a checkpoint brings the private states of all shards together"""


def train(
    ratings: RatingsLike,
    test: RatingsLike | None,
    config: Config | str,
    *,
    progress: Progress = silent,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    stop: Callable[[], bool] = lambda: False,
    fold: int | None = None,
    about_data: Mapping[str, Any] | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    callbacks: Sequence[Callback] = (),
    start: Start | None = None,
) -> Run:
    """Train on ``ratings``, evaluate on ``test``, which are joined by id; ``config`` may be a preset's name.

    Ratings may be given by a data set's name, a file's path, or as a frame of pandas, polars or pyarrow.

    ``out`` is a run folder to write. ``resume`` goes on with the run in it, to the numbers it would have come to, or
    begins one where there is none. When ``stop()`` becomes true, a checkpoint is written and KeyboardInterrupt raised.
    ``fold`` and ``about_data`` are noted in the folder. ``callbacks`` look on, and may end the training early.
    ``start`` is an earlier run, its folder or its model to begin with: known items keep their rows, new items get what
    their public features predict, and all of them are trained on.
    """
    watch = Stopwatch()
    config = check(preset(config) if isinstance(config, str) else config)
    ratings = as_ratings(ratings)
    if isinstance(ratings, ShardedRatings):
        test = _test_of_shards(ratings, test, config)
        checkpoint_seconds = max(checkpoint_seconds, SHARDED_CHECKPOINT_SECONDS)
    test = None if test is None else as_test(test, ratings)
    if len(ratings) == 0:
        raise UserError("there is no rating to train on", "give more ratings")
    if test is not None:
        ratings, test = join(ratings, test)
    prepare(ratings, config)  # settings that don't suit the ratings are found before anything is written
    data = {**(about_data or {}), "fold": fold, "fingerprint": fingerprint(ratings, test)}
    data["made"] = watch.began(config.seed)
    earlier = None if start is None else Earlier.of(_model_of(start), config)
    if earlier is not None:
        earlier.places(ratings.item_ids)
    engine_of(config)  # nothing is written, or overwritten, for a training that can't begin
    callbacks = check_callbacks(callbacks)
    folder = RunFolder(Path(out)) if out is not None else None
    saved, begun = None, None
    if folder and resume and folder.begun:
        folder.check_same(config, data)
        if folder.finished:
            return finished_run(folder, config)
        noted = folder.data().get("start")
        earlier = Earlier.of(noted, config) if earlier is None and noted else earlier
        saved, begun = _go_back_to_checkpoint(folder), folder.data().get("made", {})
    elif folder:
        folder.begin(config, {**data, "start": earlier.folder if earlier else None}, overwrite=overwrite)
    judge = _judge_of(ratings, test, config)
    how = (folder, progress, stop, checkpoint_seconds, callbacks)
    task = Task(ratings, test, judge, config, *how, earlier=earlier)
    if folder:
        task = replace(task, ledger=Ledger.of(folder.path, config, data["fingerprint"]))
    try:
        outcome = _attempts(task, saved)
    except UserError:
        if folder and folder.begun and begun is None and not folder.metrics():  # it failed before its first round
            folder.give_up()
        raise
    made = watch.made(config.seed)
    return _finish(task, outcome, data, made if begun is None else {**begun, "resumed": made})


def _model_of(start: Start) -> str | Path | SharedModel:
    """A run's or a recommender's model, and what else it may be."""
    if isinstance(start, Run):
        start = start.recommender
    if isinstance(start, Recommender):
        return start.model
    if not isinstance(start, str | Path | SharedModel):
        raise UserError(f"start={start!r} is no model", "give a run, its folder, or its model")
    return start


def _go_back_to_checkpoint(folder: RunFolder) -> Checkpoint | None:
    """The checkpoint; metrics of rounds after it are dropped, since they come again."""
    saved = folder.checkpoint()
    folder.rewrite_metrics(folder.metrics(up_to=saved.state.server.round) if saved else [])
    return saved


def _test_of_shards(ratings: ShardedRatings, test: RatingsLike | None, config: Config) -> ShardedRatings | None:
    """The test ratings of shards, which are in the shards."""
    if config.engine != "ray":
        raise UserError(
            f"ratings in shards are trained on by engine=ray, not by engine={config.engine}",
            "set engine=ray, or read all of them into memory with fr.load",
        )
    if test is not None:
        raise UserError("shards hold their own test ratings", "name their fold: fr.open_shards(folder, fold=0)")
    return ratings.held_out()


def _judge_of(ratings: Ratings, test: Ratings | None, config: Config) -> Judge:
    if isinstance(ratings, ShardedRatings):
        return ShardJudge(ratings, _MOST_JUDGED)
    return RatingsJudge(test if test is not None else _sample(ratings), Fallback.of(ratings, config))


def _sample(ratings: Ratings) -> Ratings:
    """So many training ratings as make an evaluation cheap, drawn by a fixed key."""
    if len(ratings) <= _MOST_JUDGED:
        return ratings
    return ratings.where(uniform(0, np.arange(len(ratings))) < _MOST_JUDGED / len(ratings))


def _attempts(task: Task, saved: Checkpoint | None) -> Outcome:
    """Attempts with ever smaller steps, until one doesn't diverge."""
    retries = saved.retries if saved else 0
    while True:
        try:
            return attempt(task, retries, saved)
        except Diverged as diverged:
            if isinstance(task.config.privacy, BudgetMechanism):
                raise UserError(
                    f"training {diverged}; another attempt would spend the privacy budget again",
                    "choose settings that suit the budget (--epsilon does), or a greater privacy.epsilon",
                ) from None
            retries, saved = retries + 1, None
            _start_again(task, diverged, retries)


def _start_again(task: Task, diverged: Diverged, retries: int) -> None:
    name, rate = step_size(with_smaller_step(task.config, retries))
    if retries > MOST_RETRIES:
        if task.folder:
            task.folder.give_up()
        raise UserError(
            f"training {diverged}, after {MOST_RETRIES} attempts with greater steps that diverged too",
            f"set {name} to {rate:g} or less, or a lower server_optimizer.learning_rate",
        ) from None
    if task.folder:
        task.folder.forget_attempt()
    message = f"{diverged}; starting again with {name} = {rate:g}"
    task.progress(Step(0, task.config.server.rounds, message=message))


def _finish(task: Task, outcome: Outcome, data: Mapping[str, Any], made: Mapping[str, Any]) -> Run:
    result = {**result_of(task, outcome, data), "made": made}
    recommender = recommender_of(task.ratings, outcome, task.config)
    if task.folder is not None:
        recommender.save(task.folder.path)
        task.folder.finish(result)
    for callback in task.callbacks:
        if task.folder is not None:
            callback.files(task.folder.path, result)
        callback.end(result)
    return Run(task.config, result, recommender, task.folder.path if task.folder else None)
