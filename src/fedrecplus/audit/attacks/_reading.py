"""Reading an upload: after one local step every row is a multiple of one vector, and ratings lie on a scale.

The model says what its rows show (``parts.assumptions.OfModel``): A_i = e_i·w over the shown columns of X. The
direction ŵ is the rows' common direction; with c_i = A_i·ŵ, one number s = |w| is left. Where w is stepped,
r_i = c_i/s + s·(ŵ·V_i) must land on the scale; ``_solved`` has the models that solve for w. Of a model that says
nothing the common direction is read all the same: residuals up to one factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks._solved import Shown, common_direction, memberships, on_scale, solve, used_rows
from fedrecplus.audit.transcript import Sent, Transcript
from fedrecplus.errors import UserError
from fedrecplus.parts import OfModel
from fedrecplus.parts.model.mf import Mf

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
    items: Items
    w: Array
    """the user's weights of X as they were when the rows were made; empty where the model says nothing of them"""
    errors: Array
    """e: rating less prediction"""
    ratings: Array
    """as they come out, not put on the scale; nan where they are unread"""
    pure: NDArray[np.bool_]
    """rows of this client alone; in a denoising client's upload others are mixtures, and unread"""
    counts: NDArray[np.int64] | None
    members: Array | None = None
    """how likely each row was among those that w was fitted to, or is rated; None where nothing is known of that"""

    def nearest(self, step: float) -> Array:
        """The rating of the scale nearest to each row's; nan where it is unread."""
        return on_scale(self.ratings, step)


def of_model(transcript: Transcript) -> OfModel | None:
    """What the model says of its uploads, if it says anything."""
    return transcript.config.model.attacker()


def stepping_model(transcript: Transcript) -> Mf:
    """The model, where it says that steps fit its weights."""
    model = transcript.config.model
    if not isinstance(model, Mf):
        raise UserError("the model says that steps fit its weights, and not which", "derive its class from Mf")
    return model


def rated_share(transcript: Transcript) -> float:
    """Rated rows per row of an upload, as far as the config tells."""
    return 1.0 / (1.0 + transcript.config.pseudo_items.ratio) if transcript.config.hides_rows else 1.0


def in_rows_of(items: Items, others: Items, values: Array) -> Array:
    """Values of other rows in the order of these items' rows; nan where a row is missing there."""
    found = np.full(len(items), np.nan)
    _, here, there = np.intersect1d(items, others, return_indices=True)
    found[here] = values[there]
    return found


def readings(transcript: Transcript, client: int) -> tuple[Reading, ...]:
    """All of a client's uploads, read one by one."""
    return tuple(reading(transcript, sent) for sent in transcript.uploads(client))


def reading(transcript: Transcript, sent: Sent) -> Reading:
    """One upload, read once however many attacks ask."""
    return transcript.once(("reading", sent.upload.client, sent.round), lambda: together(transcript, (sent,))[0])


def together(transcript: Transcript, sent: tuple[Sent, ...]) -> tuple[Reading, ...]:
    """Several uploads of one client; where w is solved for, they say together which rows it was fitted to."""
    of = of_model(transcript)
    usable = all(_legible(one) for one in sent)
    if of is None or of.fitted == "by steps" or not usable:
        return tuple(_alone(transcript, one, of) for one in sent)
    shown, share = [_shown(transcript, one, of) for one in sent], rated_share(transcript)
    used = [used_rows(rows, share < 1.0) for rows in shown]
    solved = [solve(rows, m, transcript.step) for rows, m in zip(shown, used, strict=True)]
    seen = all(m.min() < m.max() for m in used)  # else the equations may tell them
    members = used if seen else memberships(shown, solved, share)
    return tuple(
        _reading(one, rows.X, w, e, m) for one, rows, (w, e), m in zip(sent, shown, solved, members, strict=True)
    )


def _shown(transcript: Transcript, sent: Sent, of: OfModel) -> Shown:
    """The rows of an upload as the model shows them."""
    pure, model, message = _pure(sent), transcript.config.model, transcript.broadcast(sent.round)
    items, X = sent.upload.items[pure], transcript.solved_columns(sent.round)[sent.upload.items[pure]]
    delta, columns = sent.upload.delta[pure] / (sent.upload.weight or 1.0), X.shape[1] - len(of.known)
    return Shown(
        items,
        X,
        lambda used: model.gradient_rows(delta, items, used, message),
        lambda used: model.ridge_and_prior(columns, items, used, transcript.public),
        of,
    )


