"""What clients do in a round, as plain loops over clients and their rows: nothing of the package is used here.

Algorithm 1 with its gradient steps, and the solves of the models that solve. Every engine equals these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class PlainClient:
    """One client's rows: rated ones first, then pseudo rows with their virtual ratings."""

    items: list[int]
    ratings: list[float]
    rated: int
    U: Array

    def rows(self) -> Iterator[tuple[int, float, bool]]:
        """Item, rating, and whether the person rated it."""
        for place, (item, rating) in enumerate(zip(self.items, self.ratings, strict=True)):
            yield item, rating, place < self.rated


def gradient_steps(client: PlainClient, V: Array, s: Any, rate: float, mean: float, biases: bool) -> tuple[Array, Any]:
    """K epochs of ``mf``: a step on U, then one on each row of the client's copy of V. Paper: Algorithm 1, lines 4–7"""
    U, own, d = client.U.copy(), {item: V[item].copy() for item in client.items}, s.factors
    trained = [True] * d + ([False, True] if biases else [False])

    def error(item: int, rating: float) -> float:
        return float(rating - mean - sum(own[item][c] * U[c] for c in range(d + biases)) - U[-1])

    for _ in range(s.local_epochs):
        used = [(item, rating) for item, rating, rated in client.rows() if rated or s.user_step == "all"]
        pull = np.zeros(len(U))
        for item, rating in used:
            pull += error(item, rating) * np.append(own[item], 1.0) / len(used)
        for c in range(len(U)):
            if trained[c]:
                U[c] -= rate * (s.regularisation * U[c] - pull[c])
        for item, rating, _ in client.rows():
            own[item] = own[item] - rate * (s.regularisation * own[item] - error(item, rating) * U[:-1])
    return U, {item: own[item] - V[item] for item in client.items}


def implicit_steps(client: PlainClient, table: Array, s: Any, rate: float) -> tuple[Array, Any]:
    """K epochs of ``svdpp``: a step on U, then one on each of the client's rows of V and of its rated rows of O."""
    U, d = client.U.copy(), s.factors
    V, O = ({item: part[item].copy() for item in client.items} for part in (table[:, :d], table[:, d:]))

    def others(item: int) -> list[int]:
        return [j for j in client.items[: client.rated] if j != item]

    def z(item: int, O: dict[int, Array]) -> Array:
        return sum((O[j] for j in others(item)), np.zeros(d)) / max(len(others(item)), 1) ** 0.5

    for _ in range(s.local_epochs):
        used = [(item, rating) for item, rating, rated in client.rows() if rated or s.user_step == "all"]
        pull = np.zeros(d)
        for item, rating in used:
            pull += (rating - (U + z(item, O)) @ V[item]) * V[item] / len(used)
        U = U - rate * (s.regularisation * U - pull)
        before, e = dict(O), {item: rating - (U + z(item, O)) @ V[item] for item, rating, _ in client.rows()}
        for j in client.items[: client.rated]:
            pulls = [e[i] * V[i] / len(others(i)) ** 0.5 for i, _ in used if i != j]
            O[j] = O[j] - rate * (s.regularisation * O[j] - sum(pulls, np.zeros(d)) / len(used))
        for item in client.items:
            V[item] = V[item] - rate * (s.regularisation * V[item] - e[item] * (U + z(item, before)))
    return U, {item: np.append(V[item], O[item]) - table[item] for item in client.items}


def expected_gradient(client: PlainClient, X: Array, s: Any, noise: float, popularity: Array) -> dict[int, Array]:
    """e_i w_V − S_V x_i of ``reconstruction``; X has the baseline first and V last."""
    size, d = X.shape[1] - 1, s.factors
    gram, moment, prior = s.noise * noise * np.eye(size), np.zeros(size), np.zeros(size)
    prior[-d] = s.user_mean
    solved_over = [row for row in client.rows() if row[2] or s.user_step == "all"]
    for item, rating, _ in solved_over:
        x = X[item, 1:]
        gram += np.outer(x, x)
        moment += x * (rating - X[item, 0] - x @ prior)
        for column in range(size - d, size):  # a row of V is known no better than that
            gram[column, column] += s.noise * noise / (popularity[item] + s.item_prior)
    w = prior + np.linalg.solve(gram, moment)
    S = s.noise * noise * np.linalg.inv(gram)
    gradient = {}
    for item, rating, rated in client.rows():
        x = X[item, 1:]
        gradient[item] = (rating - X[item, 0] - x @ w) * w[-d:]
        if rated or s.user_step == "all":
            gradient[item] = gradient[item] - S[-d:] @ x
    return gradient


def choice_gradient(
    client: PlainClient, W: Array, s: Any, noise: float, mean: float, popularity: Array
) -> tuple[dict[int, Array], Array]:
    """c_i (1 − s_i)u of ``ials``, and the upper triangle of u uᵀ."""
    d, q = W.shape[1], popularity / popularity.sum()
    gram, moment, choices = np.zeros((d, d)), np.zeros(d), 0.0
    for item in range(len(W)):
        weight = s.popular_choices * q[item]
        gram += (s.unobserved_weight + weight) * np.outer(W[item], W[item])
        moment += weight * W[item]
    confidence = {}
    for item, rating, rated in client.rows():
        chosen = rated and rating >= min(s.from_rating, mean) - 1e-9
        confidence[item] = max(1.0 + s.confidence_slope / noise * (rating - mean), 0.0) if chosen else 0.0
        gram += confidence[item] * np.outer(W[item], W[item])
        moment += confidence[item] * W[item]
        choices += confidence[item]
    gram += s.interaction_ridge * np.sqrt(choices + s.unobserved_weight * len(W)) * np.eye(d)
    u = np.linalg.solve(gram, moment)
    triangle = [u[a] * u[b] for a in range(d) for b in range(a, d)]
    return {item: c * (1.0 - W[item] @ u) * u for item, c in confidence.items()}, np.array(triangle)


def gradient_of_all(client: PlainClient, Y: Array, s: Any) -> dict[int, Array]:
    """c_ui (p_ui − x_u·y_i) x_u of ``fcf``, for every item."""
    d, chosen = Y.shape[1], set(client.items[: client.rated])
    gram, moment = s.regularisation * np.eye(d), np.zeros(d)
    for item in range(len(Y)):
        confidence = 1.0 + s.confidence * (item in chosen)
        gram += confidence * np.outer(Y[item], Y[item])
        moment += confidence * (item in chosen) * Y[item]
    x = np.linalg.solve(gram, moment)
    return {
        item: (1.0 + s.confidence * (item in chosen)) * ((item in chosen) - x @ Y[item]) * x for item in range(len(Y))
    }
