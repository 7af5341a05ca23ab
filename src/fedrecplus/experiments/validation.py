"""Validation cuts, and the learning curve of a config on one. The test fold is dropped before anything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data import Ratings, split, validation_cut
from fedrecplus.engines import Diverged, engine_of, prepare, rounds
from fedrecplus.training.attempt import predictor_of
from fedrecplus.training.divergence import Watch
from fedrecplus.training.evaluation import Fallback, score
from fedrecplus.workers import Stop

FOLDS = 5


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


def evaluations(cut: Cut, config: Config, stop: Stop = lambda: False) -> Iterator[tuple[int, float]]:
    """Train on the fitted part; after each round that is evaluated, its number and the held-out RMSE in standard units.

    An iterator, so that several cuts can go through their rounds in step. Raises ``Diverged``, or KeyboardInterrupt
    when asked to stop.
    """
    problem, engine = prepare(cut.fitted, config), engine_of(config)
    state, fallback = engine.start(problem), Fallback.of(cut.fitted, config)
    watch = Watch.of(cut.held_out, predictor_of(engine, problem, state), fallback)
    scale = cut.held_out.scale
    left = rounds(engine, problem, state)
    for state, _ in left:
        if stop():
            raise KeyboardInterrupt
        number = state.server.round
        if number % config.evaluation.every == 0 or number == config.server.rounds:
            if not np.isfinite(state.private.U).all():
                raise Diverged(number, "U is not finite any more")
            scores = score(cut.held_out, predictor_of(engine, problem, state).predict, fallback)
            watch.look_at(scores, number)
            yield number, scores.rmse * scale.standard_step / scale.step
