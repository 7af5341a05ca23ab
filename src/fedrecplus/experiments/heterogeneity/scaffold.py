"""SCAFFOLD for matrix factorisation: every client corrects its local steps by how its gradient differs from the mean.

It changes local training, not the weights, so it is an engine here: rounds of ``mf`` without pseudo items, all clients
at once in NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.config import Config
from fedrecplus.engines import Engine, PrivateState, Problem
from fedrecplus.errors import UserError
from fedrecplus.experiments.heterogeneity.wrapped_engine import WrappedEngine
from fedrecplus.parts.model.mf import Mf
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload

Clients = NDArray[np.int64]


class ScaffoldEngine(WrappedEngine):
    """Rounds with control variates: a client keeps one per rated row, the server one per item."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.own: Array | None = None
        """c_u, a row per rating"""
        self.mean: Array | None = None
        """c, a row per item: the mean over its raters"""

    def join(self, problem: Problem, uploads: Sequence[Upload], message: Broadcast) -> tuple[Sums, Traffic]:
        """A client sends its control variates' change beside its update: as many numbers again."""
        sums, traffic = super().join(problem, uploads, message)
        return sums, Traffic(2 * traffic.bytes_up, traffic.bytes_down)

    def uploads(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState]:
        """K steps of U and V with corrected gradients, then new control variates (the paper's option II).

        After: Karimireddy et al. 2020 (SCAFFOLD). Deviation: rows are sparse, so c is a mean over an item's raters.
        """
        ratings, shape = problem.ratings, message.V.shape
        if self.own is None or self.mean is None:
            self.own, self.mean = np.zeros((len(ratings), shape[1])), np.zeros(shape)
        rows = np.flatnonzero(np.isin(ratings.client_of_rating, clients))
        items, number = ratings.items[rows].astype(np.int64), np.searchsorted(clients, ratings.client_of_rating[rows])
        starts = np.searchsorted(number, np.arange(len(clients)))
        U, V0 = private.U[clients, :-1].astype(np.float64), message.V[items].astype(np.float64)
        correction = self.mean[items] - self.own[rows]
        model = require_plain_mf(problem.config)
        rate = model.local_rate(message.round)
        U, V = _local_training(U, V0, ratings.standard_values[rows], number, starts, correction, model, rate)
        change = -self.mean[items] - (V - V0) / (model.local_epochs * rate)
        self.own[rows] += change
        raters = np.bincount(ratings.items, minlength=shape[0])[:, None]
        moved = np.zeros(shape)
        np.add.at(moved, items, change)
        self.mean = self.mean + moved / np.maximum(raters, 1)
        private = private.copy()
        private.U[clients, :-1] = U
        parts = zip(clients.tolist(), np.split(items, starts[1:]), np.split(V - V0, starts[1:]), strict=True)
        return [Upload(client, own, delta) for client, own, delta in parts], private


def require_plain_mf(config: Config) -> Mf:
    """The model; refuses what these rounds can't do."""
    model = config.model
    if not isinstance(model, Mf) or model.BIASES or model.batch_size or config.pseudo_items.rule != "none":
        raise UserError(
            "SCAFFOLD is here for model.rule=mf without pseudo items and batches", "leave the rule scaffold away"
        )
    return model


def _local_training(
    U: Array,
    V: Array,
    targets: Array,
    number: Clients,
    starts: Clients,
    correction: Array,
    model: Mf,
    rate: float,
) -> tuple[Array, Array]:
    """The steps of ``parts/model/mf.py``, a row per rating, with c − c_u added to V's gradient."""
    decay, counts = model.settings.regularisation, np.bincount(number)[:, None]
    for _ in range(model.local_epochs):
        e = targets - (U[number] * V).sum(axis=1)
        U = U - rate * (decay * U - np.add.reduceat(e[:, None] * V, starts) / counts)
        e = targets - (U[number] * V).sum(axis=1)
        V = V - rate * (decay * V - e[:, None] * U[number] + correction)
    return U, V
