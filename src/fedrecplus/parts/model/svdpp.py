"""SVD++ by gradient steps, FedRec's second model: what people rated says something of them, beside how they rated it.

r̂ = (U + z_i)·V_i, where z_i = Σ_j O_j / √n over the n rated items j other than i: items have two rows, V and the
implicit factors O. A device moves O's rows of what its owner has rated and no others. In a clear upload these rows name
the rated items, whatever stands beside them; secure sums hide them.

After: Koren 2008 (SVD++), Lin, Liang, Pan, Ming 2020 (FedRec)
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, namespace, outer, product, rows_of
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Model, Trained, mf, start_noise
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems

Mask = NDArray[np.bool_]


class Svdpp(Model[mf.Settings]):
    """r̂ = (U + Σ_j O_j/√n)·V_i, by gradient steps."""

    @functools.cached_property
    def without_implicit(self) -> mf.Mf:
        """The same model with O = 0: start values, step sizes and batches are its own."""
        return mf.Mf(self.settings)

    def tree(self) -> dict[str, Leaf]:
        """V, O and U."""
        factors = self.settings.factors
        return {"V": Leaf.table(factors), "O": Leaf.table(factors), "U": Leaf.private(factors)}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """V as in ``mf``, O around zero."""
        V = self.without_implicit.start_items(seed, items, public)
        return np.hstack([V, self.settings.init_scale * start_noise(seed, "start-O", *V.shape)])

    def start_users(self, seed: int, clients: Items, public: PublicItems) -> Array:
        """U as in ``mf``."""
        return self.without_implicit.start_users(seed, clients, public)[:, : self.settings.factors]

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """K epochs of a U step, then one on the client's copies of its rows of V and of its rated rows of O.

        Deviation: the authors step after every rating, client after client, and their program also moves O's rows of
        pseudo items, each along its own V_i; here clients train side by side, as Algorithm 1 has it.
        """
        settings, U, d = self.settings, device.U, self.settings.factors
        start, targets, rated = rows_of(broadcast.V, rows.items), rows.ratings, rows.rated & (rows.items >= 0)
        V, O = start[..., :d], start[..., d:]
        xp, rate, decay = namespace(start), self.without_implicit.local_rate(broadcast.round), settings.regularisation
        batches = self.without_implicit.batches(device, rows, broadcast)
        for _ in range(settings.local_epochs):
            for batch in batches:
                used = batch if settings.user_step == "all" else batch & rated
                left = targets - implicit_part(V, O, rated)
                U = user_step(U, V, left, used, rate, decay)
                e = left - product(V, U)
                V_step, O = item_step(U, V, O, e, rated, rate, decay), implicit_step(V, O, e, used, rated, rate, decay)
                V = xp.where(batch[..., None], V_step, V)
        return Trained(U, xp.concat([V, O], axis=-1) - start)

    def predict(self, items: Items, device: Device, broadcast: Broadcast, steps: int = 0) -> Array:
        """The client's own predictions, after ``steps`` more U steps over its rated rows with V and O fixed."""
        U, own, d, used = device.U, rows_of(broadcast.V, device.items), self.settings.factors, device.items >= 0
        V, O, rate = own[..., :d], own[..., d:], self.without_implicit.local_rate(broadcast.round)
        left = device.ratings - implicit_part(V, O, used) if steps else device.ratings
        for _ in range(steps):
            U = user_step(U, V, left, used, rate, self.settings.regularisation)
        return product(rows_of(broadcast.V, items)[..., :d], U + implicit_sum(O, used))

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (V, O)."""
        return V

    def user_weights(self, U: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """U + Σ_j O_j/√n over all rated items, and 0 for O's columns."""
        xp, d = namespace(X), self.settings.factors
        factor_weights = U + implicit_sum(rows_of(X, items)[..., d:], items >= 0)
        return xp.concat([factor_weights, xp.zeros_like(factor_weights)], axis=-1)  # type: ignore[no-any-return]

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """U where its steps come to rest, with O as it is: see ``mf``."""
        d, own = self.settings.factors, rows_of(X, items)
        left = ratings - implicit_part(own[..., :d], own[..., d:], items >= 0)
        columns = self.without_implicit.item_columns(X[:, :d], public)
        U = self.without_implicit.fold_in(columns, items, left, public)[..., :d]
        return self.user_weights(U, X, items, ratings, public)

    def shown_rated(self, delta: Array) -> Mask:
        """O's rows of rated items move, those of pseudo items don't."""
        return np.asarray((delta[:, self.settings.factors :] != 0).any(axis=1))


