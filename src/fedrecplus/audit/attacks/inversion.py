"""Several local epochs hide the rank-one structure, not the ratings: least squares through the known training.

``_unrolled`` has the derivative of gradient steps. A model that solves for its weights is read from all its equations
(``_solved``). Of a model that says nothing, its own training is run with guessed ratings and differenced numerically.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from fedrecplus.arrays import Array
from fedrecplus.audit.attacks import Attack, Guess, Transcript
from fedrecplus.audit.attacks._evidence import evidence
from fedrecplus.audit.attacks._reading import Reading, of_model, readings, stepping_model
from fedrecplus.audit.attacks._unrolled import Known, improve
from fedrecplus.audit.attacks.u_step import all_uploads
from fedrecplus.audit.shadow_clients import trained_rows
from fedrecplus.audit.transcript import Sent
from fedrecplus.settings import Settings

_STEPS = 25
_ROUNDS = 4
"""uploads of a client that are inverted: it takes longer than the other attacks"""
_CONVERGED = 1e-4
_MOST_ROWS = 300
"""of an upload that is differenced numerically: the time grows with the cube"""
_NUMERICAL_STEPS = 30


class Inversion(Attack[Settings]):
    """The attack."""

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        """Some uploads, spread over the rounds: ratings and weights whose local training gives what was sent."""
        return tuple(
            Guess(found.round, found.items, found.nearest(transcript.step), evidence(transcript, found))
            for found in transcript.once(("inversions", client), lambda: _inversions(transcript, client))
        )


def _inversions(transcript: Transcript, client: int) -> tuple[Reading, ...]:
    of, sent = of_model(transcript), transcript.uploads(client)
    whole = [number for number, one in enumerate(sent) if one.upload.counts is None]
    if not whole:
        return ()
    chosen = [whole[place] for place in np.unique(np.linspace(0, len(whole) - 1, _ROUNDS).round().astype(int))]
    if of is not None and of.fitted == "exactly":
        read = all_uploads(transcript, client)
        return tuple(one for one in read if one.round in {sent[number].round for number in chosen})
    read = readings(transcript, client)
    if of is None:
        return tuple(_differenced(transcript, sent[number], read[number]) for number in chosen[-1:])
    return tuple(_unrolled(transcript, sent[number], read[number]) for number in chosen)


def _unrolled(transcript: Transcript, sent: Sent, reading: Reading) -> Reading:
    """One upload, from the reading of it as if there had been one epoch, and from a constant start; the better fit."""
    model = stepping_model(transcript)
    if model.local_epochs == 1:
        return reading  # one epoch leaves the length of U open, and the reading has found it by the scale
    V = transcript.broadcast(sent.round).V[sent.upload.items]
    every = transcript.columns(sent.round)
    X = every[sent.upload.items]
    rate, decay = model.local_rate(sent.round), model.settings.regularisation
    known = Known(V, rate, decay, model.local_epochs, model.trained_columns())
    seen = V + sent.upload.delta / (sent.upload.weight or 1.0)
    mean = model.global_mean(transcript.public)
    targets, path, left = improve(known, seen, reading.w, reading.ratings - mean, _STEPS)
    if left > _CONVERGED:
        middling = np.full(len(X), 3.5)
        U = model.fold_in(every, sent.upload.items, middling, transcript.public)
        again = improve(known, seen, U, middling - mean, _STEPS)
        targets, path, left = min((targets, path, left), again, key=lambda found: found[2])
    w, ratings = path.U[-1], targets + mean
    return replace(reading, w=w, ratings=ratings, errors=ratings - X @ w)


def _differenced(transcript: Transcript, sent: Sent, reading: Reading) -> Reading:
    """One upload of a model that says nothing of itself: ratings and what the device keeps, numerically."""
    model, items = transcript.config.model, sent.upload.items
    if len(items) > _MOST_ROWS:
        return reading
    U = model.start_users(0, np.array([0]), transcript.public)[0]
    seen = sent.upload.delta / (sent.upload.weight or 1.0)
    size = max(float(np.sqrt((seen**2).mean())), 1e-300)

    def off(unknown: Array) -> Array:
        delta = trained_rows(transcript, sent.round, items, unknown[len(U) :], unknown[: len(U)])
        return np.asarray(((delta - seen) / size).ravel())

    start = np.append(U, np.full(len(items), transcript.public.mean))
    ratings = least_squares(off, start, method="trf", max_nfev=_NUMERICAL_STEPS).x[len(U) :]
    return replace(reading, ratings=ratings)
