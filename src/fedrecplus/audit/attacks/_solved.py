"""Reading uploads of a model that solves for its weights: the normal equations Σ m_i e_i x_i = ridge·w tie it all.

m_i is 1 for rows that w was fitted to, else 0. An upload shows e up to one factor and w's direction over some columns.
Where all rows were used, the equations give the factor and every other weight in closed form, and so the ratings.
Where only the rated ones were, they are linear in m, as many per upload as there are columns: least squares over one or
more uploads names the rows. The part of them that is orthogonal to w needs no factor; once the ratings have been put on
the scale, all of them are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.assumptions import OfModel

Array = NDArray[np.float64]
Ridge = Callable[[float], float]
"""L2 regularisation of w by the number of rows it is fitted to: a constant and a multiple"""
Solution = tuple[Array, Array]
"""w, e"""
_TURNS = 2
_SHARP = 0.95
"""share of ratings on the scale from which a reading counts as right"""
_WIDTHS = ((0.5, 1.0), (0.3, 0.3), (0.2, 0.1), (0.1, 0.03), (0.05, 0.01), (0.02, 1e-3), (0.005, 1e-4))
"""widths of a hit in steps of the scale, and how far the start is trusted: ever less"""
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
    """The rows of one upload: A_i = e_i·w over the shown columns of X."""

    items: NDArray[np.int64]
    A: Array
    X: Array
    direction: Array
    """of w over the shown columns, up to its sign"""
    c: Array
    """e times the length of that"""
    free: NDArray[np.int64]
    """columns whose weights aren't known, the shown ones last"""

    @classmethod
    def of(cls, items: NDArray[np.int64], A: Array, X: Array, of: OfModel) -> Shown:
        """An upload's rows."""
        direction = common_direction(A)
        seen = np.arange(X.shape[1])[of.shown]
        hidden = np.setdiff1d(np.arange(X.shape[1]), [*seen, *of.known])
        return cls(items, A, X, direction, A @ direction, np.concatenate([hidden, seen]))


def read_together(
    uploads: Sequence[Shown], of: OfModel, ridge: Ridge, share: float, step: float
) -> tuple[list[Solution], list[Array]]:
    """w and e of each upload, and how likely each of its rows was among those that w was fitted to."""
    items = np.unique(np.concatenate([one.items for one in uploads]))
    places = [np.searchsorted(items, one.items) for one in uploads]
    solved: list[Solution | None] = [None] * len(uploads)
    members = _members(uploads, solved, items, ridge, share)
    found: list[Solution] = []
    everything = of.over == "all" or share == 1.0
    for _ in range(1 if everything else _TURNS):
        used = np.ones(len(items)) if everything else np.clip(members, 0.0, 1.0)
        read = [_read(one, used[rows], of, ridge, step, everything) for one, rows in zip(uploads, places, strict=True)]
        found = [solution for solution, _ in read]
        solved = [solution if sharpness > _SHARP else None for solution, sharpness in read]
        members = _members(uploads, solved, items, ridge, share)
    return found, [members[rows] for rows in places]


def _members(
    uploads: Sequence[Shown], solved: Sequence[Solution | None], items: NDArray[np.int64], ridge: Ridge, share: float
) -> Array:
    """m by least squares: the smallest departure from "all rows alike" that explains all equations."""
    parts, sides = [], []
    for one, solution in zip(uploads, solved, strict=True):
        M, y = _equations(one, solution, ridge)
        size = max(float(np.linalg.norm(M)), 1e-300)
        wide = np.zeros((len(M), len(items)))
        wide[:, np.searchsorted(items, one.items)] = M / size
        parts.append(wide)
        sides.append(y / size)
    M, alike = np.vstack(parts), np.full(len(items), share)
    gram = M @ M.T
    gram += _ROUNDING * np.trace(gram) / len(gram) * np.eye(len(gram))
    members: Array = alike + M.T @ np.linalg.solve(gram, np.concatenate(sides) - M @ alike)
    return np.asarray(np.round(members, 5))  # rows that nothing tells apart are a tie


def _equations(one: Shown, solution: Solution | None, ridge: Ridge) -> tuple[Array, Array]:
    """M, y with M m = y."""
    if solution is None:  # Σ m_i c_i V_i is a multiple of the direction
        V = one.X[:, one.free[-len(one.direction) :]]
        across = V - np.outer(V @ one.direction, one.direction)
        return (one.c[:, None] * across).T, np.zeros(V.shape[1])
    w, e = solution[0][one.free], solution[1]
    slope = ridge(1.0) - ridge(0.0)
    return (e[:, None] * one.X[:, one.free] - slope * w).T, ridge(0.0) * w


def _read(one: Shown, used: Array, of: OfModel, ridge: Ridge, step: float, exact: bool) -> tuple[Solution, float]:
    """w and e from the rows that were used, and the share of the ratings that then lie on the scale.

    (w, e) and (−w, −e) explain an upload alike, but only one of them puts ratings on the scale.
    """
    size, shown = ridge(float(used.sum())), len(one.direction)
    pull = (used * one.c) @ one.X[:, one.free]
    s = float(np.sqrt(max(one.direction @ pull[-shown:] / size, 1e-24)))
    best: tuple[Solution, float] | None = None
    for sign in (1.0, -1.0):
        w = np.zeros(one.X.shape[1])
        w[list(of.known)] = list(of.known.values())
        base, hidden, v = one.X @ w, one.X[:, one.free[:-shown]], one.X[:, one.free[-shown:]] @ (sign * one.direction)
        theta = np.append(s, sign * pull[:-shown] / (s * size))
        theta = theta if exact else _polished(theta, base, sign * one.c, v, hidden, step)
        e = sign * one.c / theta[0]
        w[one.free] = np.append(theta[1:], sign * theta[0] * one.direction)
        off = one.X @ w + e
        sharpness = float(np.exp(-0.5 * ((on_scale(off, step) - off) / (0.02 * step)) ** 2).mean())
        if best is None or sharpness > best[1]:
            best = (w, e), sharpness
    assert best is not None
    return best


def _polished(start: Array, base: Array, c: Array, v: Array, hidden: Array, step: float) -> Array:
    """The length and the hidden weights that put ratings on the scale: Gauss–Newton on rows that lie near it."""
    theta, trust = start, np.append(1.0 / max(start[0], 1e-12) ** 2, np.ones(hidden.shape[1]))
    for width, kept in _WIDTHS:
        for _ in range(4):
            s = theta[0]
            ratings = base + c / s + s * v + hidden @ theta[1:]
            off = on_scale(ratings, step) - ratings
            J = np.column_stack([v - c / s**2, hidden])
            weighted = J * np.exp(-0.5 * (off / (width * step)) ** 2)[:, None]
            gram = weighted.T @ J + np.diag(kept * trust)
            theta = theta + np.linalg.solve(gram, weighted.T @ off - kept * trust * (theta - start))
            if not 0.2 * start[0] < theta[0] < 5.0 * start[0]:
                theta[0] = start[0]
    return theta
