"""Validation cuts, and the learning curve of a config on them. The test fold is dropped before anything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data import Ratings, split, validation_cut
from fedrecplus.errors import UserError
from fedrecplus.simulation import prediction_table, prepare
from fedrecplus.training.divergence import Diverged, Watch
from fedrecplus.training.engines import engine_of
from fedrecplus.training.evaluation import Factors, Fallback, score

FOLDS = 5

Stop = Callable[[], bool]


@dataclass(frozen=True)
class Cut:
    """A training part in two. The test fold isn't here, so nothing can look at it."""

    fitted: Ratings
    held_out: Ratings

    @property
    def name(self) -> str:
        """The data set's."""
        return self.fitted.name


def cut(ratings: Ratings, fold: int = 0, share: float = 0.1, seed: int = 0, cut_seed: int | None = None) -> Cut:
    """A validation cut of the ratings outside one of five folds; ``cut_seed`` draws it, ``seed`` if not given."""
    training, _ = split(ratings, fold, FOLDS, seed)
    return Cut(*validation_cut(training, share, seed if cut_seed is None else cut_seed))


@dataclass(frozen=True)
class Point:
    """A learning curve after a round that was evaluated."""

    round: int
    rmses: tuple[float, ...]
    """held-out RMSE in standard units, one per cut"""


@dataclass(frozen=True)
class End:
    """The last that is heard of a training."""

    why: str | None = None
    """what went wrong, if something did"""


Event = Point | End


def learning_curve(cuts: Sequence[Cut], config: Config, stop: Stop = lambda: False) -> Iterator[Event]:
    """Train on all cuts, in step. Divergence and settings that can't be are an end; a wish to stop is no end at all."""
    try:
        for points in zip(*(evaluations(cut, config, stop) for cut in cuts), strict=True):
            yield Point(points[0][0], tuple(rmse for _, rmse in points))
    except Diverged as diverged:
        yield End(str(diverged))
    except UserError as error:
        yield End(error.problem)
    else:
        yield End()


def evaluations(cut: Cut, config: Config, stop: Stop = lambda: False) -> Iterator[tuple[int, float]]:
    """Train on the fitted part; after each round that is evaluated, its number and the held-out RMSE in standard units.

    An iterator, so that several cuts can go through their rounds in step. Raises ``Diverged``, or KeyboardInterrupt
    when asked to stop.
    """
    problem, engine = prepare(cut.fitted, config), engine_of(config)
    state, fallback = engine.start(problem), Fallback.of(cut.fitted, config)
    watch = Watch.of(cut.held_out, Factors(state.U, state.server.V, problem.mean), fallback)
    scale = cut.held_out.scale
    while state.server.round < config.server.rounds:
        if stop():
            raise KeyboardInterrupt
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for afterwards
            state, _ = engine.simulate_round(problem, state)
        watch.look_at_state(state)
        number = state.server.round
        if number % config.evaluation.every == 0 or number == config.server.rounds:
            if not np.isfinite(state.U).all():
                raise Diverged(number, "U is not finite any more")
            factors = Factors(engine.prediction_factors(problem, state), prediction_table(problem, state), problem.mean)
            scores = score(cut.held_out, factors.predict, fallback)
            watch.look_at_scores(scores, number)
            yield number, scores.rmse * scale.standard_step / scale.step
