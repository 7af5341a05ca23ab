"""Every client's gradient at one state, row by row.

The theory's x is the shared table V; F_u is client u's loss over its rows with its current U, a sum over rows, so that
a local step is −η_L ∇F_u. A row of it depends on one row of V alone, so no client × table array is needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.device import Decoys, Rows, merge
from fedrecplus.engines import Engine, PrivateState, Problem, SimulationState, device_of, message_of
from fedrecplus.parts.model import mf
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import virtual_ratings


@dataclass(frozen=True)
class GradientRows:
    """All rows of all clients of a cohort: the gradient of each, and whose it is."""

    clients: int
    """how many there are; ``client`` counts from zero to it"""
    client: NDArray[np.int64]
    item: NDArray[np.int64]
    rated: NDArray[np.bool_]
    gradient: Array
    """g_ui = λ V_i − e_ui U_u, a line per row"""
    loss: Array
    """½e² + ½λ‖V_i‖², a number per row"""
    items: int
    smooth: float
    """max_u ‖U_u‖² + λ: the Lipschitz constant of every ∇F_u in V, with U fixed"""

    @property
    def count(self) -> Array:
        """Rows of each client."""
        return self.sums(np.ones(len(self.client)))

    @property
    def alpha(self) -> Array:
        """Share of rated rows of each client. Paper: Section "Theoretical analysis" """
        return self.sums(self.rated.astype(np.float64)) / self.count

    def sums(self, values: Array) -> Array:
        """Sums over each client's rows."""
        totals: Array = np.bincount(self.client, weights=values, minlength=self.clients).astype(np.float64)
        return totals

    def scaled(self, factor: Array) -> GradientRows:
        """The same rows with gradient and loss times a factor per row."""
        return replace(self, gradient=self.gradient * factor[:, None], loss=self.loss * factor)

    def true(self) -> GradientRows:
        """∇F̄_u: rated rows alone, scaled up to represent all rows of the client."""
        return self.scaled(np.where(self.rated, 1.0 / self.alpha[self.client], 0.0))

    def norms(self) -> Array:
        """‖∇F_u‖² of each client: its rows are disjoint, so it is a sum over them."""
        return self.sums((self.gradient**2).sum(axis=1))

    def mean(self, weights: Array) -> Array:
        """Σ_u w_u ∇F_u, a table."""
        table = np.zeros((self.items, self.gradient.shape[1]))
        np.add.at(table, self.item, self.gradient * weights[self.client][:, None])
        return table

    def objective(self) -> float:
        """f = mean over clients of F_u."""
        return float(self.loss.sum() / self.clients)

    def local_variance(self, batch_size: int) -> Array:
        """E‖∇F_u(x, ξ) − ∇F_u(x)‖² for a batch of B of n rows, drawn without replacement: ‖∇F_u‖²(n − B)/B.

        Zero for full batches. Paper: Assumption 2
        """
        batch = np.minimum(batch_size or np.inf, self.count)
        return self.norms() * (self.count - batch) / batch


def rows_at(engine: Engine, problem: Problem, state: SimulationState) -> GradientRows:
    """The rows of the next round's cohort. See ``parts/model/mf.py`` for the equations."""
    clients, message = problem.cohort(state.server.round), message_of(problem, state)
    decay, parts = problem.config.model.settings.regularisation, []
    for number, own in enumerate(_device_rows(engine, problem, state.private, message, clients)):
        U, V = state.private.U[clients[number]].astype(np.float64), state.server.V[own.items].astype(np.float64)
        gradient = V - mf.item_step(U, V, own.ratings, 1.0, decay)
        loss = 0.5 * mf.errors(U, V, own.ratings) ** 2 + 0.5 * decay * (V**2).sum(axis=1)
        parts.append((np.full(len(own.items), number), own.items, own.rated, gradient, loss))
    client, item, rated, gradient, loss = (np.concatenate(column) for column in zip(*parts, strict=True))
    largest = float((state.private.U[clients, :-1].astype(np.float64) ** 2).sum(axis=1).max())
    return GradientRows(len(clients), client, item, rated, gradient, loss, problem.ratings.item_count, largest + decay)


def _device_rows(
    engine: Engine, problem: Problem, private: PrivateState, message: Broadcast, clients: NDArray[np.int64]
) -> list[Rows]:
    """What each client trains on: the engine chooses the pseudo items, for all clients at once."""
    sets, config, rows = engine.item_sets(problem, private, message, clients), problem.config, []
    for client in clients.tolist():
        device = device_of(problem, private, client)
        if device.kept is not None and not config.virtual_ratings.settings.refresh:
            pseudo = device.kept
        else:
            items = np.setdiff1d(sets[client], device.items)
            pseudo = Decoys(items, virtual_ratings(items, device, message, config))
        rows.append(merge(device, pseudo))
    return rows
