"""Judging a training on shards: each worker looks at its own, and what it adds up is added up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.shards.read import ShardedRatings
from fedrecplus.engines import Engine, Problem, SimulationState, item_columns
from fedrecplus.engines.ray import RayEngine
from fedrecplus.engines.ray.worker import ShardView
from fedrecplus.randomness import uniform
from fedrecplus.training.divergence import Watch
from fedrecplus.training.evaluation import ErrorSums, Fallback, Predictor, Scores, error_sums
from fedrecplus.training.groups import Errors, errors_of, tail_items
from fedrecplus.training.judging import Judge
from fedrecplus.training.measures import Evaluation, evaluation_of
from fedrecplus.training.ranking import Lists, ListTerms, clients_with_ratings, drawn_clients, judged_lists


class Question(NamedTuple):
    """What all shards are told, to be judged."""

    X: NDArray[Any]
    """public columns of items; none: predict the mean everywhere"""
    mean: float
    known_item: NDArray[np.bool_]
    share: float
    """of the training ratings that are looked at; 0: the test ratings"""
    terms: ListTerms | None = None
    """what lists are judged by, where they are"""


class OwnPart(NamedTuple):
    """What one shard is told besides."""

    before: int
    """training ratings of the shards before it"""
    judged: NDArray[np.int64]
    """clients whose lists are judged, by their number in the shard"""


@dataclass(frozen=True)
class ShardJudge(Judge):
    """Judges by the ratings of shards, without bringing them together."""

    ratings: ShardedRatings
    """those of training"""
    most: int
    """training ratings that are looked at, where there are no test ratings"""

    @property
    def likes_alone(self) -> bool:
        """See ``Judge.likes_alone``."""
        return self.ratings.likes_alone

    @cached_property
    def _ends(self) -> list[int]:
        """How many training ratings come before each shard."""
        return [int(self.ratings.indptr[shard.first]) for shard in self.ratings.folder.shards]

    def watch(self, engine: Engine, problem: Problem, state: SimulationState) -> Watch:
        """See ``Judge.watch``."""
        trivial = self._sums(engine, problem, state, np.zeros((0, 0))).scores()
        return Watch.between(trivial, self.scores(engine, problem, state), self.likes_alone)

    def scores(self, engine: Engine, problem: Problem, state: SimulationState) -> Scores:
        """See ``Judge.scores``."""
        return self._sums(engine, problem, state, item_columns(problem, state.server.V)).scores()

    def final(self, engine: Engine, problem: Problem, state: SimulationState) -> tuple[Predictor | None, Scores]:
        """See ``Judge.final``."""
        return None, self.scores(engine, problem, state)

    def evaluation(self, engine: Engine, problem: Problem, state: SimulationState) -> Evaluation:
        """All measures on the test ratings; workers judge the lists of those of their people who were drawn."""
        test = self.ratings.held_out()
        assert test is not None, "without test ratings there is nothing to evaluate"
        least = problem.config.evaluation.relevant_from
        terms = ListTerms.of(self.ratings, test, relevant_from=least)
        asked = self._question(problem, state)._replace(terms=terms)
        able = _look(engine, problem, state, _able_in_shard, terms, None)
        firsts = [shard.first for shard in self.ratings.folder.shards]
        chosen = drawn_clients(np.concatenate([some + first for (some, _), first in zip(able, firsts, strict=True)]))
        cuts = np.searchsorted(chosen, firsts)[1:]
        own = [part - first for part, first in zip(np.split(chosen, cuts), firsts, strict=True)]
        parts = list(map(OwnPart, self._ends, own))
        found = _look(engine, problem, state, _all_in_shard, asked, parts)
        lists = Lists.together([part for _, _, part in found], firsts, sum(left for _, left in able))
        scores = ErrorSums.together([sums for sums, _, _ in found]).scores()
        return evaluation_of(self.ratings, scores, Errors.together([errors for _, errors, _ in found]), lists)

    def _question(self, problem: Problem, state: SimulationState, X: NDArray[Any] | None = None) -> Question:
        known = self.ratings.item_counts() > 0
        if problem.config.model.PREDICTS_COLD_ITEMS:
            known[:] = True
        share = 0.0 if self.ratings.fold is not None else min(1.0, self.most / max(len(self.ratings), 1))
        X = item_columns(problem, state.server.V) if X is None else X
        return Question(X, self.ratings.mean(), known, share)

    def _sums(self, engine: Engine, problem: Problem, state: SimulationState, X: NDArray[Any]) -> ErrorSums:
        asked = self._question(problem, state, X)
        return ErrorSums.together(_look(engine, problem, state, _sums_in_shard, asked, self._ends))


def largest_upload(engine: Engine, problem: Problem, state: SimulationState) -> int:
    """Rows in the largest upload of all shards."""
    return int(max(_look(engine, problem, state, _largest_in_shard, None, None)))


def _look(engine: Engine, problem: Problem, state: SimulationState, function: Any, shared: Any, own: Any) -> list[Any]:
    assert isinstance(engine, RayEngine), "ratings in shards are refused for other engines"
    return engine.look(problem, state.private, function, shared, own)


def _sums_in_shard(view: ShardView, asked: Question, before: int) -> ErrorSums:
    """One shard's errors, added up."""
    test, predictor, fallback = _to_judge(view, asked, before)
    if not len(asked.X):
        return error_sums(test, lambda clients, _: np.full(len(clients), asked.mean), fallback)
    return error_sums(test, predictor.predict, fallback)


def _able_in_shard(view: ShardView, terms: ListTerms, own: None) -> tuple[NDArray[np.int64], int]:
    """Clients of a shard whose lists can be judged, no more than are judged of all, and how many can't be.

    Clients are drawn by their number among everybody, so those that everybody's draw takes are in the shard's own draw.
    """
    assert view.test is not None
    able = clients_with_ratings(terms.relevant(view.test))
    left_out = len(clients_with_ratings(view.test)) - len(able)
    return drawn_clients(able + view.first) - view.first, left_out


def _all_in_shard(view: ShardView, asked: Question, own: OwnPart) -> tuple[ErrorSums, Errors, Lists]:
    """One shard's errors, added up over all, by client and on tail items, and some of its clients' lists."""
    test, predictor, fallback = _to_judge(view, asked, own.before)
    assert asked.terms is not None
    sums, training = error_sums(test, predictor.predict, fallback), view.problem.ratings
    errors = errors_of(test, predictor.predict, fallback, training, tail_items(asked.terms.popularity))
    Z = view.engine.list_weights(view.problem, predictor.W, predictor.X)
    ranks, liked = replace(predictor, Z=Z), asked.terms.relevant(test)
    return sums, errors, judged_lists(training, liked, np.array(own.judged), ranks, fallback, asked.terms)


def _to_judge(view: ShardView, asked: Question, before: int) -> tuple[Any, Predictor, Fallback]:
    """What is judged, by what, and what is predicted where the model knows too little."""
    training = view.problem.ratings
    test = view.test
    if asked.share > 0.0 or test is None:
        test = training.where(uniform(0, before + np.arange(len(training))) < asked.share)
    fallback = Fallback.of(training, mean=asked.mean, known_item=np.array(asked.known_item))
    X = np.array(asked.X)
    W = view.engine.user_weights(view.problem, view.private, X) if len(X) else np.zeros((0, 0))
    return test, Predictor(W, X), fallback


def _largest_in_shard(view: ShardView, asked: None, own: None) -> int:
    return int((np.diff(view.problem.ratings.indptr) + np.diff(view.problem.pseudo_indptr)).max(initial=0))
