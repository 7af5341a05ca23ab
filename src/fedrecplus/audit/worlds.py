"""Two worlds: for each watched person a training of its own, in which somebody else's ratings are in its place.

The quick control takes a person out of the recorded sums. Here the person was never there: not in the statistics, not
in V of any round, and not in what others made of it. Worlds are made side by side in processes. Each is attacked where
it was made and forgotten, since two hundred recordings would not fit into memory.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedrecplus.audit.attacks import Attack, Guess
from fedrecplus.audit.contributions import known_of
from fedrecplus.audit.recording import record, truth_of
from fedrecplus.audit.transcript import SecondData, Transcript
from fedrecplus.data import Ratings
from fedrecplus.engines import Problem, prepare
from fedrecplus.settings import Settings
from fedrecplus.workers import Stop, Tell, run_tasks

InWorld = dict[str, list[Sequence[Guess]]]
"""attack → what it says of one person, under each assumption about the rules"""


@dataclass(frozen=True)
class Worlds:
    """The trainings without one person each, and the attacks on them."""

    problem: Problem
    rounds: int
    watched: tuple[int, ...]
    attacks: Mapping[str, Settings]
    second: SecondData | None = None
    """what some attackers have from elsewhere"""

    def without(self, client: int, other: int) -> Transcript:
        """What the server sees where ``other``'s ratings are in the client's place, and the attacker knows the same."""
        changed = prepare(exchanged_ratings(self.problem.ratings, client, other), self.problem.config)
        uploads = changed.config.channel.VIEW == "uploads" or changed.config.shows_rows
        # of sums nothing is learned from other people's uploads, so only one person's are noted
        watching = self.watched if uploads else (client,)
        subtracts = any(Attack.choose(name).KNOWING == "everybody else" for name in self.attacks)
        found = record(changed, self.rounds, len(watching), watching=watching, subtracts=subtracts).transcript
        some = functools.partial(known_of, truth_of(self.problem, np.array([client])))
        found.knowledge = replace(found.knowledge, second=self.second, some=some)
        return found

    def said(self, pair: tuple[int, int], _: Tell, __: Stop) -> InWorld:
        """What every attack says of a client in the world where it wasn't."""
        client, other = pair
        transcript = self.without(client, other)
        return {
            name: [attack_of(name, own).attack(view, client) for view in transcript.hypotheses()]
            for name, own in self.attacks.items()
        }


def attack_of(name: str, settings: Settings | None) -> Attack[Any]:
    """An attack by its name, with these settings or, where there are none, its own."""
    chosen: Attack[Any] = Attack.choose(name)
    return chosen if settings is None else type(chosen)(settings, name)


def said_in_worlds(
    worlds: Worlds, others: Mapping[int, int], workers: int = 1, tell: Callable[[float], None] = lambda _: None
) -> dict[str, list[dict[int, Sequence[Guess]]]]:
    """Attack → for each assumption about the rules, client → what is said of it where it wasn't."""
    pairs = list(others.items())
    found: dict[str, list[dict[int, Sequence[Guess]]]] = {name: [] for name in worlds.attacks}
    for done, (index, said) in enumerate(run_tasks(worlds.said, pairs, workers), 1):
        for name, views in said.items():
            while len(found[name]) < len(views):
                found[name].append({})
            for place, guesses in enumerate(views):
                found[name][place][pairs[index][0]] = guesses
        tell(done / len(pairs))
    return found


def exchanged_ratings(ratings: Ratings, client: int, other: int) -> Ratings:
    """The ratings with a copy of another person's in one person's place."""
    places = np.concatenate(list(_places(ratings, client, other)))
    counts = np.diff(ratings.indptr)
    counts[client] = counts[other]
    return replace(
        ratings,
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        items=ratings.items[places],
        **{**ratings.said(places), "folds": None},
    )


def _places(ratings: Ratings, client: int, other: int) -> Iterator[np.ndarray[tuple[int], np.dtype[np.int64]]]:
    starts = ratings.indptr
    yield np.arange(starts[client])
    yield np.arange(starts[other], starts[other + 1])
    yield np.arange(starts[client + 1], starts[-1])
