"""Reading one upload: after a single local step every row is a multiple of one vector, and ratings lie on a scale.

With K = 1, A_i = Δ_i/η_L + λ(V_i − prior) = e_i·U. The direction û of U is the rows' common direction; with
c_i = A_i·û, one number s = |U| is left, and r_i = c_i/s + s·(û·V_i) must land on the scale. In a model with biases the
rows' last column is e_i itself, and the user's bias is the one number left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.transcript import Sent, Transcript
from fedrecplus.gradients import step_sizes
from fedrecplus.model import Shape, predict, prior

Array = NDArray[np.float64]
LOW, HIGH = 1.0, 5.0
"""ends of the standard scale"""
_SMALLEST, _LARGEST = 1e-3, 30.0
_RANGE = (1.2, 4.95)
"""plausible mean ratings of an upload, on the standard scale"""
_COARSE = 0.04
"""width of a hit in the scan, in steps of the scale"""
_FINE = 0.002
"""width of a hit once the unknown is exact"""
_REFINED = 8
_DISCOUNT = 0.7
_SMALL = 0.02


@dataclass(frozen=True)
class Reading:
    """What one upload says, row by row."""

    round: int
    order: int
    items: NDArray[np.int64]
    U: Array
    """the user's factors as they were when the rows were made"""
    errors: Array
    """e: rating less prediction"""
    ratings: Array
    """as they come out, not put on the scale"""
    pure: NDArray[np.bool_]
    """rows of this client alone; in a denoising client's upload others are mixtures, and unread"""
    counts: NDArray[np.int64] | None

    def nearest(self, step: float) -> Array:
        """The rating of the scale nearest to each row's; nan where it is unread."""
        return on_scale(self.ratings, step)


def on_scale(ratings: Array, step: float) -> Array:
    """The nearest ratings of the scale."""
    return np.clip(LOW + step * np.rint((ratings - LOW) / step), LOW, HIGH)


def readings(transcript: Transcript, client: int) -> tuple[Reading, ...]:
    """All of a client's uploads, read one by one."""
    return tuple(reading(transcript, sent) for sent in transcript.uploads(client))


def reading(transcript: Transcript, sent: Sent) -> Reading:
    """One upload, read once however many attacks ask."""
    return transcript.once(("reading", sent.upload.client, sent.round), lambda: read(transcript, sent))


def direct(transcript: Transcript, sent: Sent, rows: NDArray[np.bool_]) -> Array:
    """A = Δ/(K η_L) + λ(V − prior): for K = 1 it is e_i·U, row by row; for more epochs their mean."""
    settings, upload = transcript.config, sent.upload
    sizes = step_sizes(settings, sent.round)
    _, V_prior = prior(settings.model, transcript.mean)
    V = transcript.broadcast(sent.round).V[upload.items[rows]]
    delta = upload.delta[rows] / (upload.weight or 1.0)
    A: Array = delta / (settings.client.local_epochs * sizes.rate) + sizes.decay_V * (V - V_prior)
    return A


def read(transcript: Transcript, sent: Sent) -> Reading:
    """Read one upload by itself."""
    items, counts = sent.upload.items, sent.upload.counts
    pure = np.ones(len(items), dtype=bool) if counts is None else counts == 1
    errors = np.full(len(items), np.nan)
    ratings = np.full(len(items), np.nan)
    shape = Shape.of(transcript.config.model)
    U = np.zeros(shape.u_columns)
    if pure.any() and np.isfinite(sent.upload.delta).all():
        A = direct(transcript, sent, pure)
        V = transcript.broadcast(sent.round).V[items[pure]]
        rate = step_sizes(transcript.config, sent.round).rate
        epochs = transcript.config.client.local_epochs
        solve = _with_biases if shape.biases else _without_biases
        U, errors[pure] = solve(A, V, transcript.mean, transcript.step, rate, epochs)
        ratings[pure] = predict(U, V, transcript.mean) + errors[pure]
    return Reading(sent.round, sent.order, items, U, errors, ratings, pure, counts)


def common_direction(A: Array) -> Array:
    """The unit vector that the rows are multiples of, up to its sign."""
    direction: Array = np.linalg.eigh(A.T @ A)[1][:, -1]
    return direction


def fading(squared_length: Array, rate: float, epochs: int) -> Array:
    """Mean over K epochs of how much is left of an error that each epoch shrinks by 1 − η_L|U|²."""
    keep = np.clip(1.0 - rate * squared_length, -0.9, 1.0)
    total: Array = np.mean([keep**k for k in range(epochs)], axis=0)
    return np.maximum(total, 1e-3)