def total(O: Array, rated: Mask) -> Array:
    """S = Σ_j O_j over the rated items."""
    return product(namespace(O).matrix_transpose(O), namespace(O).astype(rated, O.dtype))


def implicit_sum(O: Array, rated: Mask) -> Array:
    """S/√n over all n rated items: what goes with items that aren't rated."""
    xp = namespace(O)
    n = xp.sum(xp.astype(rated, O.dtype), axis=-1)[..., None]
    return total(O, rated) / xp.clip(n, 1.0, None) ** 0.5  # type: ignore[no-any-return]


def share(O: Array, rated: Mask) -> Array:
    """1/√n, with n the rated items other than the row's own; 0 where there is none."""
    xp, one = namespace(O), namespace(O).astype(rated, O.dtype)
    n = xp.sum(one, axis=-1)[..., None] - one
    return xp.where(n > 0, xp.clip(n, 1.0, None) ** -0.5, 0.0)  # type: ignore[no-any-return]


def implicit_part(V: Array, O: Array, rated: Mask) -> Array:
    """z_i·V_i of every row, where z_i = (S − O_i)/√n for a rated row and S/√n for another."""
    products = rated * namespace(V).sum(V * O, axis=-1)
    return share(O, rated) * (product(V, total(O, rated)) - products)  # type: ignore[no-any-return]


def user_step(U: Array, V: Array, left: Array, used: Mask, rate: float, decay: float) -> Array:
    """U ← U − η_L (λ U − mean of e_i V_i over the used rows), where e = left − V·U: that of ``mf``."""
    xp = namespace(V)
    n = xp.sum(xp.astype(used, V.dtype), axis=-1)[..., None]
    pull = product(xp.matrix_transpose(V), used * (left - product(V, U))) / xp.clip(n, 1.0, None)
    return xp.where(n > 0, U - rate * (decay * U - pull), U)  # type: ignore[no-any-return]


def item_step(U: Array, V: Array, O: Array, e: Array, rated: Mask, rate: float, decay: float) -> Array:
    """V_i ← V_i − η_L (λ V_i − e_i (U + z_i))."""
    by_sum = e * share(O, rated)
    pull = outer(e, U) + outer(by_sum, total(O, rated)) - (rated * by_sum)[..., None] * O
    return (1.0 - rate * decay) * V + rate * pull  # type: ignore[no-any-return]


def implicit_step(V: Array, O: Array, e: Array, used: Mask, rated: Mask, rate: float, decay: float) -> Array:
    """O_j ← O_j − η_L (λ O_j − mean of e_i V_i/√n over the used rows i ≠ j), for rated items j.

    Ours: a mean over rows as in U's step. Their sum would grow with the number of ratings, and diverge for many.
    """
    xp, weight = namespace(V), used * e * share(O, rated)
    n = xp.sum(xp.astype(used, V.dtype), axis=-1)[..., None, None]
    pull = product(xp.matrix_transpose(V), weight)[..., None, :] - weight[..., None] * V
    moved = (1.0 - rate * decay) * O + rate * pull / xp.clip(n, 1.0, None)
    return xp.where(rated[..., None] & (n > 0), moved, O)  # type: ignore[no-any-return]
