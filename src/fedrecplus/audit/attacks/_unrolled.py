"""A client's K local epochs as one function of what the server doesn't know, and its derivative.

Unknown are U at the start of the round and the rating r_i of each row. Row i depends on the other rows only through the
path U¹ … U^K that U takes, so there are two small derivatives instead of a large one: of a row by the path, and of the
path by the unknowns. The first is common to all rows but for e_i and V_i,

    dV_i^K / dU^k = η P_k (e_i^k [I 0] − U^k [V_i^k 1]),   P_k = M_K ⋯ M_{k+1},   M_k = (1 − ηλ)I − η U^k U^kᵀ,

so that all sums over rows come from a few moments of e and V, and no array has more than rows × path numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from fedrecplus.arrays import Array
from fedrecplus.parts.model.mf import errors, item_step, user_step

_ENOUGH = 1e-6
"""share of the upload that may stay unexplained: more than 32-bit numbers lose"""
_LEAST_GAIN = 1.01


@dataclass(frozen=True)
class Known:
    """What the server knows of a client's round."""

    V: Array
    """rows of V before the round"""
    rate: float
    decay: float
    epochs: int
    trained: Array
    """1 for the columns of U that training moves"""


@dataclass(frozen=True)
class Path:
    """Local training, epoch by epoch."""

    U: list[Array]
    """at the start, then after the U step of each epoch"""
    W: list[Array]
    """rows of V when each epoch begins, and a column of ones for the user bias"""
    e_before: list[Array]
    """errors that the U step of each epoch sees"""
    e: list[Array]
    """errors that the V step of each epoch sees"""
    V: Array
    """rows at the end"""


def follow(known: Known, U: Array, targets: Array) -> Path:
    """Run the K epochs. ``targets`` are ratings less the global mean."""
    path_U, W, e_before, e = [U], [], [], []
    V, ones, every = known.V, np.ones((len(known.V), 1)), np.ones(len(known.V), np.bool_)
    for _ in range(known.epochs):
        e_before.append(errors(U, V, targets))
        U = user_step(U, V, targets, every, known.rate, known.decay, known.trained)
        path_U.append(U)
        W.append(np.hstack([V, ones]))
        e.append(errors(U, V, targets))
        V = item_step(U, V, targets, known.rate, known.decay)
    return Path(path_U, W, e_before, e, V)


def carries(known: Known, path: Path) -> list[list[Array]]:
    """``carries[k][j]``: what epoch k begins with of a change that epoch j made to a row; k = K is the end."""
    keep, rate = 1.0 - known.rate * known.decay, known.rate
    one = np.eye(known.V.shape[1])
    found: list[list[Array]] = [[]]
    for U in path.U[1:]:
        M = keep * one - rate * np.outer(U[:-1], U[:-1])
        found.append([*(M @ P for P in found[-1]), one])
    return found


def own_changes(known: Known, path: Path) -> list[Array]:
    """dV_i/dr_i with the path held, when each epoch begins and at the end: the same for all rows."""
    keep, rate = 1.0 - known.rate * known.decay, known.rate
    own = [np.zeros(known.V.shape[1])]
    for U in path.U[1:]:
        own.append(keep * own[-1] + rate * U[:-1] * (1.0 - U[:-1] @ own[-1]))
    return own


def path_changes(known: Known, path: Path, carry: list[list[Array]], own: list[Array]) -> tuple[Array, Array]:
    """d(path)/d(U at the start) and d(path)/dr, from the U step's own derivative by U, by the rows and by r."""
    n, wide = path.W[0].shape
    rate, P = known.rate, np.diag(known.trained)
    by_start, by_ratings = [np.eye(wide)], [np.zeros((wide, n))]
    for k in range(known.epochs):
        U, W, e = path.U[k], path.W[k], path.e_before[k]
        by_U = -known.decay * np.eye(wide) - W.T @ W / n
        start = by_U @ by_start[-1]
        ratings = by_U @ by_ratings[-1] + (1.0 - U[:-1] @ own[k]) * W.T / n
        ratings[:-1] += np.outer(own[k], e) / n
        for j in range(k):
            block = _through_rows(U, W, e, path, j, carry[k][j]) * (rate / n)
            start += block @ by_start[j + 1]
            ratings += block @ by_ratings[j + 1]
        by_start.append(by_start[-1] + rate * P @ start)
        by_ratings.append(by_ratings[-1] + rate * P @ ratings)
    return np.vstack(by_start[1:]), np.vstack(by_ratings[1:])


