"""Validation cuts, and the learning curve of a config on one. The test fold is dropped before anything else."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data import Ratings, Split, split, validation_cut
from fedrecplus.engines import Diverged, engine_of, prepare, rounds
from fedrecplus.errors import UserError
from fedrecplus.training import (
    Fallback,
    Predictor,
    Scores,
    predictor_of,
    ranking,
    refuse_blown_up,
    score,
    score_of_mean,
    untrained_scores,
)
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


@dataclass(frozen=True)
class Objective:
    """What settings are chosen by: ``rmse``, the lower the better, or a ranking measure, the higher the better.

    >>> Objective("ndcg@10").maximised, str(Objective())
    (True, 'RMSE')
    """

    name: str = "rmse"

    def __post_init__(self) -> None:
        if self.maximised:
            try:
                ranking.measure_named(self.name)
            except UserError as error:
                raise UserError(f"{self.name!r} is no objective", f"write rmse, or {error.remedy}") from None

    def __str__(self) -> str:
        measure, at, depth = self.name.partition("@")
        return f"{measure.upper()}{at}{depth}"

    @property
    def maximised(self) -> bool:
        """Whether more is better."""
        return self.name != "rmse"

    def better(self, value: float) -> float:
        """A number that is lower where the value is better."""
        return -value if self.maximised else value

    def check(self, held_out: Ratings, fitted: Ratings) -> None:
        """Refuse errors as objective where there are none."""
        if not self.maximised and held_out.likes_alone and fitted.likes_alone:
            raise UserError(
                f"{fitted.name} has no ratings, only who chose what: there is no RMSE to choose by",
                "choose by lists: --objective ndcg@10",
            )


def tuning_cut(
    ratings: Ratings,
    fold: int = 0,
    share: float = 0.1,
    seed: int = 0,
    cut_seed: int | None = None,
    how: Split = Split(),  # noqa: B008 -- it can't be changed
) -> Cut:
    """A validation cut of the ratings outside one fold of a split; ``cut_seed`` draws it, ``seed`` if not given."""
    training, _ = split(ratings, fold, FOLDS, seed, how)
    return Cut(*validation_cut(training, share, seed if cut_seed is None else cut_seed, how))


def evaluations(
    cut: Cut,
    config: Config,
    stop: Stop = lambda: False,
    objective: Objective = Objective(),  # noqa: B008 -- it can't be changed
) -> Iterator[tuple[int, float]]:
    """Train on the fitted part; after each round that is evaluated, its number and what the objective is there.

    RMSE is in standard units.

    An iterator, so that several cuts can go through their rounds in step. Raises ``Diverged``, or KeyboardInterrupt
    when asked to stop.
    """
    problem, engine = prepare(cut.fitted, config), engine_of(config)
    fallback, likes_alone = Fallback.of(cut.fitted, config, problem.public), cut.held_out.likes_alone
    mean = score_of_mean(cut.held_out, fallback)
    untrained = functools.partial(untrained_scores, engine, problem, cut.held_out, fallback)
    for state, _ in rounds(engine, problem):
        if stop():
            raise KeyboardInterrupt
        number = state.server.round
        if number % config.evaluation.every == 0 or number == config.server.rounds:
            if not np.isfinite(state.private.U).all():
                raise Diverged(number, "U is not finite any more")
            predictor = predictor_of(engine, problem, state, lists=objective.maximised)
            scores = score(cut.held_out, predictor.predict, fallback)
            refuse_blown_up(scores, number, mean, untrained, likes_alone=likes_alone)
            yield number, _value(objective, cut, config, predictor, fallback, scores)


def _value(
    objective: Objective, cut: Cut, config: Config, predictor: Predictor, fallback: Fallback, scores: Scores
) -> float:
    scale = cut.held_out.scale
    if not objective.maximised:
        return scores.rmse * scale.standard_step / scale.step
    _, depth = ranking.measure_named(objective.name)
    figures = ranking.rank(cut.fitted, cut.held_out, predictor, fallback, (depth,), config.evaluation.relevant_from)
    if figures[objective.name] is None:
        raise UserError(
            f"no held-out rating of {cut.name} makes an item relevant", "hold out more: --share, or --objective rmse"
        )
    return float(figures[objective.name])
