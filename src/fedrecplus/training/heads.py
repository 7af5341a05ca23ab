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

from fedrecplus.data import Ratings, ShardedRatings
from fedrecplus.engines import Engine, Problem, RoundReport, SimulationState, prepare, rounds, statistics_budget
from fedrecplus.protocol import BYTES_PER_NUMBER
from fedrecplus.randomness import subkey, uniform
from fedrecplus.rounds import plan_of
from fedrecplus.training.evaluation import Fallback, Predictor, errors_of, predictor_of, with_head
from fedrecplus.training.ranking import lists_of

Array = NDArray[np.float64]

DEPTH = 10
"""of the lists that are judged"""
_FEWEST_KNOWN, _SURE_SINCE = 50, 2.0
"""of what came since an earlier model: people who are known, and standard errors. What comes next month differs more"""
SHARE = 0.7
"""of the rounds: earlier, V is too young to be trusted as it will be in the end"""


@dataclass(frozen=True)
class HeldBack:
    """What devices keep back, and what they train on until it was looked at."""

    problem: Problem
    ratings: Ratings
    until: int
    """rounds that come before"""
    sure: float = 1.0
    """standard errors by which a head must be better"""

    @classmethod
    def of(cls, problem: Problem) -> HeldBack | None:
        """None where nothing is kept back, or there is nothing to choose; a budget has no noise for these sums.

        Noisy statistics stay those of everybody's ratings: counting anew would be one more release.
        """
        config, ratings = problem.config, problem.ratings
        spread = isinstance(ratings, ShardedRatings) or config.engine == "ray"
        until = round(SHARE * config.server.rounds)
        choices = config.model.head_choices() and plan_of(config) is None
        if config.server.held_back == 0.0 or not choices or spread or until == 0:
            return None
        kept = kept_back(ratings, config.server.held_back, config.seed)
        if not kept.any():
            return None
        released = problem.public if statistics_budget(config) is not None else None
        return cls(prepare(ratings.where(~kept), config, released), ratings.where(kept), until)

    @classmethod
    def since(cls, problem: Problem, new: NDArray[np.bool_]) -> HeldBack | None:
        """What came since an earlier model, whose tables never saw it: so no round need do without.

        None where it came from too few who are known, or where counting what was there before would be one more noisy
        release: then the earlier model's head stays.
        """
        config, before, came = problem.config, problem.ratings.where(~new), problem.ratings.where(new)
        known = np.count_nonzero((np.diff(before.indptr) > 0) & (np.diff(came.indptr) > 0))
        if known < _FEWEST_KNOWN or not config.model.head_choices():
            return None
        if plan_of(config) is not None or statistics_budget(config) is not None:
            return None
        return cls(prepare(before, config), came, 0, sure=_SURE_SINCE)

    def rounds(
        self, engine: Engine, whole: Problem, state: SimulationState
    ) -> Iterator[tuple[SimulationState, RoundReport]]:
        """All rounds that are left: on what is not kept back until it chose a head, then on everything."""
        if self.until == 0 and state.server.round == 0:
            state, sums = self.chosen(engine, state)
            yield from _with_bytes(rounds(engine, whole, state), sums)
            return
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
        numbers, plain = 0, None
        usual: dict[str, Array] = {}
        """losses of the head so far, which are those of the next choice's first candidate"""
        for choice in self.problem.config.model.head_choices():
            states = [_with_head(state, (*head, place)) for place in range(len(choice.candidates))]
            known = [usual[choice.by]] if choice.by in usual else []
            if choice.by == "errors":
                likes = self.problem.ratings.likes_alone  # which have no errors
                losses = [np.zeros(1)] if likes else known + self._errors(engine, states[len(known) :])
                plain = None
            else:
                plain = plain or predictor_of(engine, self.problem, states[0])
                losses = known + self._of_lists(engine, states[len(known) :], plain)
            best = surely_best(np.stack(losses), max(self.sure, choice.sure))
            head, usual[choice.by] = (*head, best), losses[best]
            numbers += 2 * len(losses)
        return _with_head(state, head), BYTES_PER_NUMBER * numbers * len(self.problem.able)

    def _errors(self, engine: Engine, states: list[SimulationState]) -> list[Array]:
        """Squared errors of each state by client."""
        predictors = (predictor_of(engine, self.problem, state) for state in states)
        return [errors_of(self.ratings, each.predict, self._fallback).squared for each in predictors]

    def _of_lists(self, engine: Engine, states: list[SimulationState], plain: Predictor) -> list[Array]:
        """1 − NDCG of each state by client, of those who kept back what they like; all predict ratings as ``plain``."""
        least = self.problem.config.evaluation.relevant_from
        weights = (engine.list_weights(with_head(self.problem, state), plain.W, plain.X) for state in states)
        predictors = (replace(plain, Z=Z) for Z in weights)
        lists = (
            lists_of(self.problem.ratings, self.ratings, predictor, self._fallback, (DEPTH,), least)
            for predictor in predictors
        )
        return [1.0 - each.by_client[f"ndcg@{DEPTH}"] for each in lists]

    @property
    def _fallback(self) -> Fallback:
        return Fallback.of(self.problem.ratings, self.problem.config, self.problem.public)


def _with_bytes(
    left: Iterator[tuple[SimulationState, RoundReport]], sums: int
) -> Iterator[tuple[SimulationState, RoundReport]]:
    """The rounds, of which the first has sent the sums of a validation, too."""
    for state, report in left:
        yield state, replace(report, bytes_up=report.bytes_up + sums)
        sums = 0


def surely_best(losses: Array, sure: float = 1.0) -> int:
    """The row that is below the first by most after so many standard errors; the first where none is.

    Two sums of each row say it: of its differences from the first, and of their squares.

    >>> surely_best(np.array([[1.0, 1.0, 1.0], [0.8, 0.9, 0.7], [0.0, 2.0, 0.9]]))
    1
    """
    lead = losses - losses[0]
    clients = max(lead.shape[1], 1)
    return int(np.argmin(lead.sum(axis=1) / clients + sure * np.sqrt((lead**2).sum(axis=1)) / clients))


def kept_back(ratings: Ratings, share: float, seed: int) -> NDArray[np.bool_]:
    """Which ratings devices keep back: by a draw of each, and none of a client that would be left with none."""
    kept = uniform(subkey(seed, "held back"), np.arange(len(ratings))) < share
    clients = ratings.client_of_rating
    left = np.bincount(clients[~kept], minlength=ratings.clients)
    return np.asarray(kept & (left[clients] > 0))


def _with_head(state: SimulationState, head: tuple[int, ...]) -> SimulationState:
    return replace(state, server=replace(state.server, head=head))