def _through_rows(U: Array, W: Array, e: Array, path: Path, j: int, P: Array) -> Array:
    """Σ_i (e_i [I; 0] − [V_i; 1] Uᵀ) P (e_i^j [I 0] − U^j [V_i^j 1])."""
    Uj, Wj, ej = path.U[j + 1][:-1], path.W[j], path.e[j]
    row = P.T @ U[:-1]
    block = float(row @ Uj) * (W.T @ Wj)
    block[:-1, :-1] += float(e @ ej) * P
    block[:-1] -= np.outer(P @ Uj, e @ Wj)
    block[:, :-1] -= np.outer(ej @ W, row)
    return block


def normal(known: Known, path: Path, off: Array) -> tuple[Array, Array]:
    """Normal equations of ‖off − dV‖² over U's trained columns at the start, then all ratings: matrix, right side."""
    rate, K = known.rate, known.epochs
    free = np.flatnonzero(known.trained)
    carry, own = carries(known, path), own_changes(known, path)
    by_start, by_ratings = path_changes(known, path, carry, own)
    T = np.hstack([by_start[:, free], by_ratings])
    n, wide = path.W[0].shape
    Q = np.zeros((K * wide, K * wide))
    own_path, pull = np.zeros((n, K * wide)), np.zeros(K * wide)
    for k in range(K):
        here = slice(k * wide, (k + 1) * wide)
        P, Uk, Wk, ek = carry[K][k], path.U[k + 1][:-1], path.W[k], path.e[k]
        row = P.T @ own[K]
        own_path[:, here] = -rate * float(row @ Uk) * Wk
        own_path[:, here][:, :-1] += rate * np.outer(ek, row)
        back = off @ P
        pull[here] = -rate * (back @ Uk) @ Wk
        pull[here][:-1] += rate * ek @ back
        for j in range(k + 1):
            there = slice(j * wide, (j + 1) * wide)
            Q[here, there] = rate * rate * _through_rows(path.U[k + 1], Wk, ek, path, j, P.T @ carry[K][j])
            Q[there, here] = Q[here, there].T
    gram = T.T @ Q @ T
    cross = own_path @ T
    rows = slice(len(free), None)
    gram[rows] += cross
    gram[:, rows] += cross.T
    places = np.arange(len(free), len(gram))
    gram[places, places] += own[K] @ own[K]
    right = T.T @ pull
    right[rows] += off @ own[K]
    return gram, right


def improve(known: Known, seen: Array, U: Array, targets: Array, steps: int) -> tuple[Array, Path, float]:
    """Levenberg–Marquardt: U at the start and targets whose training ends in the rows that were seen.

    Returns the targets, the path, and the share of the upload that stays unexplained. After: Marquardt 1963
    """
    size = float(np.sqrt(((seen - known.V) ** 2).mean())) + 1e-300
    path = follow(known, U, targets)
    left = _rms(seen - path.V) / size
    damping, free = 1e-3, known.trained.astype(bool)
    equations = normal(known, path, seen - path.V)
    for _ in range(steps):
        if left < _ENOUGH or damping > 1e6:
            break
        solution = _solve(*equations, damping)
        U_trial = U.copy()
        U_trial[free] += solution[: free.sum()]
        trial = follow(known, U_trial, targets + solution[free.sum() :])
        left_trial = _rms(seen - trial.V) / size
        if not left_trial < left:
            damping *= 10.0
            continue
        gain, left = left / left_trial, left_trial
        U, targets, path = U_trial, targets + solution[free.sum() :], trial
        damping = max(damping * 0.1, 1e-12)
        if gain < _LEAST_GAIN:
            break
        equations = normal(known, path, seen - path.V)
    return targets, path, left


def _rms(table: Array) -> float:
    return float(np.sqrt((table**2).mean()))


def _solve(gram: Array, right: Array, damping: float) -> Array:
    gram = gram.copy()
    places = np.arange(len(gram))
    gram[places, places] = gram[places, places] * (1.0 + damping) + 1e-14 * np.trace(gram) / len(gram)
    solution: Array = scipy.linalg.solve(gram, right, assume_a="sym", check_finite=False)
    return solution
