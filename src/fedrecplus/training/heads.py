"""Federated validation: the head that predicts best what devices keep back.

In the first rounds every device leaves a share of its ratings out, of its counts and averages too. Then, for every
candidate of the model's ``head_choices``, it adds up the squared errors of what it kept back, clipped to the scale, and
what its lists are worth. The server sees sums over everybody and names the best. From then on all ratings are trained
on. No table is trained anew: only weights that devices solve for differ.

Ours: a search over settings needs everybody's ratings in one place; this needs a sum of a hundred numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Ratings
from fedrecplus.data.shards.read import ShardedRatings
from fedrecplus.engines import Engine, Problem, RoundReport, SimulationState, prepare, rounds
from fedrecplus.protocol import BYTES_PER_NUMBER
from fedrecplus.randomness import subkey, uniform
from fedrecplus.training.evaluation import Fallback, Predictor, predictor_of, score, with_head
from fedrecplus.training.ranking import rank

DEPTH = 10
"""of the lists that are judged"""
SHARE = 0.7
"""of the rounds: earlier, V is too young to be trusted as it will be in the end"""


@dataclass(frozen=True)
class HeldBack:
    """What devices keep back, and what they train on until it was looked at."""

    problem: Problem
    ratings: Ratings
    until: int
    """rounds that come before"""

    @classmethod
    def of(cls, problem: Problem) -> HeldBack | None:
        """None where nothing is kept back, or there is nothing to choose."""
        config, ratings = problem.config, problem.ratings
        spread = isinstance(ratings, ShardedRatings) or config.engine == "ray"
        until = round(SHARE * config.server.rounds)
        if config.server.held_back == 0.0 or not config.model.head_choices() or spread or until == 0:
            return None
        kept = kept_back(ratings, config.server.held_back, config.seed)
        return cls(prepare(ratings.where(~kept), config), ratings.where(kept), until) if kept.any() else None

    def rounds(
        self, engine: Engine, whole: Problem, state: SimulationState
    ) -> Iterator[tuple[SimulationState, RoundReport]]:
        """All rounds that are left: on what is not kept back until it chose a head, then on everything."""
        if state.server.round < self.until:
            for now, report in rounds(engine, self.problem, state):
                if now.server.round == self.until:
                    break
                yield now, report
            state, sums = self.chosen(engine, now)
            yield state, replace(report, bytes_up=report.bytes_up + sums)
        yield from rounds(engine, whole, state)

    def chosen(self, engine: Engine, state: SimulationState) -> tuple[SimulationState, int]:
        """The state with the best head, choice by choice, and the bytes of the sums that say so."""
        head: tuple[int, ...] = ()
        numbers = 0
        for choice in self.problem.config.model.head_choices():
            states = [_with_head(state, (*head, place)) for place in range(len(choice.candidates))]
            judged = self._errors(engine, states) if choice.by == "errors" else self._losses(engine, states)
            head = (*head, int(np.argmin(judged)))
            numbers += 2 * len(judged)
        return _with_head(state, head), BYTES_PER_NUMBER * numbers * len(self.problem.able)

    def _errors(self, engine: Engine, states: list[SimulationState]) -> list[float]:
        """RMSE; 0 of likes alone, where no head is better than another."""
        if self.problem.ratings.likes_alone:
            return [0.0]
        predictors = (predictor_of(engine, self.problem, state) for state in states)
        return [score(self.ratings, predictor.predict, self._fallback).rmse for predictor in predictors]

    def _losses(self, engine: Engine, states: list[SimulationState]) -> list[float]:
        """1 − NDCG, of people who kept back what they like. What predicts ratings is the same in all these states."""
        plain = predictor_of(engine, self.problem, states[0])
        Z = (engine.list_weights(with_head(self.problem, state), plain.W, plain.X) for state in states)
        return [1.0 - self._gain(replace(plain, Z=weights)) for weights in Z]

    def _gain(self, predictor: Predictor) -> float:
        least = self.problem.config.evaluation.relevant_from
        figures = rank(self.problem.ratings, self.ratings, predictor, self._fallback, (DEPTH,), least)
        return float(figures[f"ndcg@{DEPTH}"] or 0.0)

    @property
    def _fallback(self) -> Fallback:
        return Fallback.of(self.problem.ratings, self.problem.config)


def kept_back(ratings: Ratings, share: float, seed: int) -> NDArray[np.bool_]:
    """Which ratings devices keep back: by a draw of each, and none of a client that would be left with none."""
    kept = uniform(subkey(seed, "held back"), np.arange(len(ratings))) < share
    clients = ratings.client_of_rating
    left = np.bincount(clients[~kept], minlength=ratings.clients)
    return np.asarray(kept & (left[clients] > 0))


def _with_head(state: SimulationState, head: tuple[int, ...]) -> SimulationState:
    return replace(state, server=replace(state.server, head=head))
