"""An attacker who knows the ratings of everybody else: takes their part off a sum, or learns from their uploads.

Under sums, one upload is left: no exact sum withstands that, however it was computed, and noise does. Where lists of
rows are seen, the others' uploads and ratings teach a classifier. An assumption about the attacker, not a finding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._from_sums import read_single
from fedrecplus.audit.attacks._reading import in_rows_of
from fedrecplus.audit.attacks._taught import People, RowsOfClient, TaughtSettings, rows_of, teach
from fedrecplus.audit.transcript import Others
from fedrecplus.protocol import Sums

_ROUNDS = 8
"""in which a client is singled out of sums, at most"""
_PARTS = 4
"""the watched clients are attacked in so many parts, each by what the other parts teach"""


class KnowsOthers(Attack[TaughtSettings]):
    """The attack."""

    SEES = ("values", "lists", "sums")
    KNOWING = "everybody else"

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of sums, some rounds together; of uploads, or lists of their rows, the last."""
        others = transcript.knowledge.others
        if others is None:
            return ()
        singled = _singled_out(transcript, client, others)
        if not transcript.config.hides_rows or not transcript.uploads(client):
            return singled
        key = ("known others", transcript.assumed, self.settings.learner, self.settings.teachers)
        found = transcript.once(key, lambda: _taught(transcript, others, self.settings))
        last, scores = found[client][0].reading, found[client][1]
        ratings = last.nearest(transcript.step)
        for guess in singled:  # values are in the sums, where uploads show none
            shown = in_rows_of(last.items, guess.items, guess.ratings)
            ratings = np.where(np.isfinite(shown), shown, ratings)
        return (Guess(last.round, last.items, ratings, scores),)


def _singled_out(transcript: Transcript, client: int, others: Others) -> tuple[Guess, ...]:
    """What is left of the sums when everybody else's part is taken off."""
    sums = transcript.sums
    rounds = [t for t, cohort in transcript.cohorts.items() if client in cohort and t in sums]
    chosen = (
        [rounds[place] for place in np.unique(np.linspace(0, len(rounds) - 1, _ROUNDS).astype(int))] if rounds else []
    )
    said = [read_single(transcript, client, t, less(sums[t], others.rest(client, t))) for t in chosen]
    if not said:
        return ()
    # rounding and noise are drawn anew in every round, and what was rated stays
    best = max(said, key=lambda guess: int(np.isfinite(guess.ratings).sum()))
    return (replace(best, rated=np.mean([guess.rated for guess in said], axis=0)),)


def less(sums: Sums, rest: Sums) -> Sums:
    """What is left of sums."""
    return replace(
        sums,
        total=sums.total - rest.total,
        weights=sums.weights - rest.weights,
        overall=sums.overall - rest.overall,
        clients=sums.clients - rest.clients,
    )


Told = dict[int, tuple[RowsOfClient, Array]]
"""a client's rows, and their log odds"""


def _taught(transcript: Transcript, others: Others, settings: TaughtSettings) -> Told:
    """By the uploads and ratings of people who aren't attacked, where many are to teach; else by the attacked.

    Of the attacked, each part by the other parts: what is learned about a client never comes from itself.
    """
    clients = [client for client in transcript.clients if transcript.uploads(client)]
    rest = [client for client in transcript.crowd_sent if client not in clients]
    if settings.teachers > len(clients) and len(rest) >= len(clients):
        noted = _noted(transcript)
        asked = [client for client in clients if client in noted.sent]
        return _told(noted, others, rest[: settings.teachers], asked, settings.learner)
    found: Told = {}
    for number in range(min(_PARTS, len(clients))):
        asked = clients[number::_PARTS]
        known = [client for client in clients if client not in asked][: settings.teachers]
        if known:
            found |= _told(transcript, others, known, asked, settings.learner)
    return found


def _noted(transcript: Transcript) -> Transcript:
    """The one upload that was noted of everybody, as if it were all there is."""
    view = replace(transcript, sent={client: [sent] for client, sent in transcript.crowd_sent.items()}, watched=())
    view.assumed = transcript.assumed
    return view


def _told(transcript: Transcript, others: Others, known: list[int], asked: list[int], learner: str) -> Told:
    teachers, pupils = (
        People(transcript, [rows_of(transcript, one) for one in some], others.sets) for some in (known, asked)
    )
    truth = [others.sets.has(one.client, one.reading.items) for one in teachers.rows]
    scores = teach(teachers, truth, pupils, learner)
    return dict(zip(asked, zip(pupils.rows, scores, strict=True), strict=True))