def _without_biases(A: Array, V: Array, mean: float, step: float, rate: float, epochs: int) -> tuple[Array, Array]:
    direction = common_direction(A)
    c, v = A @ direction, V @ direction

    def ratings_at(s: Array) -> Array:
        seen = s * fading(s**2, rate, epochs)
        return mean + np.divide.outer(c, seen).T + np.multiply.outer(s, v)

    s = _best(_candidates(c.mean(), v.mean(), mean, step, rate, epochs), ratings_at, step)
    errors = c / (s * fading(np.array(s**2), rate, epochs))
    return np.append(s * direction, 0.0), errors


def _candidates(c: float, v: float, mean: float, step: float, rate: float, epochs: int) -> Array:
    """Lengths of U, of either sign, for which the mean rating is plausible, close enough to each other for a scan."""
    finest = 0.25 * _COARSE * step
    s = np.exp(np.arange(np.log(_SMALLEST), np.log(_LARGEST), finest))
    s = np.concatenate([s, -s])
    middle = mean + c / (s * fading(s**2, rate, epochs)) + s * v
    plausible = s[(middle > _RANGE[0]) & (middle < _RANGE[1])]
    return plausible if len(plausible) else s[np.abs(middle - 3.5).argsort()[:50]]


def _best(candidates: Array, ratings_at: Callable[[Array], Array], step: float, small: float = 0.0) -> float:
    """The candidate whose ratings lie on the scale, or nearest to it: a scan, then the best few made exact.

    ``small``: hits that a candidate loses for its size, where several differ by whole steps of the scale.
    """
    hits = _hits(ratings_at(candidates), _COARSE, step) - small * np.abs(candidates)
    best = candidates[np.argsort(-hits, kind="stable")[:_REFINED]]
    both = np.concatenate([_refine(best, ratings_at, step), best])
    # a sharp fit outweighs a blurred one; where nothing is sharp (K > 1) the blurred one decides
    ratings = ratings_at(both)
    fits = _hits(ratings, _FINE, step) + _hits(ratings, _COARSE, step) - small * np.abs(both)
    return float(both[fits.argmax()])


def _hits(ratings: Array, width: float, step: float) -> Array:
    """How many ratings of each row lie on the scale, softly; those on the row's most frequent level count for less.

    Where all virtual ratings are one and the same, a wrong length of U can put them on the scale instead of the real
    ones: but on a single level.
    """
    levels = round((HIGH - LOW) / step) + 1
    level = np.clip(np.rint((ratings - LOW) / step), 0, levels - 1)
    soft = np.exp(-0.5 * ((ratings - LOW - step * level) / (width * step)) ** 2)
    cells = (level + levels * np.arange(len(ratings))[:, None]).astype(np.int64)
    on_level = np.bincount(cells.ravel(), soft.ravel(), levels * len(ratings)).reshape(-1, levels)
    total: Array = on_level.sum(axis=1) - _DISCOUNT * on_level.max(axis=1)
    return total


def _refine(starts: Array, ratings_at: Callable[[Array], Array], step: float) -> Array:
    """Gauss–Newton on the one unknown, from each start, over the rows that already lie near the scale."""
    x = starts
    for width in (4.0 * _COARSE, 2.0 * _COARSE, _COARSE, _FINE, _FINE):
        delta = 1e-6 * np.maximum(np.abs(x), 1e-3)
        now = ratings_at(x)
        slope = (ratings_at(x + delta) - now) / delta[:, None]
        off = on_scale(now, step) - now
        weight = np.exp(-0.5 * (off / (width * step)) ** 2)
        x = x + (weight * slope * off).sum(axis=1) / np.maximum((weight * slope**2).sum(axis=1), 1e-12)
    return np.where((np.sign(x) == np.sign(starts)) & (np.abs(x) > 1e-6), x, starts)


def _with_biases(A: Array, V: Array, mean: float, step: float, rate: float, epochs: int) -> tuple[Array, Array]:
    """The last column of A is e; the rest over e is U; the user's bias is found by its fraction, then its size."""
    e = A[:, -1]
    factors = A[:, :-1].T @ e / max(float(e @ e), 1e-300)
    e = e / fading(np.array(1.0 + factors @ factors), rate, epochs)
    known = mean + V @ np.append(factors, 1.0) + e
    grid = np.arange(-2.0, 2.0, 0.25 * _COARSE * step)
    # the true bias is near zero; among those that differ by whole steps, the scale's ends and its size decide
    bias = _best(grid, lambda b: known + b[:, None], step, small=_SMALL * len(e))
    return np.concatenate([factors, [1.0, bias]]), e