def _alone(transcript: Transcript, sent: Sent, of: OfModel | None) -> Reading:
    pure = _pure(sent)
    if not _legible(sent):
        return _reading(sent, np.zeros((int(pure.sum()), 0)), np.zeros(0), np.full(int(pure.sum()), np.nan))
    if of is None:
        A = sent.upload.delta[pure]
        rated = transcript.config.model.shown_rated(A)
        members = None if rated is None else rated.astype(np.float64)
        return _reading(sent, np.zeros((len(A), 0)), np.zeros(0), A @ common_direction(A), members)
    shown, model = _shown(transcript, sent, of), stepping_model(transcript)
    rate, epochs = model.local_rate(sent.round), model.local_epochs
    w, e = _scanned(shown, of, transcript.step, lambda squared: fading(squared, rate, epochs))
    return _reading(sent, shown.X, w, e)


def _legible(sent: Sent) -> bool:
    """Whether there is a row of this client alone with finite values, and values are shown at all."""
    return bool(_pure(sent).any() and np.isfinite(sent.upload.delta).all() and sent.upload.delta.shape[1])


def _pure(sent: Sent) -> NDArray[np.bool_]:
    counts = sent.upload.counts
    return np.ones(len(sent.upload.items), dtype=bool) if counts is None else counts == 1


def _reading(sent: Sent, X: Array, w: Array, e: Array, m: Array | None = None) -> Reading:
    pure, items = _pure(sent), sent.upload.items
    errors, ratings = np.full(len(items), np.nan), np.full(len(items), np.nan)
    members = None if m is None else np.full(len(items), m.mean())
    if members is not None:
        members[pure] = m
    errors[pure] = e
    if len(w):
        ratings[pure] = X @ w + e
    return Reading(sent.round, sent.order, items, w, errors, ratings, pure, sent.upload.counts, members)


def fading(squared_length: Array, rate: float, epochs: int) -> Array:
    """Mean over K epochs of how much is left of an error that each epoch shrinks by 1 − η_L|U|²."""
    keep = np.clip(1.0 - rate * squared_length, -0.9, 1.0)
    total: Array = np.mean([keep**k for k in range(epochs)], axis=0)
    return np.maximum(total, 1e-3)


def _scanned(shown: Shown, of: OfModel, step: float, fade: Callable[[Array], Array]) -> tuple[Array, Array]:
    """w and e by the rating scale, one number being unknown: the length of w or, where that shows, a hidden weight."""
    w, columns, A = np.zeros(shown.X.shape[1]), np.arange(shown.X.shape[1]), shown.rows(np.ones(len(shown.items)))
    w[list(of.known)] = list(of.known.values())
    seen = columns[of.shown]
    sure = [column for column in of.known if column in seen]
    if sure:  # an item bias shows e outright; what is left is the user's own bias
        e = A[:, list(seen).index(sure[0])] / of.known[sure[0]]
        others = [number for number, column in enumerate(seen) if column not in of.known]
        w[seen[others]] = A[:, others].T @ e / max(float(e @ e), 1e-300)
        e = e / fade(np.array(w[seen] @ w[seen]))
        hidden = [column for column in columns if column not in seen and column not in of.known][:1]
        if hidden:
            base, column = shown.X @ w + e, shown.X[:, hidden[0]]
            grid = np.arange(-2.0, 2.0, 0.25 * _COARSE * step)
            # the true bias is near zero; among those that differ by whole steps, the scale's ends and its size decide
            w[hidden] = _best(grid, lambda b: base + np.multiply.outer(b, column), step, small=_SMALL * len(e))
        return w, e
    direction = common_direction(A)
    base, c, v = shown.X @ w, A @ direction, shown.X[:, seen] @ direction

    def ratings_at(s: Array) -> Array:
        return np.asarray(base + np.divide.outer(c, s * fade(s**2)).T + np.multiply.outer(s, v))

    s = _best(_candidates(ratings_at, step), ratings_at, step)
    w[seen] = s * direction
    return w, np.asarray(c / (s * fade(np.array(s**2))))


def _candidates(ratings_at: Callable[[Array], Array], step: float) -> Array:
    """Lengths of w, of either sign, for which the mean rating is plausible, close enough to each other for a scan."""
    s = np.exp(np.arange(np.log(_SMALLEST), np.log(_LARGEST), 0.25 * _COARSE * step))
    s = np.concatenate([s, -s])
    middle = ratings_at(s).mean(axis=1)
    plausible: Array = s[(middle > _RANGE[0]) & (middle < _RANGE[1])]
    return plausible if len(plausible) else np.asarray(s[np.abs(middle - 3.5).argsort()[:50]])


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

    Where all virtual ratings are one and the same, a wrong length of w can put them on the scale instead of the real
    ones: but on a single level.
    """
    levels = round(4.0 / step) + 1
    level = np.clip(np.rint((ratings - 1.0) / step), 0, levels - 1)
    soft = np.exp(-0.5 * ((ratings - 1.0 - step * level) / (width * step)) ** 2)
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
