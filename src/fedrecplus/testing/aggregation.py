"""What every aggregation rule promises, whether it weighs uploads (``weight``) or joins them (``aggregate``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.config import assign
from fedrecplus.parts import Aggregation
from fedrecplus.parts.aggregation import WeightedAggregation
from fedrecplus.protocol import Broadcast, PublicItems, Upload
from fedrecplus.rounds import divide, outgoing, sums_of, weights_of
from fedrecplus.testing.contract import Contract

ITEMS, COLUMNS = 9, 3


class AggregationContract(Contract[Aggregation[Any]]):
    """A mean of some kind, per item, of what clients uploaded for it."""

    kind = "aggregation"

    def aggregate(self, uploads: Sequence[Upload], *more: str) -> Array:
        """The table that uploads amount to, per item."""
        config = self.config(*more)
        return divide(sums_of(uploads, some_broadcast(), config), config.aggregation.normalise)

    def test_agreement_is_a_fixed_point(self) -> None:
        """Where all clients send the same rows, these are the aggregate; rows that nobody sent stay."""
        items, delta = np.array([0, 2, 3, 8]), np.random.default_rng(4).normal(size=(4, COLUMNS))
        table = self.aggregate([Upload(client, items, delta) for client in range(5)])
        np.testing.assert_allclose(table[items], delta, rtol=0, atol=1e-12)
        assert (np.delete(table, items, axis=0) == 0.0).all()

    def test_order_of_clients_is_irrelevant_and_uploads_are_not_changed(self) -> None:
        """Uploads arrive in any order."""
        uploads = some_uploads()
        expected = self.aggregate(uploads)
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(len(uploads))
            np.testing.assert_allclose(self.aggregate([uploads[i] for i in order]), expected, rtol=0, atol=1e-12)
        for upload, untouched in zip(uploads, some_uploads(), strict=True):
            np.testing.assert_array_equal(upload.delta, untouched.delta)

    def test_one_client_rules_alone_and_none_moves_nothing(self) -> None:
        """The smallest cohorts."""
        upload = some_uploads()[2]
        np.testing.assert_allclose(self.aggregate([upload])[upload.items], upload.delta, rtol=0, atol=1e-12)
        assert (self.aggregate([]) == 0.0).all()

    def test_every_row_lies_between_what_clients_uploaded_for_it(self) -> None:
        """No rule goes further than the client that goes furthest."""
        uploads = some_uploads(clients=12)
        table = self.aggregate(uploads)
        for item in range(ITEMS):
            rows = np.concatenate([upload.delta[upload.items == item] for upload in uploads])
            assert (table[item] >= rows.min(axis=0) - 1e-12).all()
            assert (table[item] <= rows.max(axis=0) + 1e-12).all()

    def test_weights_are_positive_and_finite_whoever_computes_them(self) -> None:
        """A client that weighs itself changes nothing but what the server sees. Rules that join have no weights.

        Weights of clients may have a unit that everybody knows: a factor cancels.
        """
        if not isinstance(self.part, WeightedAggregation):
            return
        for seed, size in ((0, 1.0), (1, 50.0), (2, 0.0)):
            message, uploads, config = some_broadcast(seed, size), some_uploads(seed=seed), self.config()
            weights = np.array(weights_of(uploads, message, config))
            assert np.isfinite(weights).all()
            assert (weights > 0.0).all()
            on_client = assign(config, ["aggregation.weigh_on=client"])
            sent = [outgoing(upload, 0, message, on_client) for upload in uploads]
            own = np.array(weights_of(sent, message, on_client))
            factor = own[0] / weights[0]
            np.testing.assert_allclose(own, factor * weights, rtol=1e-12)
            expected, actual = sums_of(uploads, message, config), sums_of(sent, message, on_client)
            np.testing.assert_allclose(actual.total, factor * expected.total, rtol=1e-12)


def some_uploads(clients: int = 7, seed: int = 0) -> list[Upload]:
    """Uploads as a round might bring them."""
    rng = np.random.default_rng(seed)
    uploads = []
    for client in range(clients):
        items = np.sort(rng.choice(ITEMS, rng.integers(1, ITEMS), replace=False))
        uploads.append(Upload(client, items, rng.normal(size=(len(items), COLUMNS))))
    return uploads


def some_broadcast(seed: int = 1, step: float = 1.0, covariance: str = "none") -> Broadcast:
    """What these clients were told, with a last step of some size."""
    rng = np.random.default_rng(seed)
    V, last_step = rng.normal(size=(ITEMS, COLUMNS)), step * rng.normal(size=(ITEMS, COLUMNS))
    public = PublicItems(np.zeros((ITEMS, 0)), np.ones(ITEMS, np.int64))
    message = Broadcast(3, V, last_step, np.zeros((0, COLUMNS)), np.zeros((0, 0)), public)
    if covariance == "diagonal":
        return replace(message, last_covariance=rng.uniform(0.0, 2.0, (ITEMS, COLUMNS)))
    if covariance == "full":
        root = rng.normal(size=(V.size, V.size)) / np.sqrt(V.size)
        return replace(message, last_covariance=root @ root.T)
    return message
