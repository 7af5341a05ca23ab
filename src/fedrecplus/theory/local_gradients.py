"""Every client's gradient at one state, row by row.

The theory's x is the shared table V; F_u is client u's loss over its rows with its U as it stands, a sum over rows, so
that a local step is −η_L ∇F_u. A row of it depends on one row of V alone, so no client × table array is needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation._covariance import batch_rows
from fedrecplus.fast.pseudo import pseudo_rows
from fedrecplus.gradients import step_sizes
from fedrecplus.model import prior
from fedrecplus.simulation import Problem, SimulationState

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """All rows of all clients that take part: the gradient of each, and whose it is."""

    clients: int
    """how many there are; ``client`` counts from zero to it"""
    client: NDArray[np.int64]
    item: NDArray[np.int64]
    rated: NDArray[np.bool_]
    gradient: Array
    """g_ui = λ(V_i − prior) − e_ui U_u, a line per row"""
    loss: Array
    """½e² + ½λ‖V_i − prior‖², a number per row"""
    items: int
    smooth: float
    """max_u ‖U_u‖² + λ: the Lipschitz constant of every ∇F_u in V, with U as it stands"""

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

    def scaled(self, factor: Array) -> Rows:
        """The same rows with gradient and loss times a factor per row."""
        parts = (self.gradient * factor[:, None], self.loss * factor, self.items, self.smooth)
        return Rows(self.clients, self.client, self.item, self.rated, *parts)

    def true(self) -> Rows:
        """∇F̄_u: rated rows alone, scaled up to stand for all rows of the client."""
        return self.scaled(np.where(self.rated, 1.0 / self.alpha[self.client], 0.0))

    def norms(self) -> Array:
        """‖∇F_u‖² of each client: its rows are disjoint, so it is a sum over them."""
        return self.sums((self.gradient**2).sum(axis=1))

    def mean(self, weights: Array) -> Array:
        """Σ_u w_u ∇F_u, a table."""
        table = np.zeros((self.items, self.gradient.shape[1]))
        weighted = self.gradient * weights[self.client][:, None]
        for column in range(table.shape[1]):
            table[:, column] = np.bincount(self.item, weights=weighted[:, column], minlength=self.items)
        return table

    def objective(self) -> float:
        """f = mean over clients of F_u."""
        return float(self.loss.sum() / self.clients)


def rows_at(problem: Problem, state: SimulationState) -> Rows:
    """The rows of the clients that take part in the next round. See ``gradients.item_step`` for the equation."""
    clients = problem.taking_part(state.server.round)
    _, pseudo = pseudo_rows(problem, state, clients)
    ratings, number = problem.ratings, np.full(problem.ratings.clients, -1)
    number[clients] = np.arange(len(clients))
    owner = np.concatenate([ratings.client_of_rating, np.repeat(np.arange(ratings.clients), np.diff(pseudo.indptr))])
    here = number[owner] >= 0
    item = np.concatenate([ratings.items, pseudo.items]).astype(np.int64)[here]
    target = np.concatenate([ratings.standard_values, pseudo.ratings.astype(np.float64)])[here] - problem.mean
    rated, owner = (np.arange(len(here)) < len(ratings))[here], owner[here]
    U, V = state.U[owner].astype(np.float64), state.server.V[item].astype(np.float64)
    e = target - np.einsum("ij,ij->i", U[:, :-1], V) - U[:, -1]
    decay = step_sizes(problem.config, state.server.round).decay_V
    away = V - prior(problem.config.model, problem.mean)[1]
    gradient = decay * away - e[:, None] * U[:, :-1]
    loss = 0.5 * e**2 + 0.5 * decay * (away**2).sum(axis=1)
    sizes = (state.U[clients, :-1].astype(np.float64) ** 2).sum(axis=1)
    return Rows(
        len(clients), number[owner], item, rated, gradient, loss, ratings.item_count, float(sizes.max()) + decay
    )


def local_variance(rows: Rows, problem: Problem) -> Array:
    """E‖∇F_u(x, ξ) − ∇F_u(x)‖² for a batch of B of the client's n rows, drawn without replacement: ‖∇F_u‖²(n − B)/B.

    Zero for full batches. Paper: Assumption 2
    """
    batch = np.array([batch_rows(int(n), problem.config) for n in rows.count], dtype=np.float64)
    variance: Array = rows.norms() * (rows.count - batch) / batch
    return variance
