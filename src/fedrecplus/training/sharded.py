"""Judging a training on shards: each worker looks at its own, and what it adds up is added up."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data import ShardedRatings
from fedrecplus.engines import SimulationState, item_columns
from fedrecplus.engines.ray import RayEngine, ShardView
from fedrecplus.protocol import PublicItems
from fedrecplus.randomness import uniform
from fedrecplus.training.evaluation import (
    Errors,
    Fallback,
    Predictor,
    ScoredBy,
    Scores,
    errors_of,
    score,
    score_of_mean,
)
from fedrecplus.training.groups import tail_items
from fedrecplus.training.measures import Evaluation, evaluation_of
from fedrecplus.training.ranking import Lists, ListTerms, clients_with_ratings, drawn_clients, judged_lists
from fedrecplus.training.running import MOST_JUDGED, Scored, Training


class Question(NamedTuple):
    """What all shards are told, to be judged."""

    X: NDArray[Any]
    """public columns of items; none: predict the mean everywhere"""
    dense: NDArray[Any]
    """the model's dense arrays"""
    public: PublicItems
    config: Config
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


class ShardedTraining(Training):
    """A training on shards, which is judged without bringing them together."""

    @property
    def ratings(self) -> ShardedRatings:
        """Those of training."""
        ratings = self.problem.ratings
        assert isinstance(ratings, ShardedRatings)
        return ratings

    @property
    def judges_likes(self) -> bool:
        """See ``Training.judges_likes``."""
        return self.ratings.likes_alone

    @cached_property
    def _ends(self) -> list[int]:
        """How many training ratings come before each shard."""
        return [int(self.ratings.indptr[shard.first]) for shard in self.ratings.folder.shards]

    @cached_property
    def score_of_mean(self) -> Scores:
        """See ``Training.score_of_mean``."""
        return self._scores(self.state, np.zeros((0, 0)))

    def score(self, state: SimulationState) -> Scored:
        """See ``Training.score``."""
        return Scored(self._scores(state, item_columns(self.problem, state.server.V)))

    def final(self) -> tuple[Evaluation | None, Predictor | None]:
        """Workers judge the lists of those of their people who were drawn; nobody has everybody's weights."""
        self.scored = self.scored or self.score(self.state)
        test = self.ratings.held_out()
        if test is None:
            return None, None
        terms = ListTerms.of(self.ratings, test, relevant_from=self.config.evaluation.relevant_from)
        question = self._question(item_columns(self.problem, self.state.server.V))._replace(terms=terms)
        able = self._look(self.state, _able_in_shard, terms, None)
        firsts = [shard.first for shard in self.ratings.folder.shards]
        drawn = drawn_clients(np.concatenate([own + first for (own, _), first in zip(able, firsts, strict=True)]))
        cuts = np.searchsorted(drawn, firsts)[1:]
        judged = [part - first for part, first in zip(np.split(drawn, cuts), firsts, strict=True)]
        parts = self._look(self.state, _all_in_shard, question, list(map(OwnPart, self._ends, judged)))
        lists = Lists.joined([lists for _, lists in parts], firsts, sum(left for _, left in able))
        return evaluation_of(self.ratings, Errors.joined([errors for errors, _ in parts]), lists), None

    def largest_upload(self) -> int:
        """Rows in the largest upload of all shards."""
        return int(max(self._look(self.state, _largest_in_shard, None, None)))

    def _question(self, X: NDArray[Any]) -> Question:
        share = 0.0 if self.ratings.fold is not None else min(1.0, MOST_JUDGED / max(len(self.ratings), 1))
        return Question(X, self.state.server.dense, self.problem.public, self.config, share)

    def _scores(self, state: SimulationState, X: NDArray[Any]) -> Scores:
        return Scores.joined(self._look(state, _scores_in_shard, self._question(X), self._ends))

    def _look(self, state: SimulationState, function: Any, shared: Any, own: Any) -> list[Any]:
        assert isinstance(self.engine, RayEngine), "ratings in shards are refused for other engines"
        return self.engine.look(self.problem, state.private, function, shared, own)


def _scores_in_shard(view: ShardView, question: Question, before: int) -> Scores:
    """One shard's errors, added up."""
    test, predictor, fallback = _to_judge(view, question, before)
    return score_of_mean(test, fallback) if not len(question.X) else score(test, predictor.predict, fallback)


def _able_in_shard(view: ShardView, terms: ListTerms, own: None) -> tuple[NDArray[np.int64], int]:
    """Clients of a shard whose lists can be judged, no more than are judged of all, and how many can't be.

    Clients are drawn by their number among everybody, so those that everybody's draw takes are in the shard's own draw.
    """
    assert view.test is not None
    able = clients_with_ratings(terms.relevant(view.test))
    left_out = len(clients_with_ratings(view.test)) - len(able)
    return drawn_clients(able + view.first) - view.first, left_out


def _all_in_shard(view: ShardView, question: Question, own: OwnPart) -> tuple[Errors, Lists]:
    """One shard's errors, and some of its clients' lists."""
    test, predictor, fallback = _to_judge(view, question, own.before)
    terms, training = question.terms, view.problem.ratings
    assert terms is not None
    errors = errors_of(test, predictor.predict, fallback, tail_items(terms.popularity))
    ranks = replace(predictor, Z=view.engine.list_weights(view.problem, predictor.W, predictor.X))
    return errors, judged_lists(training, terms.relevant(test), np.array(own.judged), ranks, fallback, terms)


def _to_judge(view: ShardView, question: Question, before: int) -> tuple[Any, Predictor, Fallback]:
    """What is judged, by what, and what is predicted where the model knows too little."""
    training = view.problem.ratings
    test = view.test
    if question.share > 0.0 or test is None:
        test = training.where(uniform(0, before + np.arange(len(training))) < question.share)
    fallback = Fallback.of(training, question.config, question.public)
    X = np.array(question.X)
    W = view.engine.user_weights(view.problem, view.private, X) if len(X) else np.zeros((0, 0))
    scored_by = ScoredBy.of(view.problem.config.model, np.array(question.dense))
    return test, Predictor(W, X, scored_by=scored_by), fallback


def _largest_in_shard(view: ShardView, question: None, own: None) -> int:
    return int((np.diff(view.problem.ratings.indptr) + np.diff(view.problem.pseudo_indptr)).max(initial=0))
