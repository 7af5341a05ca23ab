"""Which rows the U step used. U before and after are read from the uploads, and the step is linear in membership."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.attacks._local_steps import local_step_sizes
from fedrecplus.audit.attacks._reading import Reading, readings
from fedrecplus.audit.guess import Guess
from fedrecplus.audit.transcript import Transcript
from fedrecplus.gradients import contrasted, errors
from fedrecplus.model import prior

Array = NDArray[np.float64]
_RIDGE = 1e-3
_MOST_ROUNDS = 30


def attack(transcript: Transcript, client: int) -> tuple[Guess, ...]:
    """Of the last upload: the share that each row had in all steps of U that were seen, by least squares."""
    read = readings(transcript, client)
    pairs = [(a, b) for a, b in pairwise(read) if b.order == a.order + 1 and both_pure(a, b)]
    if not pairs:
        return ()
    last = pairs[-1][1]
    systems = [equations(transcript, a, b, last.items) for a, b in pairs[-_MOST_ROUNDS:]]
    shares = solve(np.vstack([X for X, _ in systems]), np.concatenate([y for _, y in systems]))
    return (Guess(last.round, last.items, last.nearest(transcript.step), shares),)


def both_pure(before: Reading, after: Reading) -> bool:
    """Whether neither upload is a denoising client's mixture."""
    return bool(before.pure.all() and after.pure.all())


def equations(transcript: Transcript, before: Reading, after: Reading, items: NDArray[np.int64]) -> tuple[Array, Array]:
    """(U₁ − U₀)/η + λ(U₀ − prior) = Σ_i m_i e_i V_i with m_i = 1/n for the rows that the step used, else 0.

    With contrast, which makes parts of a step larger or smaller, both gradients are made so alike. Rows that aren't in
    the later upload of the pair had no part in the step.
    """
    U_prior, _ = prior(transcript.config.model, transcript.mean)
    V = transcript.broadcast(after.round).V[after.items]
    sizes = local_step_sizes(transcript, after.round, V)
    e = errors(before.U, V, after.ratings - transcript.mean)
    pulls = contrasted(np.hstack([e[:, None] * V, e[:, None]]), sizes.contrast, sizes.factors)
    rate = sizes.rate * transcript.config.client.local_epochs
    decay = contrasted(sizes.decay_U * (before.U - U_prior), sizes.contrast, sizes.factors)
    seen = (after.U - before.U) / rate + decay
    X = np.zeros((pulls.shape[1], len(items)))
    _, here, there = np.intersect1d(items, after.items, return_indices=True)
    X[:, here] = pulls[there].T
    trained = sizes.trained.astype(bool)
    scale = max(float(np.abs(seen[trained]).max()), 1e-12)
    return X[trained] / scale, seen[trained] / scale


def solve(X: Array, y: Array) -> Array:
    """Ridge towards equal shares: the smallest departure from "all rows alike" that explains the steps."""
    equal = np.full(X.shape[1], 1.0)
    level = float((X @ equal) @ y / max(float((X @ equal) @ (X @ equal)), 1e-300))
    gram = X @ X.T
    gram += _RIDGE * np.trace(gram) / len(gram) * np.eye(len(gram))
    shares: Array = level * equal + X.T @ np.linalg.solve(gram, y - level * (X @ equal))
    return shares
