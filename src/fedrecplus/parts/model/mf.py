"""Matrix factorisation by gradient steps, r̂ = U·V: the model of the paper, to the letter.

The class also serves ``biased-mf``: V then has a column for the item bias, and U two more, a one that meets it and the
user bias, which stays on the device. In ``mf`` U's last column, the user bias, stays zero.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import (
    Array,
    Items,
    add_to_diagonal,
    in_numpy,
    like,
    namespace,
    outer,
    product,
    rows_of,
    solve,
    zeros,
)
from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.parts.model import Model, Trained, keyed_order
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import normal, subkey, uniform
from fedrecplus.settings import Annotated, Settings as _Settings, number, text


class Settings(_Settings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, length of the latent feature vectors")] = 20
    regularisation: Annotated[float, number(0, 1e6, "λ, L2 regularisation of U and of the rows of V")] = 0.02
    learning_rate: Annotated[float, number(1e-12, 1e6, "η_L, local step size")] = 0.5
    learning_rate_decay: Annotated[float, number(1e-6, 10, "factor on the local step size after each round")] = 1.0
    local_epochs: Annotated[int, number(1, 10_000, "K, passes over the client's rows in a round")] = 1
    batch_size: Annotated[int, number(0, 10**9, "B, rows per local step; 0: all at once")] = 0
    user_step: Annotated[
        Literal["all", "rated"],
        text("rows of the U step: rated and pseudo (paper), or rated alone (more accurate, and gives the set away)"),
    ] = "all"
    init: Annotated[
        Literal["constant", "normal", "uniform"],
        text("start values: constant makes every first prediction init_rating, the others begin around zero"),
    ] = "constant"
    init_rating: ClassVar[float] = 3.5
    """what a constant start predicts, on the standard scale 1–5: near the mean of most data sets"""
    init_scale: Annotated[float, number(0, 1e3, "standard deviation (uniform: half-width) of the start's noise")] = 0.1


class Mf(Model[Settings]):
    """r̂ = U·V, and with biases r̂ = μ + b_u + b_i + U·V, by gradient steps."""

    BIASES: ClassVar[bool] = False

    def tree(self) -> dict[str, Leaf]:
        """V, with a column for the item bias where there are biases, and U."""
        columns = self.settings.factors + self.BIASES
        return {"V": Leaf.table(columns), "U": Leaf.private(columns + 1)}

    def trained_columns(self) -> Array:
        """1 for the columns of U that training moves, 0 for the others."""
        return np.array([1.0] * self.settings.factors + [0.0] * self.BIASES + [float(self.BIASES)])

    def global_mean(self, public: PublicItems) -> float:
        """What predictions start from: zero in the paper, the mean of all ratings in a model with biases."""
        return public.mean if self.BIASES else 0.0

    def local_rate(self, round_number: int) -> float:
        """The local step size of a round."""
        return self.settings.learning_rate * self.settings.learning_rate_decay**round_number

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """The item table before training."""
        columns = self.settings.factors + self.BIASES
        return self._start(subkey(seed, "start-V"), np.arange(items), columns, public)

    def start_users(self, seed: int, clients: Items, public: PublicItems) -> Array:
        """Some clients' factors before training."""
        table = self._start(subkey(seed, "start-U"), clients, self.user_columns, public)
        if self.BIASES:
            table[:, self.settings.factors] = 1.0
        return table

    def _start(self, key: int, rows: Items, columns: int, public: PublicItems) -> Array:
        """Start values of some rows: the same for a row whoever asks, and whatever other rows are asked for.

        A constant √(c/d) makes every first prediction c. Ours: near-zero starts sit on a plateau for tens of rounds.
        """
        settings, factors = self.settings, self.settings.factors
        cells = rows[:, None].astype(np.uint64) * np.uint64(factors) + np.arange(factors, dtype=np.uint64)
        noise = 2.0 * uniform(key, cells) - 1.0 if settings.init == "uniform" else normal(key, cells)
        above_mean = max(settings.init_rating - self.global_mean(public), 0.0)
        constant = np.sqrt(above_mean / factors) if settings.init == "constant" else 0.0
        table = np.zeros((len(rows), columns))
        table[:, :factors] = constant + settings.init_scale * noise
        return table

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """K epochs of a U step and a step on the client's copy of its rows of V; returns U as it is then.

        Paper: Algorithm 1, lines 4–7
        """
        settings, U, start = self.settings, device.U, rows_of(broadcast.V, rows.items)
        xp, V, targets = namespace(start), start, rows.ratings - self.global_mean(broadcast.public)
        rate, trained = self.local_rate(broadcast.round), like(self.trained_columns(), U)
        batches = self.batches(device, rows, broadcast)
        for _ in range(settings.local_epochs):
            for batch in batches:
                used = batch if settings.user_step == "all" else batch & rows.rated
                U = user_step(U, V, targets, used, rate, settings.regularisation, trained)
                V = xp.where(batch[..., None], item_step(U, V, targets, rate, settings.regularisation), V)
        return Trained(U, V - start)

    def batches(self, device: Device, rows: Rows, broadcast: Broadcast) -> list[NDArray[np.bool_]]:
        """Which rows a step is over: all at once, or batches of B in an order that is new each round."""
        size, present = self.settings.batch_size, rows.items >= 0
        if size == 0:
            return [present]
        items = in_numpy(rows.items)
        number = np.argsort(keyed_order(device, "batches", broadcast.round, items, items >= 0), axis=-1) // size
        longest = int((items >= 0).sum(axis=-1).max())
        return [like(number == batch, present) & present for batch in range(-(-longest // size))]

    def predict(self, items: Items, device: Device, broadcast: Broadcast, steps: int = 0) -> Array:
        """The client's own predictions, after ``steps`` more U steps over its rated rows with V fixed."""
        U, mean, used = device.U, self.global_mean(broadcast.public), device.items >= 0
        rate, trained = self.local_rate(broadcast.round), like(self.trained_columns(), U)
        if steps:
            V, targets = rows_of(broadcast.V, device.items), device.ratings - mean
        for _ in range(steps):
            U = user_step(U, V, targets, used, rate, self.settings.regularisation, trained)
        return mean - errors(U, rows_of(broadcast.V, items), 0.0)

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (V, 1), and with biases (V, μ + b_i, 1)."""
        xp = namespace(V)
        X: NDArray[Any] = xp.concat([V, xp.ones_like(V[:, :1])], axis=1)
        if self.BIASES:
            X[:, self.settings.factors] += public.mean
        return X

    def user_weights(self, U: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The weights that predictions use: U itself."""
        return U

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """argmin_U mean (r − X·U)² + λ‖U‖² over the rated rows: where the U steps come to rest."""
        free, x = np.flatnonzero(self.trained_columns()), rows_of(X, items)
        U = zeros((*items.shape[:-1], X.shape[1]), X)
        if self.BIASES:
            U[..., self.settings.factors] = 1.0
        xp, A, targets = namespace(X), x[..., free], ratings - product(x, U)
        n = xp.sum(xp.astype(items >= 0, X.dtype), axis=-1)
        ridge = xp.clip(self.settings.regularisation * n, 1e-9, None)
        transposed = xp.matrix_transpose(A)
        U[..., free] = solve(add_to_diagonal(transposed @ A, ridge[..., None]), product(transposed, targets))[0]
        return U

    def weight_shares(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """A⁻¹ x_k times the rating less what is no weight of the person."""
        free, x = np.flatnonzero(self.trained_columns()), X[items]
        A, targets = x[:, free], ratings - self.BIASES * x[:, self.settings.factors]
        gram = add_to_diagonal(A.T @ A, max(self.settings.regularisation * len(items), 1e-9))
        shares = np.zeros(x.shape)
        shares[:, free] = np.linalg.solve(gram, (targets[:, None] * A).T).T
        return shares

    def attacker(self) -> OfModel:
        """What an attacker knows of U: it meets V's columns; the weight of an item bias is 1, a user bias may be."""
        factors = self.settings.factors
        return OfModel(
            slice(0, factors + self.BIASES), {factors: float(self.BIASES)}, "by steps", self.settings.user_step
        )

    def gradient_rows(self, delta: Array, items: Items, used: Array, broadcast: Broadcast) -> Array:
        """Δ/(K η_L) + λV: for K = 1 it is e_i·U, row by row; for more epochs about their mean. Paper: Eq. (6)"""
        rate = self.settings.local_epochs * self.local_rate(broadcast.round)
        A: Array = delta / rate + self.settings.regularisation * broadcast.V[items]
        return A


def errors(U: Array, V: Array, targets: Array | float) -> Array:
    """e = r − r̂, for ratings less the global mean. Paper: Eq. (1), Section "Problem Setup" """
    return targets - product(V, U[..., :-1]) - U[..., -1:]


def user_step(
    U: Array, V: Array, targets: Array, used: NDArray[np.bool_], rate: float, regularisation: float, trained: Array
) -> Array:
    """U ← U − η_L (λ U − mean of e_ui V_i over the used rows). Paper: Eq. (4), Algorithm 1, line 5"""
    xp = namespace(V)
    e = used * errors(U, V, targets)
    n = xp.sum(xp.astype(used, V.dtype), axis=-1)[..., None]
    pull = xp.concat([product(xp.matrix_transpose(V), e), xp.sum(e, axis=-1)[..., None]], axis=-1)
    moved = U - rate * trained * (regularisation * U - pull / xp.clip(n, 1.0, None))
    return xp.where(n > 0, moved, U)  # type: ignore[no-any-return]


def item_step(U: Array, V: Array, targets: Array, rate: float, regularisation: float) -> Array:
    """V_i ← V_i − η_L g_ui, g_ui = λ V_i − e_ui U, for all rows. Paper: Eq. (3), (6), Algorithm 1, lines 6–7"""
    e = errors(U, V, targets)
    moved: Array = V - rate * (regularisation * V - outer(e, U[..., :-1]))
    return moved
