"""Two worlds: for each watched person a training of its own, in which somebody else's ratings are in its place.

The quick control takes a person out of the recorded sums. Here the person was never there: not in the statistics, not
in V of any round, and not in what others made of it. One training per watched person, so few people are watched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fedrecplus.audit.recording import record
from fedrecplus.audit.transcript import Transcript
from fedrecplus.data import Ratings
from fedrecplus.engines import Problem, prepare


class Worlds:
    """The transcripts of trainings without one person each, made when they are asked for."""

    def __init__(self, problem: Problem, rounds: int, users: int) -> None:
        self.problem, self.rounds, self.users = problem, rounds, users
        self._found: dict[int, Transcript] = {}

    def without(self, client: int, other: int, view: Transcript) -> Transcript:
        """What the server sees where ``other``'s ratings are in the client's place, under the view's assumptions."""
        if client not in self._found:
            problem = self.problem
            changed = prepare(exchanged_ratings(problem.ratings, client, other), problem.config)
            # of sums nothing is learned from other people's uploads, so only one person's are noted
            watching = view.clients if view.shows & {"values", "lists"} else (client,)
            self._found[client] = record(changed, self.rounds, self.users, watching=watching).transcript
        found = self._found[client]
        found.knowledge = replace(found.knowledge, second=view.knowledge.second, some=view.knowledge.some)
        found.assumed = view.assumed
        return found


def exchanged_ratings(ratings: Ratings, client: int, other: int) -> Ratings:
    """The ratings with a copy of another person's in one person's place."""
    places = np.concatenate(list(_places(ratings, client, other)))
    counts = np.diff(ratings.indptr)
    counts[client] = counts[other]
    times, order = (None if one is None else one[places] for one in (ratings.timestamps, ratings.order))
    return replace(
        ratings, indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), items=ratings.items[places],
        codes=ratings.codes[places], timestamps=times, order=order, folds=None,
    )  # fmt: skip


def _places(ratings: Ratings, client: int, other: int) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    starts = ratings.indptr
    yield np.arange(starts[client])
    yield np.arange(starts[other], starts[other + 1])
    yield np.arange(starts[client + 1], starts[-1])
