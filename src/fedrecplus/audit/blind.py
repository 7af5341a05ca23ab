"""Randomised observations: an attack that says the same of noise has read nothing, and its figure says nothing.

What an attack can look at is replaced, and nothing else: numbers of sums and uploads by each other, drawn by lot, lists
by another person's list, public statistics by those of other items. What the attacker knows besides stays.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from scipy.stats import rankdata

from fedrecplus.audit.attacks import Guess
from fedrecplus.audit.contributions import as_sent
from fedrecplus.audit.transcript import Sent, Transcript
from fedrecplus.protocol import PublicItems, Sums

T = TypeVar("T")
Said = Mapping[int, Sequence[Guess]]
CLIENTS = 20
"""so many of the watched are asked about again: the dear attacks learn from all of them"""
_SEED = 20261117


def randomised(transcript: Transcript, sees: Collection[str]) -> Transcript:
    """The transcript of a server that was told noise of the same scale, wherever this attack looks."""
    random, view = np.random.default_rng(_SEED), copy.copy(transcript)
    view._kept, view.watched = {}, transcript.clients[:CLIENTS]
    view.sent = {client: transcript.sent[client] for client in view.watched if client in transcript.sent}
    if not {"values", "lists"}.isdisjoint(sees):
        view.sent = {c: [_noise_of(random, c, one) for one in sent] for c, sent in _passed_on(view.sent)}
        view.crowd = dict(_passed_on(transcript.crowd))
        view.crowd_sent = {c: _noise_of(random, c, one) for c, one in _passed_on(transcript.crowd_sent)}
        view.models = [dict(_passed_on(sets)) for sets in transcript.models]
    if "sums" in sees:
        view.sums = {t: as_sent(s, _noise_of_sums(random, s), transcript.config) for t, s in transcript.sums.items()}
    if "statistics" in sees:
        view.public = _other_items(random, transcript.public)
    return view


def unmoved(said: Said, of_noise: Said) -> list[str]:
    """Of ``rows`` and ``ratings``, what the attack has an opinion on that is the same of noise."""
    found = []
    for name, opinion, alike in (("rows", _tells_rows, _same_order), ("ratings", _tells_ratings, _same_ratings)):
        pairs = [(said[client], of_noise[client]) for client in of_noise]
        speaks = any(opinion(guess) for guesses, _ in pairs for guess in guesses)
        if speaks and all(len(a) == len(b) and all(map(alike, a, b)) for a, b in pairs):
            found.append(name)
    return found


def _tells_rows(guess: Guess) -> bool:
    return bool(len(guess.rated) and np.ptp(guess.rated) > 0.0)


def _tells_ratings(guess: Guess) -> bool:
    return bool(np.isfinite(guess.ratings).any())


def _same_order(a: Guess, b: Guess) -> bool:
    """Whether rows stand in the same order: an area knows nothing else."""
    return np.array_equal(a.items, b.items) and np.array_equal(rankdata(a.rated), rankdata(b.rated))


def _same_ratings(a: Guess, b: Guess) -> bool:
    return np.array_equal(a.items, b.items) and np.array_equal(a.ratings, b.ratings, equal_nan=True)


def _passed_on(things: Mapping[int, T]) -> list[tuple[int, T]]:
    """Each client's thing, from the next client."""
    values = list(things.values())
    return list(zip(things, [*values[1:], *values[:1]], strict=True))


def _noise_of(random: np.random.Generator, client: int, sent: Sent) -> Sent:
    upload = replace(sent.upload, client=client)
    delta = random.permutation(upload.delta.ravel()).reshape(upload.delta.shape)
    return replace(sent, upload=replace(upload, delta=delta, statistic=random.permutation(upload.statistic)))


def _noise_of_sums(random: np.random.Generator, sums: Sums) -> Sums:
    return replace(
        sums,
        total=random.permutation(sums.total.ravel()).reshape(sums.total.shape),
        weights=random.permutation(sums.weights),
        overall=sums.overall * random.uniform(0.5, 1.5),
        statistic=random.permutation(sums.statistic),
    )


def _other_items(random: np.random.Generator, public: PublicItems) -> PublicItems:
    order = random.permutation(len(public.popularity))
    return replace(
        public,
        popularity=public.popularity[order],
        average=public.average[order] if len(public.average) else public.average,
    )
