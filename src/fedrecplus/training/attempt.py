"""One attempt at a training: round after round, evaluations, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.engines import (
    Diverged,
    Engine,
    Problem,
    SimulationState,
    compile_seconds,
    engine_of,
    prepare,
    rounds,
)
from fedrecplus.protocol import PublicItems
from fedrecplus.training.callbacks import Callback
from fedrecplus.training.checkpoint import Checkpoint
from fedrecplus.training.divergence import Watch, with_smaller_step
from fedrecplus.training.evaluation import Predictor, Scores
from fedrecplus.training.judging import Judge
from fedrecplus.training.privacy import Ledger
from fedrecplus.training.progress import Progress, Step
from fedrecplus.training.run_folder import RunFolder
from fedrecplus.training.tally import Tally
from fedrecplus.training.warm_start import Earlier

_NO_ERRORS = dict.fromkeys(("mae", "rmse", "nmse"))


@dataclass(frozen=True)
class Task:
    """What is the same in every attempt."""

    ratings: Ratings
    test: Ratings | None
    judge: Judge
    """looks at the test ratings or, without any, at a sample of the training ratings"""
    config: Config
    folder: RunFolder | None
    progress: Progress
    stop: Callable[[], bool]
    checkpoint_seconds: float
    callbacks: tuple[Callback, ...] = ()
    ledger: Ledger | None = None
    """of releases, where the run has a privacy budget and a folder"""
    earlier: Earlier | None = None
    """the model that it begins with, where it does not begin anew"""
    public: PublicItems | None = None
    """what is public of the items: the figures are released once, whatever number of attempts there is"""

    @property
    def likes_alone(self) -> bool:
        """Whether all ratings are the same, so that errors mean nothing."""
        return self.ratings.likes_alone and self.judge.likes_alone


@dataclass(frozen=True)
class Outcome:
    """What an attempt came to."""

    config: Config
    """with the step that it took in the end"""
    problem: Problem
    state: SimulationState
    engine: Engine
    predictor: Predictor | None
    """None where clients are in shards, and nobody has all their weights"""
    scores: Scores
    tally: Tally
    retries: int


def attempt(task: Task, retries: int, saved: Checkpoint | None) -> Outcome:
    """All rounds that are left. Raises ``Diverged``, or KeyboardInterrupt when asked to stop."""
    config, fresh = with_smaller_step(task.config, retries), not task.config.seeded_noise
    problem, engine = prepare(task.ratings, config, task.public), engine_of(config)
    state, tally = engine.start(problem), Tally()
    if task.earlier is not None:
        state = task.earlier.begin(problem, state)
    watch = task.judge.watch(engine, problem, state)
    if saved:
        state, tally = saved.state, saved.tally
    for callback in task.callbacks:
        before = task.folder.metrics(state.server.round) if task.folder else []
        callback.start(config, state.server.round, before)
    clock, began = time.monotonic(), _stopwatch()
    left = rounds(engine, problem, state)
    if task.ledger is not None and task.ledger.plan.rounds:
        left = task.ledger.before_each(left, state.server.round, fresh=fresh)
    for state, report in left:
        tally = tally.after(report, _stopwatch() - began)
        rmse = None
        if _is_due(config, state.server.round):
            rmse = _evaluate(task, engine, problem, state, tally, watch).rmse
        task.progress(
            Step(
                state.server.round,
                config.server.rounds,
                rmse if task.test is not None and not task.likes_alone else None,
                seconds=report.seconds,
            )
        )
        for callback in task.callbacks:
            callback.round(state.server.round, config.server.rounds)
        clock = _keep_safe(task, Checkpoint.of(state, tally, retries, problem.public), clock)
        if any(callback.wants_stop() for callback in task.callbacks):
            break
        began = _stopwatch()
    predictor, scores = task.judge.final(engine, problem, state)
    return Outcome(config, problem, state, engine, predictor, scores, tally, retries)


def _stopwatch() -> float:
    """A clock that stands still while kernels are compiled."""
    return time.perf_counter() - compile_seconds()


def _is_due(config: Config, round_number: int) -> bool:
    """Learning curves begin with the first round and end with the last."""
    return round_number % config.evaluation.every == 0 or round_number in (1, config.server.rounds)


def _evaluate(
    task: Task, engine: Engine, problem: Problem, state: SimulationState, tally: Tally, watch: Watch
) -> Scores:
    number = state.server.round
    if not state.private.finite():
        raise Diverged(number, "U is not finite any more")
    scores = task.judge.scores(engine, problem, state)
    watch.look_at(scores, number)
    measured_on = "train" if task.test is None else "test"
    figures = {**scores.figures(), **(_NO_ERRORS if task.likes_alone else {})}
    line = {"round": number, "measured_on": measured_on, **figures, **tally.figures()}
    if task.folder:
        task.folder.add_metrics(line)
    for callback in task.callbacks:
        callback.metrics(number, line)
    return scores


def _keep_safe(task: Task, checkpoint: Checkpoint, clock: float) -> float:
    """Write a checkpoint when it is time to, or when the user wants to stop. Returns the time of the latest one.

    It comes after the round's metrics line, so that a run which goes on from it neither lacks a line nor has it twice.
    Where a round that comes again would be paid for again, every round has one.
    """
    left = task.config.server.rounds - checkpoint.state.server.round
    stopping = left > 0 and task.stop()
    paid = task.ledger is not None and not task.config.seeded_noise
    if task.folder and (stopping or paid or time.monotonic() - clock >= task.checkpoint_seconds):
        task.folder.save_checkpoint(checkpoint)
        clock = time.monotonic()
    if stopping:
        raise KeyboardInterrupt
    return clock
