"""Engines that run the same rounds come to the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data import Ratings
from fedrecplus.engines import engine_of, item_columns, message_of, prepare
from fedrecplus.testing.example import small_ratings

CLOSE = 1e-9
"""how near 64-bit numbers of two engines must be"""


def assert_engines_agree(
    config: Config, ratings: Ratings | None = None, rounds: int = 3, moves: bool = True, engine: str = "fast"
) -> None:
    """Some rounds in the reference and an engine: equal states, costs, sets and weights for predictions."""
    config = replace(config, precision="float64")
    problem = prepare(small_ratings() if ratings is None else ratings, config)
    slow, quick = (engine_of(replace(config, engine=name)) for name in ("reference", engine))
    start = expected = actual = slow.start(problem)
    for _ in range(rounds):
        expected, cost = slow.round(problem, expected)
        actual, quick_cost = quick.round(problem, actual)
        assert quick_cost == cost, f"a round of the {engine} engine costs something else"
    tables = actual.arrays()
    for name, table in expected.arrays().items():
        assert np.isfinite(table).all(), f"{name} is not finite"
        near = CLOSE * max(
            1.0, float(np.abs(table).max(initial=0.0))
        )  # a model that leaves the scale takes its bits along
        np.testing.assert_allclose(tables[name], table, rtol=0, atol=near, err_msg=name)
    if moves:
        assert not np.allclose(expected.server.V, start.server.V), "nothing was learnt"
    clients = problem.cohort(expected.server.round)
    message = message_of(problem, expected)
    sets = [each.item_sets(problem, expected.private, message, clients) for each in (slow, quick)]
    for client in clients.tolist():
        np.testing.assert_array_equal(sets[1][client], sets[0][client], err_msg=f"items of client {client}")
    X = item_columns(problem, expected.server.V)
    weights = [np.asarray(each.user_weights(problem, expected.private, X)) for each in (slow, quick)]
    able = np.diff(problem.ratings.indptr) > 0
    np.testing.assert_allclose(weights[1][able], weights[0][able], rtol=0, atol=CLOSE, err_msg="user weights")
    lists = [each.list_weights(problem, weights[0], X) for each in (slow, quick)]
    assert (lists[0] is None) == (lists[1] is None)
    if lists[0] is not None and lists[1] is not None:
        np.testing.assert_allclose(lists[1], lists[0], rtol=0, atol=CLOSE, err_msg="list weights")
