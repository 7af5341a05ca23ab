"""Taking a sum apart to which everybody adds multiples of one vector: m_i = Σ_p a_pi d_p, most a_pi being 0.

Rows to which one person alone added are collinear, and give that person's direction d. Of fewer persons than columns
every other row is then a combination of known directions, and least squares gives its coefficients. Persons who share
all their rows are found in what is left when known directions are projected out. Of more persons than columns, rows
that few of the found ones explain down to the rounding are taken apart by orthogonal matching pursuit.

Ours: dictionary learning is easy where rows are exact and many have one contributor. After: Pati et al. 1993 (matching
pursuit)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array

Rows = NDArray[np.int64]
_SPREADS = 12.0
"""of the rounding, that a fit may be off by"""
_WHITE = 2e4
"""of the rounding, below which a component is not blown up"""
_ATOMS = 12
"""contributors of a row at most, where there are as many directions as columns"""
_PARTS = 3
"""a direction that so many others combine to is of rows that several rated alike"""
_SWEEPS = 4
_COMPARED = 4000
"""rows that are compared with each other, the smallest: those of one person are among them"""


@dataclass(frozen=True)
class Mixture:
    """A table's rows in coordinates of like size, and how far rounding may move each."""

    rows: Rows
    X: Array
    spread: Array
    """standard deviation of the rounding, by column"""
    back: Array
    """coordinates × columns: X @ back are the table's rows"""

    @property
    def noise(self) -> float:
        """Length of the rounding of a row."""
        return float(np.linalg.norm(self.spread))


def mixture(table: Array, rounding: float) -> Mixture:
    """Rows that stand out of the rounding, over components that do."""
    rows = np.flatnonzero(np.linalg.norm(table, axis=1) > _SPREADS * rounding * np.sqrt(table.shape[1]))
    _, sizes, axes = np.linalg.svd(table[rows], full_matrices=False)
    kept = sizes > 3.0 * rounding * np.sqrt(max(len(rows), 1))
    size = np.maximum(sizes[kept], _WHITE * rounding)
    return Mixture(rows, table[rows] @ axes[kept].T / size, rounding / size, size[:, None] * axes[kept])


def unmixed(table: Array, rounding: float) -> tuple[Array, Array]:
    """Directions in the table's columns, unit length, and the coefficients of each in every row; 0 where none."""
    mixed = mixture(table, rounding)
    D = directions(mixed) if mixed.X.shape[1] > 1 else np.zeros((0, mixed.X.shape[1]))
    A = np.zeros((len(D), len(table)))
    if len(D):
        A[:, mixed.rows] = coefficients(mixed, D).T
    d = D @ mixed.back
    length = np.linalg.norm(d, axis=1, keepdims=True)
    return d / length, A * length


def directions(mixed: Mixture) -> Array:
    """By collinear rows, the largest groups first; then by what they leave."""
    X, D = mixed.X, np.zeros((0, mixed.X.shape[1]))
    size = np.linalg.norm(X, axis=1)
    for group in collinear(X, _SPREADS * mixed.noise / size):
        d, length = common(X[group]), float(np.linalg.norm(size[group]))
        if len(D) < 2 or pursuit(D, d, min(_PARTS, len(D)))[1] > 4.0 * _SPREADS * mixed.noise / length:
            D = np.vstack([D, d])
    while len(D) < X.shape[1]:
        further = left_over(mixed, D)
        if further is None:
            break
        D = np.vstack([D, further])
    return sparsest(mixed, D) if len(D) == X.shape[1] else D


def collinear(X: Array, off: Array) -> list[Rows]:
    """Groups of two rows and more that are multiples of each other, up to so many radians; the largest first."""
    size = np.linalg.norm(X, axis=1)
    looked = np.argsort(size, kind="stable")[:_COMPARED]
    unit = X[looked] / size[looked, None]
    near = 2.0 * (1.0 - np.minimum(np.abs(unit @ unit.T), 1.0)) < (off[looked, None] + off[looked]) ** 2
    free, groups = np.ones(len(looked), dtype=bool), []
    for row in np.argsort(-near.sum(axis=1), kind="stable"):
        group = np.flatnonzero(near[row] & free)
        if free[row] and len(group) > 1:
            free[group] = False
            groups.append(looked[group])
    return sorted(groups, key=len, reverse=True)


