"""How a training is looked at while it runs: errors on ratings in memory, or on those of shards, where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from fedrecplus.data.ratings import Ratings
from fedrecplus.engines import Engine, Problem, SimulationState, item_columns
from fedrecplus.training.divergence import Watch
from fedrecplus.training.evaluation import Fallback, Predictor, Scores, score


class Judge(ABC):
    """Judges states of one training."""

    @property
    @abstractmethod
    def likes_alone(self) -> bool:
        """Whether all ratings that it looks at are the same, so that errors mean nothing."""

    @abstractmethod
    def watch(self, engine: Engine, problem: Problem, state: SimulationState) -> Watch:
        """How bad an error may get, by the state before the first round."""

    @abstractmethod
    def scores(self, engine: Engine, problem: Problem, state: SimulationState) -> Scores:
        """Errors in a state."""

    @abstractmethod
    def final(self, engine: Engine, problem: Problem, state: SimulationState) -> tuple[Predictor | None, Scores]:
        """Errors after the last round, and everybody's predictions, where they are in one place."""


@dataclass(frozen=True)
class RatingsJudge(Judge):
    """Judges by ratings in memory."""

    judged: Ratings
    """the test ratings or, without any, a sample of the training ratings"""
    fallback: Fallback

    @property
    def likes_alone(self) -> bool:
        """See ``Judge.likes_alone``."""
        return self.judged.likes_alone

    def watch(self, engine: Engine, problem: Problem, state: SimulationState) -> Watch:
        """See ``Judge.watch``."""
        return Watch.of(self.judged, predictor_of(engine, problem, state), self.fallback)

    def scores(self, engine: Engine, problem: Problem, state: SimulationState) -> Scores:
        """See ``Judge.scores``."""
        return score(self.judged, predictor_of(engine, problem, state).predict, self.fallback)

    def final(self, engine: Engine, problem: Problem, state: SimulationState) -> tuple[Predictor | None, Scores]:
        """See ``Judge.final``."""
        predictor = predictor_of(engine, problem, state, lists=True)
        return predictor, score(self.judged, predictor.predict, self.fallback)


def predictor_of(engine: Engine, problem: Problem, state: SimulationState, *, lists: bool = False) -> Predictor:
    """Everybody's predictions in a state; with ``lists`` what ranks lists, too, which takes its time."""
    X = item_columns(problem, state.server.V)
    W = engine.user_weights(problem, state.private, X)
    return Predictor(W, X, engine.list_weights(problem, W, X) if lists else None)
