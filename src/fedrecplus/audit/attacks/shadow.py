"""Membership by shadow training: a classifier over all that the other attacks compute, taught on made-up clients.

The attacker makes clients up after the model of real uploads, runs the known client function on them and learns to tell
their rated rows from their pseudo rows, beyond what the sets of rows tell. What it then says of real clients makes
better models of them, and it starts again. After: Shokri et al. 2017; Yuan et al. 2023 (IMIA)
"""

from __future__ import annotations

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript, _logistic
from fedrecplus.audit.attacks._features import CROSSED, features_of
from fedrecplus.audit.attacks._prior import prior
from fedrecplus.audit.attacks._reading import rated_share
from fedrecplus.audit.attacks._solved import on_scale
from fedrecplus.audit.shadow_clients import Invented, ShadowTranscript
from fedrecplus.settings import Settings

_SHADOWS = 80
_TURNS = 3
_KEY = 20230914


class Shadow(Attack[Settings]):
    """The attack."""

    SEES = ("values", "lists")

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Of the client's last whole upload: the classifier's log odds that a row is rated."""
        if not transcript.config.hides_rows or not transcript.uploads(client):
            return ()
        scores = transcript.once(("shadow", transcript.assumed), lambda: _train(transcript))
        last, _ = features_of(transcript, client)
        return (Guess(last.round, last.items, last.nearest(transcript.step), scores[client]),)


def _train(transcript: Transcript) -> dict[int, Array]:
    """Log odds for every watched client, after a few turns of making clients up and learning from them."""
    before = _priors(transcript)
    scores = before
    for turn in range(_TURNS):
        shadow = ShadowTranscript(transcript, _invent(transcript, scores, turn), _KEY + turn)
        rows = [features_of(shadow, client) for client in shadow.clients]
        truth = [shadow.rated(client, row.items) for client, (row, _) in zip(shadow.clients, rows, strict=True)]
        known = np.concatenate(list(_priors(shadow).values()))
        held_out = np.concatenate([np.full(len(X), number % 3 == 0) for number, (_, X) in enumerate(rows)])
        model = _logistic.fit(np.vstack([X for _, X in rows]), np.concatenate(truth), CROSSED, known, held_out)
        scores = {c: before[c] + _logistic.log_odds(model, features_of(transcript, c)[1]) for c in transcript.clients}
    return scores


def _priors(transcript: Transcript) -> dict[int, Array]:
    """What the sets of rows alone say."""
    return {
        client: prior(transcript, client, features_of(transcript, client)[0].items) for client in transcript.clients
    }


def _invent(transcript: Transcript, scores: dict[int, Array], turn: int) -> dict[int, Invented]:
    """Clients made after real ones: they have rated what the real one has probably rated, with the ratings it shows."""
    random = np.random.default_rng([_KEY, turn])
    origins = random.choice(transcript.clients, min(_SHADOWS, len(transcript.clients)), replace=False)
    invented = {}
    for number, origin in enumerate(origins.tolist()):
        reading, _ = features_of(transcript, origin)
        n = len(reading.items)
        rated = max(2, round(rated_share(transcript) * n))
        luck = random.logistic(size=n)
        chosen = np.sort(np.argsort(-(scores[origin] + luck))[:rated])
        items, ratings = reading.items[chosen], reading.nearest(transcript.step)[chosen]
        usual = on_scale(transcript.public.averages()[items], transcript.step)  # where nothing was read
        invented[-1 - number] = Invented(origin, items, np.where(np.isfinite(ratings), ratings, usual))
    return invented
