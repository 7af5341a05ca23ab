"""PFedRec: everybody shares the item table, and each device keeps a score function of its own, σ(w·E_i + b).

Clicks against drawn negatives by logistic loss. In each local step first the score function moves, then the rows of the
table; all rows are sent, and averaged over all clients.

After: Zhang et al. 2023 (PFedRec)
Deviation: negatives are drawn outside the client's training data, where the authors' code never draws the test item;
the last round counts, where it takes the best by validation.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, namespace, outer, put_rows, rows_of
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Trained, start_noise
from fedrecplus.parts.model._clicks import ClickSettings
from fedrecplus.parts.model._linear_scores import LinearScores, ascent, batches, chances, log_odds, shares
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.settings import Annotated, number, text


class Settings(ClickSettings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, columns of E")] = 32
    learning_rate: Annotated[float, number(1e-12, 1e6, "step size of the score function")] = 0.1
    item_learning_rate: ClassVar[float] = 8.0
    """step size of E, times items and by the mean loss; 0.1 × 80 in the authors' code"""
    local_epochs: Annotated[int, number(1, 10_000, "K, passes over the client's rows in a round")] = 1
    batch_size: Annotated[int, number(0, 10**9, "B, rows per local step; 0: all at once")] = 256
    table: Annotated[
        Literal["shared", "own"],
        text("what lists are scored with: E, or the device's own after its last local step, as the authors' code does"),
    ] = "shared"
    init_scale: Annotated[float, number(1e-9, 1e3, "standard deviation of E's start values")] = 1.0


class PFedRec(LinearScores[Settings]):
    """A linear score function for each person."""

    def tree(self) -> dict[str, Leaf]:
        """E, and (w, b). One device's rows of E name what it clicked."""
        d = self.settings.factors
        shared = {"E": Leaf.table(d, seen="sums"), "score": Leaf.private(d + 1)}
        return {**shared, "tuned": Leaf.own(d)} if self.settings.table == "own" else shared

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """E before training: noise."""
        return self.settings.init_scale * start_noise(seed, "start-E", items, self.settings.factors)

    def start_users(self, seed: int, clients: Items, public: PublicItems) -> Array:
        """The same score function for everybody: noise. A table of its own begins as E."""
        start = self.start_score(seed)
        if self.own_columns:
            start = np.append(start, self.start_items(seed, len(public.popularity), public))
        return np.tile(start, (len(clients), 1))

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """In each batch a step of the score function, and one of the rows by the function as it is then."""
        settings, xp, used = self.settings, namespace(broadcast.V), self.drawn(device, rows, broadcast)
        start, score = rows_of(broadcast.V, used.items), self.split_private(device.U)[0]
        E, item_rate = xp.asarray(start, copy=True), settings.item_learning_rate * len(broadcast.V)
        for _ in range(settings.local_epochs):
            for batch in batches(used.items.shape[-1], settings.batch_size):
                table, clicked = E[..., batch, :], used.ratings[..., batch]
                share = shares(used.items[..., batch], E.dtype)
                score = score + settings.learning_rate * ascent(table, score, clicked, share)
                errors = share * (clicked - chances(table, score))
                E[..., batch, :] += item_rate * outer(errors, score[..., :-1])
        whole = rows_of(broadcast.V, rows.items)
        delta = put_rows(xp.zeros_like(whole), used.items, E - start)
        if not self.own_columns:
            return Trained(score, delta)
        return Trained(xp.concat([score, (whole + delta).reshape((*score.shape[:-1], -1))], axis=-1), delta)

    def own_table(self, V: NDArray[Any]) -> NDArray[Any]:
        """A newcomer's is E."""
        return V

    def logits(self, rows: NDArray[Any], private: NDArray[Any], dense: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
        """w·E_i + b, over the table that lists are scored with."""
        return log_odds(own if self.own_columns else rows, private)
