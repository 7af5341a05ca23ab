"""PFedRec: everybody shares the item table, and each device keeps a score function of its own, σ(w·E_i + b).

Clicks against drawn negatives by logistic loss. In each local step first the score function moves, then the rows of the
table; all rows are sent, and averaged over all clients.

After: Zhang et al. 2023 (PFedRec)
Deviation: a local step is over all of a client's rows, not over batches of 256. Negatives are drawn outside the
client's training data; the authors' code never draws the test item, and scores with each client's last local table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import namespace, outer, product, rows_of, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Trained
from fedrecplus.parts.model._clicks import ClickModel, ClickSettings
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import normal, subkey
from fedrecplus.settings import Annotated, number

Array = NDArray[np.float64]
Items = NDArray[np.int64]
_LARGEST = 30.0
"""log odds beyond this are certain"""
_NEWCOMER_STEPS = 200
"""on a newcomer's score function, from zero"""


class Settings(ClickSettings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, columns of E")] = 32
    learning_rate: Annotated[float, number(1e-12, 1e6, "step size of the score function")] = 0.1
    item_learning_rate: Annotated[float, number(1e-12, 1e6, "step size of a row of E, by its own term of the loss")] = (
        25.0
    )
    local_epochs: Annotated[int, number(1, 10_000, "K, steps over the client's rows in a round")] = 1
    init_scale: Annotated[float, number(1e-9, 1e3, "standard deviation of start values")] = 0.1


class PFedRec(ClickModel[Settings]):
    """A linear score function for each person."""

    def tree(self) -> dict[str, Leaf]:
        """E, and (w, b). One device's rows of E name what it clicked."""
        return {"E": Leaf.table(self.settings.factors, seen="sums"), "score": Leaf.private(self.settings.factors + 1)}

    @property
    def local_epochs(self) -> int:
        """K."""
        return self.settings.local_epochs

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """E before training: noise."""
        cells = np.arange(items * self.settings.factors, dtype=np.uint64).reshape(items, -1)
        return self.settings.init_scale * normal(subkey(seed, "start-E"), cells)

    def start_users(self, seed: int, clients: Items, public: PublicItems) -> Array:
        """The same score function for everybody: noise."""
        start = self.settings.init_scale * normal(subkey(seed, "start-score"), np.arange(self.user_columns))
        return np.tile(start, (len(clients), 1))

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """K times a step of the score function, and one of the rows by the function as it is then."""
        settings, start = self.settings, rows_of(broadcast.V, rows.items)
        E, U, weights = start, device.U, self.drawn(device, rows, broadcast)
        clicked = namespace(E).astype(rows.rated, E.dtype)
        for _ in range(settings.local_epochs):
            U = self._step(E, U, clicked, weights)
            errors = weights * (clicked - chances(E, U))
            E = E + settings.item_learning_rate * outer(errors, U[..., :-1])
        return Trained(U, E - start)

    def _step(self, E: Array, U: Array, clicked: Array, weights: Array) -> Array:
        """(w, b) along the gradient of the mean logistic loss."""
        xp = namespace(E)
        errors = weights * (clicked - chances(E, U))
        n = xp.clip(xp.sum(weights, axis=-1), 1.0, None)[..., None]
        pull = xp.concat([product(xp.matrix_transpose(E), errors), xp.sum(errors, axis=-1)[..., None]], axis=-1)
        moved: Array = U + self.settings.learning_rate * pull / n
        return moved

    def fitted(self, table: NDArray[Any], dense: NDArray[Any], clicked: Array, weights: Array) -> Array:
        """The score function after many steps with E as it is."""
        U = zeros((*clicked.shape[:-1], self.user_columns), table)
        for _ in range(_NEWCOMER_STEPS):
            U = self._step(table, U, clicked, weights)
        return U

    def logits(self, rows: NDArray[Any], private: NDArray[Any], dense: NDArray[Any]) -> NDArray[Any]:
        """w·E_i + b."""
        return log_odds(rows, private)


def log_odds(E: NDArray[Any], U: NDArray[Any]) -> NDArray[Any]:
    """w·E_i + b for all rows."""
    odds: NDArray[Any] = product(E, U[..., :-1]) + U[..., -1:]
    return odds


def chances(E: NDArray[Any], U: NDArray[Any]) -> NDArray[Any]:
    """σ(w·E_i + b)."""
    xp = namespace(E)
    return 1.0 / (1.0 + xp.exp(-xp.clip(log_odds(E, U), -_LARGEST, _LARGEST)))  # type: ignore[no-any-return]
