"""One training from its first round, or from a checkpoint, to its result."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, check, preset
from fedrecplus.data import Ratings, RatingsLike, ShardedRatings, join, load
from fedrecplus.engines import engine_of, prepare, statistics_budget
from fedrecplus.errors import UserError
from fedrecplus.provenance import Stopwatch
from fedrecplus.training.callbacks import Callback, Progress, check_callbacks, silent_progress
from fedrecplus.training.model_files import SharedModel
from fedrecplus.training.privacy import LEDGER, BookFile, Ledger, run_name
from fedrecplus.training.recommender import Recommender
from fedrecplus.training.run import Run, finished_run, recommender_of, result_of
from fedrecplus.training.run_folder import RunFolder, fingerprint
from fedrecplus.training.running import Training
from fedrecplus.training.warm_start import Earlier
from fedrecplus.workers import threads_for

Start = str | Path | Run | Recommender | SharedModel
"""what a training may begin with: a run, its folder, or its model"""
CHECKPOINT_SECONDS = 5.0
SHARDED_SECONDS = 300.0
"""at least: a checkpoint brings the private states of all shards together"""


def train(
    ratings: RatingsLike,
    test: RatingsLike | None,
    config: Config | str,
    *,
    progress: Progress = silent_progress,
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
    ratings = load(ratings)
    if isinstance(ratings, ShardedRatings):
        test, checkpoint_seconds = _test_of_shards(ratings, test, config), max(checkpoint_seconds, SHARDED_SECONDS)
    if len(ratings) == 0:
        raise UserError("there is no rating to train on", "give more ratings")
    if test is not None:
        ratings, test = join(ratings, load(test, like=ratings))
    # settings that don't suit the ratings are found before anything is written, or released
    problem = prepare(ratings, config, test=test)
    data = {**(about_data or {}), "fold": fold, "fingerprint": fingerprint(ratings, test)}
    data |= {"run": "" if config.seeded_noise else secrets.token_hex(8), "made": watch.began(config.seed)}
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
        saved, begun = folder.go_back_to_checkpoint(), folder.data().get("made", {})
        if saved and saved.state.server.head and len(saved.state.server.head) != len(config.model.head_choices()):
            other = f"{folder.path}: validation chose among other settings than this version's"
            raise UserError(other, "resume with the fedrecplus that began it, or begin anew with --overwrite")
        problem = prepare(ratings, config, saved.public(problem.public), test=test) if saved else problem
        data["run"] = folder.data().get("run", "")
    elif folder:
        folder.begin(config, {**data, "start": earlier.folder if earlier else None}, overwrite=overwrite)
    ledger = None
    if folder is not None:
        name = run_name(config, f"{data['fingerprint']} {data['run']}")
        ledger = Ledger.of_model(BookFile(folder.path / LEDGER), config, name, statistics_budget(config))
    if ledger is not None and earlier is not None:
        ledger.after(earlier.spent)
    if ledger is not None and saved is None:
        ledger.before_statistics(fresh=not config.seeded_noise)
    looking_on, retries = (progress, stop, checkpoint_seconds, callbacks), saved.retries if saved else 0
    training = _kind(ratings)(config, problem, test, folder, *looking_on, ledger, earlier, retries)
    with threads_for(ratings.item_count):
        try:
            training.run(saved)
        except UserError:
            if folder and folder.begun and begun is None and not folder.metrics():  # it failed before its first round
                folder.give_up()
            raise
        evaluation, predictor = training.final()
    made = watch.made(config.seed)
    result = result_of(training, evaluation, {**data, "made": made if begun is None else {**begun, "resumed": made}})
    recommender = recommender_of(training, predictor)
    _finish(training, result, recommender)
    return Run(config, result, recommender, folder.path if folder else None)


def _model_of(start: Start) -> str | Path | Recommender | SharedModel:
    """A run's folder, its or a recommender's model, and what else it may be."""
    if isinstance(start, Run):
        start = start.recommender if start.folder is None else start.folder
    if not isinstance(start, str | Path | Recommender | SharedModel):
        raise UserError(f"start={start!r} is no model", "give a run, its folder, or its model")
    return start


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


def _kind(ratings: Ratings) -> type[Training]:
    if not isinstance(ratings, ShardedRatings):
        return Training
    from fedrecplus.training.sharded import ShardedTraining  # here: it brings the engine of clusters

    return ShardedTraining


def _finish(training: Training, result: dict[str, Any], recommender: Recommender) -> None:
    """Write what there is to write, and tell the callbacks."""
    folder = training.folder
    if folder is not None:
        recommender.save(folder.path)
        folder.finish(result)
    for callback in training.callbacks:
        if folder is not None:
            callback.files(folder.path, result)
        callback.end(result)