def common(X: Array) -> Array:
    """The direction that rows have in common."""
    return np.asarray(np.linalg.svd(X, full_matrices=False)[2][0])


def left_over(mixed: Mixture, D: Array) -> Array | None:
    """A further direction: what is left of some rows is collinear when known directions are projected out.

    Of the direction's own part along each known one, most of these rows agree: all but those that this person rated,
    too.
    """
    basis = np.linalg.qr(D.T)[0]
    rest = mixed.X - mixed.X @ basis @ basis.T
    size = np.linalg.norm(rest, axis=1)
    active = np.flatnonzero(size > 10.0 * _SPREADS * mixed.noise)
    alone = mixed.X.shape[1] - len(D) == 1
    groups = (
        ([np.arange(len(active))] if alone else collinear(rest[active], _SPREADS * mixed.noise / size[active]))
        if len(active) > 1
        else []
    )
    if not groups:
        return None
    rows = active[groups[0]]
    new = common(rest[rows])
    a = rest[rows] @ new
    along = np.linalg.lstsq(D.T, (mixed.X[rows] - np.outer(a, new)).T, rcond=None)[0] / a
    d = new + D.T @ np.array([most_frequent(values) for values in along])
    return np.asarray(d / np.linalg.norm(d))


def most_frequent(values: Array) -> float:
    """The mean of the values that most others are near to."""
    ordered, near = np.sort(values), 1e-3 * float(np.median(np.abs(values))) + 1e-6
    first, last = np.searchsorted(ordered, ordered - near), np.searchsorted(ordered, ordered + near, side="right")
    most = int((last - first).argmax())
    return float(ordered[first[most] : last[most]].mean())


def sparsest(mixed: Mixture, D: Array) -> Array:
    """As many directions as coordinates, each less its part along others that most of its rows agree on.

    Rows of one person that seem to have a second one in always the same proportion have it in the direction.
    """
    for _ in range(_SWEEPS):
        before = D.copy()
        for own in range(len(D)):
            C = mixed.X @ np.linalg.pinv(D)
            rows = np.abs(C[:, own]) > 1e-3 * np.abs(C[:, own]).max()
            ratio = C[rows] / C[rows, own : own + 1]
            part = np.array([0.0 if other == own else agreed(ratio[:, other]) for other in range(len(D))])
            D[own] += part @ D
            D[own] /= np.linalg.norm(D[own])
        if np.allclose(before, D):
            break
    return D


def agreed(values: Array) -> float:
    """The most frequent value, if it is clearly more so than 0."""
    value = most_frequent(values)
    near = 1e-3 * abs(value) + 1e-6
    return value if (np.abs(values - value) < near).sum() > (np.abs(values) < near).sum() + 1 else 0.0


def coefficients(mixed: Mixture, D: Array) -> Array:
    """Rows × directions; all 0 where the directions don't explain a row down to the rounding."""
    X, tolerance = mixed.X, _SPREADS * mixed.noise
    found, explained = np.zeros((len(X), len(D))), np.zeros(len(X), dtype=bool)
    if len(D) < X.shape[1] or X.shape[1] < mixed.back.shape[1]:
        inverse = np.linalg.pinv(D)
        C = X @ inverse
        explained = np.linalg.norm(X - C @ D, axis=1) < tolerance
        sure = (np.abs(C) > 8.0 * np.sqrt(mixed.spread**2 @ inverse**2)) & (np.abs(C) > 1e-3 * np.abs(C).max())
        found = np.where(explained[:, None] & sure, C, 0.0)
    for row in np.flatnonzero(~explained):
        chosen, rest, c = pursuit(D, X[row], min(_ATOMS, X.shape[1] - 4), tolerance)
        if rest <= tolerance:
            found[row, chosen] = c
    return found


def pursuit(D: Array, x: Array, most: int, tolerance: float = 0.0) -> tuple[list[int], float, Array]:
    """Few directions that explain x, one after the other: which, how much is left, and their coefficients."""
    chosen: list[int] = []
    rest: Array = x
    c: Array = np.zeros(0)
    while len(chosen) < most and np.linalg.norm(rest) > tolerance:
        place = int(np.abs(D @ rest).argmax())
        if place in chosen:
            break
        chosen.append(place)
        c = np.asarray(np.linalg.lstsq(D[chosen].T, x, rcond=None)[0], dtype=np.float64)
        rest = x - c @ D[chosen]
    return chosen, float(np.linalg.norm(rest)), c
