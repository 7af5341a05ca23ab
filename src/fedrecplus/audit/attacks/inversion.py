"""Several local epochs hide the rank-one structure, not the ratings: least squares through the known training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.attacks._evidence import evidence
from fedrecplus.audit.attacks._local_steps import local_step_sizes
from fedrecplus.audit.attacks._reading import Reading, readings
from fedrecplus.audit.attacks._unrolled import Known, improve
from fedrecplus.audit.guess import Guess
from fedrecplus.audit.transcript import Sent, Transcript
from fedrecplus.model import Shape, predict, prior

Array = NDArray[np.float64]
_STEPS = 25
_ROUNDS = 4
"""uploads of a client that are inverted: it takes longer than the other attacks"""


def attack(transcript: Transcript, client: int) -> tuple[Guess, ...]:
    """Some uploads, spread over the rounds, each by itself: ratings and U whose local training gives what was sent."""
    return tuple(
        Guess(found.round, found.items, found.nearest(transcript.step), evidence(transcript, found))
        for found in inversions(transcript, client)
    )


def inversions(transcript: Transcript, client: int) -> tuple[Reading, ...]:
    """Readings of some uploads that hold for any number of local epochs."""
    return transcript.once(("inversions", client), lambda: _inversions(transcript, client))


def _inversions(transcript: Transcript, client: int) -> tuple[Reading, ...]:
    whole = [
        (sent, reading)
        for sent, reading in zip(transcript.uploads(client), readings(transcript, client), strict=True)
        if sent.upload.counts is None
    ]
    if not whole:
        return ()
    chosen = np.unique(np.linspace(0, len(whole) - 1, _ROUNDS).round().astype(int))
    return tuple(invert(transcript, *whole[place]) for place in chosen)


def invert(transcript: Transcript, sent: Sent, reading: Reading) -> Reading:
    """One upload, from the reading of it as if there had been one epoch, and from a constant start; the better fit."""
    known, seen = _known(transcript, sent)
    if known.epochs == 1:
        return reading  # one epoch leaves the length of U open, and the reading has found it by the scale
    targets, path, left = improve(known, seen, reading.U, reading.ratings - transcript.mean, _STEPS)
    if left > _CONVERGED:
        again = improve(known, seen, *_constant(transcript, known), _STEPS)
        targets, path, left = min((targets, path, left), again, key=lambda found: found[2])
    ratings = targets + transcript.mean
    errors = ratings - predict(path.U[-1], known.V, transcript.mean)
    return replace(reading, U=path.U[-1], ratings=ratings, errors=errors)


_CONVERGED = 1e-4


def _known(transcript: Transcript, sent: Sent) -> tuple[Known, Array]:
    config = transcript.config
    U_prior, V_prior = prior(config.model, transcript.mean)
    V = transcript.broadcast(sent.round).V[sent.upload.items]
    sizes = local_step_sizes(transcript, sent.round, V)
    known = Known(V, V_prior, U_prior, sizes, config.client.local_epochs)
    return known, V + sent.upload.delta / (sent.upload.weight or 1.0)


def _constant(transcript: Transcript, known: Known) -> tuple[Array, Array]:
    """The U that predicts the middle of the scale best, and middling ratings."""
    shape = Shape.of(transcript.config.model)
    targets = np.full(len(known.V), 3.5 - transcript.mean)
    X = known.V[:, : shape.factors]
    U = np.zeros(shape.u_columns)
    U[: shape.factors] = np.linalg.solve(X.T @ X + 0.1 * len(X) * np.eye(shape.factors), X.T @ targets)
    if shape.biases:
        U[shape.factors] = 1.0
    return U, targets
