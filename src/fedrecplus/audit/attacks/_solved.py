"""Reading uploads of a model that solves for its weights: the normal equations Σ m_i e_i x_i = ridge·(w − prior).

m_i is 1 for rows that w was fitted to, else 0. An upload shows e up to one factor s and w's direction over some
columns; given m, the equations give s and every other weight in closed form, and so the ratings. Where m isn't known,
rows that w was not fitted to may be multiples of w as they were sent, and others not; and given e and w, the equations
are linear in m, as many per upload as there are columns: least squares over several uploads names the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from fedrecplus.arrays import Array, Items
from fedrecplus.parts import OfModel

_PARALLEL = 1e-9
"""1 − cos² of two rows that are multiples of one vector, but for rounding to 32 bits"""
_FEWEST = 3
_ROUNDING = 1e-6
"""relative error of equations made of 32-bit numbers"""


def on_scale(ratings: Array, step: float) -> Array:
    """The nearest ratings of the standard scale, 1 to 5."""
    return np.clip(1.0 + step * np.rint((ratings - 1.0) / step), 1.0, 5.0)


def common_direction(A: Array) -> Array:
    """The unit vector that the rows are multiples of, up to its sign."""
    direction: Array = np.linalg.eigh(A.T @ A)[1][:, -1]
    return direction


@dataclass(frozen=True)
class Shown:
    """One upload of a model, with all that is public about it."""

    items: Items
    X: Array
    rows: Callable[[Array], Array]
    """m → A, A_i = e_i·w over the shown columns"""
    ridge_and_prior: Callable[[Array], tuple[Array, Array]]
    """m → these two, of all columns but the known ones; ridges are affine in m, and several m may be asked at once"""
    of: OfModel

    @property
    def free(self) -> Items:
        """Columns whose weights aren't known."""
        return np.setdiff1d(np.arange(self.X.shape[1]), list(self.of.known))


def used_rows(upload: Shown, hidden: bool) -> Array:
    """m: all rows or, where w is fitted to rated rows alone, those that aren't multiples of a vector that others are.

    As they were sent, rows that w was not fitted to are exact multiples of w. Where no such rows are seen, or all are,
    nothing is known and all count.
    """
    n = len(upload.items)
    if upload.of.over == "all" or not hidden:
        return np.ones(n)
    sent = upload.rows(np.zeros(n))
    sizes = np.linalg.norm(sent, axis=1)
    empty = sizes <= 1e-7 * sizes.max(initial=1e-300)
    unit = sent / np.where(empty, np.inf, sizes)[:, None]
    parallel = 1.0 - (unit @ unit.T) ** 2 < _PARALLEL
    partners = parallel.sum(axis=1)
    multiples = empty | (parallel[partners.argmax()] if partners.max() >= _FEWEST else False)
    return np.ones(n) if multiples.all() else 1.0 - multiples


def solve(upload: Shown, used: Array, step: float) -> tuple[Array, Array]:
    """w and e, given the rows that w was fitted to.

    Over the shown columns, Σ m c x = ridge (s²ŵ − s·prior). Of the few s that fit best, that which puts ratings on the
    scale: without a prior, s and −s fit alike.
    """
    A = upload.rows(used)
    direction = common_direction(A)
    c = A @ direction
    ridge, prior = upload.ridge_and_prior(used)
    free = upload.free
    seen = np.isin(free, np.arange(upload.X.shape[1])[upload.of.shown])
    pull = (used * c) @ upload.X[:, free]
    y, a, b = pull[seen], ridge[seen] * direction, ridge[seen] * prior[seen]
    # where |y − s²a + s·b|² is stationary
    roots = np.roots([4.0 * a @ a, -6.0 * a @ b, 2.0 * b @ b - 4.0 * a @ y, 2.0 * b @ y])
    lengths = roots[np.abs(roots.imag) < 1e-6 * np.abs(roots) + 1e-12].real
    best, most = (np.zeros(upload.X.shape[1]), np.full(len(c), np.nan)), -1.0
    for s in lengths[np.abs(lengths) > 1e-9]:
        w = np.zeros(upload.X.shape[1])
        w[list(upload.of.known)] = list(upload.of.known.values())
        w[free] = np.where(seen, 0.0, prior + pull / (s * ridge))
        w[free[seen]] = s * direction
        ratings = upload.X @ w + c / s
        sharpness = float(np.exp(-0.5 * ((on_scale(ratings, step) - ratings) / (0.02 * step)) ** 2).mean())
        if sharpness > most:
            best, most = (w, np.asarray(c / s)), sharpness
    return best


def memberships(uploads: Sequence[Shown], solved: Sequence[tuple[Array, Array]], share: float) -> list[Array]:
    """m by least squares: the smallest departure from "all rows alike" that explains the equations of all uploads."""
    items = np.unique(np.concatenate([one.items for one in uploads]))
    places = [np.searchsorted(items, one.items) for one in uploads]
    parts, sides = [], []
    for one, rows, (w, e) in zip(uploads, places, solved, strict=True):
        M, y = _equations(one, w[one.free], e)
        size = max(float(np.linalg.norm(M)), 1e-300)
        wide = np.zeros((len(M), len(items)))
        wide[:, rows] = M / size
        parts.append(wide)
        sides.append(y / size)
    members = nearest_solution(np.vstack(parts), np.concatenate(sides), np.full(len(items), share), _ROUNDING)
    members = np.round(members, 5)  # rows that nothing tells apart are a tie
    return [members[rows] for rows in places]


def nearest_solution(M: Array, y: Array, start: Array, ridge: float) -> Array:
    """m with M m = y, as near to a start as can be; ``ridge`` is in means of MMᵀ's diagonal."""
    gram = M @ M.T
    gram += ridge * np.trace(gram) / len(gram) * np.eye(len(gram))
    solution: Array = start + M.T @ np.linalg.solve(gram, y - M @ start)
    return solution


def _equations(one: Shown, w: Array, e: Array) -> tuple[Array, Array]:
    """M, y with M m = y: e_i x_i, less what a row adds to the ridge, against the ridge of no rows."""
    n = len(one.items)
    ridge, prior = one.ridge_and_prior(np.zeros(n))
    slopes = one.ridge_and_prior(np.eye(n))[0] - ridge
    M = e[:, None] * one.X[:, one.free] - slopes * (w - prior)
    return M.T, ridge * (w - prior)
