"""FedEBA+: clients whose loss is high count more, and the uniform mean of everybody's first step is mixed in.

A weight follows from a loss, which no upload has, so it is an engine of this study: the uploads of another engine,
joined otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.config import assign
from fedrecplus.engines import Engine, PrivateState, Problem, item_columns
from fedrecplus.experiments.heterogeneity.wrapped_engine import WrappedEngine
from fedrecplus.protocol import Broadcast, Sums, Traffic, Upload
from fedrecplus.rounds import divide, weighted_sum

Clients = NDArray[np.int64]
TEMPERATURE = 0.5
"""τ, in units of a loss ½e² on the scale 1–5"""
ALIGNMENT = 0.5
"""α, the share of the mean of first steps"""


class FedEbaEngine(WrappedEngine):
    """Rounds in which each client also tells its loss."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.losses = np.zeros(0)
        """of every client that took part last, where the round began"""
        self.first: list[Upload] = []
        """what those clients would have sent after one local epoch"""

    def uploads(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[list[Upload], PrivateState]:
        """Those of the other engine; losses and first steps are kept until they are joined."""
        self.losses = self._losses(problem, private, message)
        self.first = []
        if problem.config.model.local_epochs > 1:
            once = replace(problem, config=assign(problem.config, ["model.local_epochs=1"]))
            self.first = self.engine.uploads(once, private, message, clients)[0]
        return self.engine.uploads(problem, private, message, clients)

    def join(self, problem: Problem, uploads: Sequence[Upload], message: Broadcast) -> tuple[Sums, Traffic]:
        """(1 − α) Σ p_u Δ_u + α Δ̄, p_u ∝ exp(F_u/τ), and Δ̄ the uniform mean of updates after one local epoch.

        Deviation: α in every round. The paper changes the local gradients instead where losses differ by more than an
        angle, for which devices talk to the server twice in a round; and rows are sparse, so means are over those who
        sent a row, as in the other rules.
        After: Wang, Wang, Karimireddy, Tang 2023 (FedEBA+)
        """
        rule, people, first = problem.config.aggregation.normalise, len(uploads), self.first or uploads
        weighed = weighted_sum(uploads, self.weights(uploads).tolist(), message.V.shape)
        even = weighted_sum(first, [1.0] * people, message.V.shape)
        table = (1.0 - ALIGNMENT) * divide(weighed, rule) + ALIGNMENT * divide(even, rule)
        # what the server divides these by, so that its mean is the table
        behind = even.weights[:, None] if rule == "item" else float(people if rule == "cohort" else 1)
        sent = sum(upload.bytes for upload in [*uploads, *self.first])
        return Sums(table * behind, even.weights, float(people), people), Traffic(sent, 0)

    def weights(self, uploads: Sequence[Upload]) -> Array:
        """p_u ∝ exp(F_u/τ); the largest loss is taken off all, so that no exponential is too large."""
        losses = self.losses[[upload.client for upload in uploads]]
        raised = np.exp((losses - losses.max(initial=-np.inf)) / TEMPERATURE)
        weights: Array = raised / raised.sum()
        return weights

    def _losses(self, problem: Problem, private: PrivateState, message: Broadcast) -> Array:
        """F_u: half the mean squared error over the rated rows."""
        ratings, X = problem.ratings, item_columns(problem, message.V).astype(np.float64)
        W = self.user_weights(problem, private, X).astype(np.float64)
        client = ratings.client_of_rating
        e = ratings.standard_values - (W[client] * X[ratings.items]).sum(axis=1)
        counts = np.maximum(np.diff(ratings.indptr), 1)
        losses: Array = 0.5 * np.bincount(client, weights=e**2, minlength=ratings.clients) / counts
        return losses
