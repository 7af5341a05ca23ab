"""FedRecon: a device keeps nothing, and makes its factors anew in every round, r̂ = μ + u·V_i.

Half of the client's rows, drawn anew each round, are the support: u is reconstructed from them, by gradient steps from
zero with V as it is. The other half, the query, says how V should move for such a u. A client that comes once is as
good as one that comes always, and a newcomer's factors are made in the same way.

After: Singhal et al. 2021 (Federated Reconstruction)
Deviation: a row's changes are averaged over the clients that sent the row, not over all, weighed by their ratings.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, in_numpy, like, namespace, outer, product, rows_of, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Model, Trained, keyed_order, start_noise
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.settings import Annotated, Settings as _Settings, number


class Settings(_Settings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, columns of V")] = 20
    reconstruction_steps: ClassVar[int] = 25
    """steps that u is reconstructed by, from zero: more change nothing"""
    reconstruction_rate: ClassVar[float] = 0.5
    """their size, on the mean loss"""
    learning_rate: Annotated[float, number(1e-12, 1e6, "η_L, step size of a row of V")] = 0.5
    local_epochs: Annotated[int, number(1, 10_000, "K, steps of V over the query rows in a round")] = 1
    regularisation: Annotated[float, number(0, 1e6, "λ, L2 regularisation of u and of the rows of V")] = 0.08
    init_scale: Annotated[float, number(1e-9, 1e3, "standard deviation of V's start values")] = 0.3


class FedRecon(Model[Settings]):
    """Matrix factorisation with devices that remember nothing."""

    def tree(self) -> dict[str, Leaf]:
        """V alone."""
        return {"V": Leaf.table(self.settings.factors)}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """V before training: noise."""
        return self.settings.init_scale * start_noise(seed, "start-V", items, self.settings.factors)

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """u from the support, and K steps of V's rows by it over the query."""
        settings, start = self.settings, rows_of(broadcast.V, rows.items)
        support, query = self._halves(device, rows, broadcast)
        targets, V = rows.ratings - broadcast.public.mean, start
        u = self.reconstructed(V, targets, support)
        for _ in range(settings.local_epochs):
            pull = outer(query * (targets - product(V, u)), u)
            V = V + settings.learning_rate * (pull - settings.regularisation * query[..., None] * V)
        return Trained(device.U, V - start)

    def _halves(self, device: Device, rows: Rows, broadcast: Broadcast) -> tuple[Array, Array]:
        """1 for the rows of each half, 0 for the others; who has a single row takes it for both."""
        items = in_numpy(rows.items)
        place = np.argsort(keyed_order(device, "support", broadcast.round, items, items >= 0), axis=-1)
        n = (items >= 0).sum(axis=-1)[..., None]
        support, query = place < (n + 1) // 2, (place >= np.minimum((n + 1) // 2, n - 1)) & (place < n)
        return like(support & (items >= 0), broadcast.V), like(query, broadcast.V)

    def reconstructed(self, V: Array, targets: Array, used: Array) -> Array:
        """u by steps along the gradient of ½ mean e² + ½ λ‖u‖², from zero."""
        settings, xp = self.settings, namespace(V)
        u, share = zeros((*V.shape[:-2], V.shape[-1]), V), used / xp.clip(xp.sum(used, axis=-1)[..., None], 1.0, None)
        for _ in range(settings.reconstruction_steps):
            pull = product(xp.matrix_transpose(V), share * (targets - product(V, u)))
            u = u + settings.reconstruction_rate * (pull - settings.regularisation * u)
        return u

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (μ, V)."""
        xp = namespace(V)
        X: NDArray[Any] = xp.concat([xp.zeros_like(V[:, :1]) + public.mean, V], axis=1)
        return X

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """(1, u), with u reconstructed from all ratings."""
        x, present = rows_of(X, items), namespace(X).astype(items >= 0, X.dtype)
        u = self.reconstructed(x[..., 1:], present * (ratings - public.mean), present)
        xp = namespace(X)
        return xp.concat([xp.ones_like(u[..., :1]), u], axis=-1)  # type: ignore[no-any-return]
