"""FedRAP: a table that everybody shares and one of the device's own, added up: σ(w·(D_i + C_i) + b).

C is averaged over all clients; D, w and b stay. Clicks against drawn negatives by logistic loss, minus λ times how far
D is from C, plus μ times the size of C: both tables shall say something of their own.

After: Li, Long and Zhou 2024 (FedRAP)
Deviation: λ is 0 and μ constant, as in the authors' code but for its λ of .1, where the paper lets them grow;
negatives are drawn outside the client's training data, where that code never draws the test item; the last round
counts, where that code takes the best test round.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, namespace, outer, own_rows, put_rows, rows_of
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Trained, start_noise
from fedrecplus.parts.model._clicks import ClickSettings
from fedrecplus.parts.model._linear_scores import LinearScores, ascent, batches, chances, log_odds, shares
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.settings import Annotated, number

_SURE = 1e-30


class Settings(ClickSettings):
    """Options of the model."""

    factors: Annotated[int, number(1, 4096, "d, columns of C and D")] = 32
    learning_rate: Annotated[float, number(1e-12, 1e6, "step size of both tables, by the mean loss")] = 1000.0
    score_learning_rate: ClassVar[float] = 1e-4
    """step size of the score function; this and the constants below are those of the released code"""
    step_decay: ClassVar[float] = 0.95
    """factor on both step sizes, each local step"""
    round_decay: ClassVar[float] = 0.97
    """factor on both, each round"""
    regularisation: Annotated[float, number(0, 1e6, "weight decay")] = 1e-6
    difference: ClassVar[float] = 0.0
    """λ, of the mean squared difference of D and C; at the .1 of the released code they run apart where rows are few"""
    sparsity: ClassVar[float] = 1e-3
    """μ, of the mean absolute value of C"""
    local_epochs: Annotated[int, number(1, 10_000, "K, most steps over the client's rows in a round")] = 10
    batch_size: Annotated[int, number(0, 10**9, "B, rows per local step; 0: all at once")] = 2048
    tolerance: ClassVar[float] = 1e-4
    """relative change of the loss that ends a round's steps"""
    init_scale: Annotated[float, number(1e-9, 1e3, "standard deviation of start values of both tables")] = 1.0


class FedRAP(LinearScores[Settings]):
    """What all like, and what one person likes, added up."""

    def tree(self) -> dict[str, Leaf]:
        """C, D and (w, b). One device's rows of C name what it clicked."""
        d = self.settings.factors
        return {"C": Leaf.table(d, seen="sums"), "score": Leaf.private(d + 1), "D": Leaf.own(d)}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """C before training: noise."""
        return self.settings.init_scale * start_noise(seed, "start-C", items, self.settings.factors)

    def start_users(self, seed: int, clients: Items, public: PublicItems) -> Array:
        """The same score function and the same D for everybody: noise."""
        D = self.settings.init_scale * start_noise(seed, "start-D", len(public.popularity), self.settings.factors)
        return np.tile(np.concatenate([self.start_score(seed), D.ravel()]), (len(clients), 1))

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """Up to K passes along the gradient of the loss, until it changes no more. All rows decay."""
        settings, used, xp = self.settings, self.drawn(device, rows, broadcast), namespace(broadcast.V)
        score, own = self.split_private(device.U)
        start = rows_of(broadcast.V, used.items)
        C, D = xp.asarray(start, copy=True), own_rows(own, used.items)
        rate, kept, before = xp.zeros_like(score[..., :1]) + settings.round_decay**broadcast.round, 1.0, None
        for _ in range(settings.local_epochs):
            loss = xp.zeros_like(rate)
            for batch in batches(used.items.shape[-1], settings.batch_size):
                rows_there = used.items[..., batch]
                known = (C[..., batch, :], D[..., batch, :], score, used.ratings[..., batch])
                share = shares(rows_there, C.dtype)
                loss = loss + self.loss(*known, share)[..., None] * xp.sum(rows_there >= 0, axis=-1)[..., None]
                by_C, by_D, by_score = self.descent(*known, share)
                steps = xp.astype(xp.any(rows_there >= 0, axis=-1), C.dtype)[..., None]  # padding alone is no batch
                table_rate = (settings.learning_rate * rate * steps)[..., None]
                decay = 1.0 - settings.regularisation * table_rate
                C, D, kept = decay * C, decay * D, kept * decay
                C[..., batch, :] += table_rate * by_C
                D[..., batch, :] += table_rate * by_D
                pull = by_score - settings.regularisation * score
                score = score + settings.score_learning_rate * rate * steps * pull
                rate = rate * settings.step_decay**steps
            if before is not None:
                rate = rate * (xp.abs(loss - before) >= settings.tolerance * xp.abs(before))
            before = loss
        delta = put_rows((kept - 1.0) * rows_of(broadcast.V, rows.items), used.items, C - start)
        D = put_rows(kept * own, used.items, D)
        return Trained(xp.concat([score, D.reshape((*score.shape[:-1], -1))], axis=-1), delta)

    def loss(self, C: Array, D: Array, score: Array, clicked: Array, share: Array) -> Array:
        """Logistic loss − λ mean (D − C)² + μ mean |C|, over the rows that have a share."""
        xp, settings = namespace(C), self.settings
        apart = settings.difference * xp.mean((D - C) ** 2, axis=-1) - settings.sparsity * xp.mean(xp.abs(C), axis=-1)
        logistic = -xp.log(xp.clip(xp.abs(1.0 - clicked - chances(C + D, score)), _SURE, None))
        return xp.sum(share * (logistic - apart), axis=-1)  # type: ignore[no-any-return]

    def descent(self, C: Array, D: Array, score: Array, clicked: Array, share: Array) -> tuple[Array, Array, Array]:
        """How C, D and (w, b) lower the loss: minus its gradients."""
        xp, settings, d = namespace(C), self.settings, C.shape[-1]
        pull = outer(share * (clicked - chances(C + D, score)), score[..., :-1])
        apart = (2.0 * settings.difference / d) * share[..., None] * (D - C)
        sparse = (settings.sparsity / d) * share[..., None] * xp.sign(C)
        return pull - apart - sparse, pull + apart, ascent(C + D, score, clicked, share)

    def logits(self, rows: NDArray[Any], private: NDArray[Any], dense: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
        """w·(D_i + C_i) + b."""
        return log_odds(rows + own, private)
