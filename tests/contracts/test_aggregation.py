"""What every aggregation rule promises. A new file in aggregation/ is enrolled by being there.

A rule has ``weight`` (of one upload) or ``aggregate`` (of all of them); what is promised here holds for both kinds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrecplus.aggregation._joining import join
from fedrecplus.config import assign
from fedrecplus.parts import choices, part
from fedrecplus.protocol import Upload
from fedrecplus.rounds.server import aggregate_of
from tests.contracts.some_uploads import COLUMNS, ITEMS, aggregate, server_state, settings_of, some_uploads

RULES = choices("aggregation")
WEIGHTED = [rule for rule in RULES if hasattr(part("aggregation", rule), "weight")]
READINGS = ["table", "own", "mean-own"]
NO_SPREAD = np.zeros((0, COLUMNS))


@pytest.mark.parametrize("rule", RULES)
def test_agreement_is_a_fixed_point(rule: str) -> None:
    items, delta = np.array([0, 2, 3, 8]), np.random.default_rng(4).normal(size=(4, COLUMNS))
    uploads = [Upload(client, items, delta) for client in range(5)]
    table = aggregate(uploads, settings_of(rule, "aggregation.normalise=item"))
    np.testing.assert_allclose(table[items], delta, rtol=0, atol=1e-12)
    assert (np.delete(table, items, axis=0) == 0.0).all()


@pytest.mark.parametrize("rule", RULES)
def test_order_of_clients_is_irrelevant(rule: str) -> None:
    uploads = some_uploads()
    settings = settings_of(rule)
    expected = aggregate(uploads, settings)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(uploads))
        np.testing.assert_allclose(aggregate([uploads[i] for i in order], settings), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_one_client_rules_alone(rule: str) -> None:
    upload = some_uploads()[2]
    table = aggregate([upload], settings_of(rule))
    np.testing.assert_allclose(table[upload.items], upload.delta, rtol=0, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_rows_that_nobody_uploaded_stay(rule: str) -> None:
    uploads = [replace(u, items=u.items[u.items < 6], delta=u.delta[u.items < 6]) for u in some_uploads()]
    uploads = [upload for upload in uploads if len(upload.items)]
    assert (aggregate(uploads, settings_of(rule))[6:] == 0.0).all()


@pytest.mark.parametrize("rule", RULES)
def test_every_row_lies_between_what_clients_uploaded_for_it(rule: str) -> None:
    uploads = some_uploads(clients=12)
    table = aggregate(uploads, settings_of(rule))
    for item in range(ITEMS):
        rows = np.concatenate([upload.delta[upload.items == item] for upload in uploads])
        assert (table[item] >= rows.min(axis=0) - 1e-12).all()
        assert (table[item] <= rows.max(axis=0) + 1e-12).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_round_without_clients_moves_nothing(rule: str) -> None:
    for normalise in ("item", "clients", "sum"):
        assert (aggregate([], settings_of(rule, f"aggregation.normalise={normalise}")) == 0.0).all()


@pytest.mark.parametrize("rule", RULES)
def test_uploads_are_not_changed(rule: str) -> None:
    uploads = some_uploads()
    copies = [(upload.items.copy(), upload.delta.copy()) for upload in uploads]
    first = aggregate(uploads, settings_of(rule))
    assert (first == aggregate(uploads, settings_of(rule))).all()
    for upload, (items, delta) in zip(uploads, copies, strict=True):
        assert (upload.items == items).all()
        assert (upload.delta == delta).all()


@pytest.mark.parametrize("rule", WEIGHTED)
@pytest.mark.parametrize("reading", READINGS)
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), temperature=st.floats(0.0, 3.0), bound=st.floats(0.0, 2.0), scale=st.floats(0, 50))
def test_weights_are_on_the_simplex(
    rule: str, reading: str, seed: int, temperature: float, bound: float, scale: float
) -> None:
    changes = [
        f"aggregation.rows={reading}", f"aggregation.temperature={temperature}", f"aggregation.bound={bound}",
    ]  # fmt: skip
    how, step = settings_of(rule, *changes), scale * server_state(seed).last_step
    weigh = part("aggregation", rule).weight
    weights = np.array([weigh(u.items, u.delta, step, NO_SPREAD, how) for u in some_uploads(seed=seed)])
    assert np.isfinite(weights).all()
    assert (weights > 0.0).all()
    p = weights / weights.sum()
    assert p.sum() == pytest.approx(1.0)
    assert ((p >= 0.0) & (p <= 1.0)).all()


@pytest.mark.parametrize("rule", WEIGHTED)
@pytest.mark.parametrize("normalise", ["item", "clients", "sum"])
def test_a_client_that_weighs_itself_changes_nothing_but_what_the_server_sees(rule: str, normalise: str) -> None:
    on_server = settings_of(rule, f"aggregation.normalise={normalise}", "aggregation.global_step=last")
    on_client = assign(on_server, ["aggregation.weigh_on=client"])
    state, uploads = server_state(), some_uploads()
    weigh = part("aggregation", rule).weight
    weights = [weigh(u.items, u.delta, state.last_step, NO_SPREAD, on_client) for u in uploads]
    sent = [replace(u, delta=w * u.delta, weight=w) for u, w in zip(uploads, weights, strict=True)]
    expected = aggregate_of(state, uploads, on_server)
    np.testing.assert_allclose(aggregate_of(state, sent, on_client), expected, rtol=1e-12, atol=1e-12)


def test_over_all_clients_the_aggregate_is_the_sum_of_p_times_update() -> None:
    uploads, weights = some_uploads(), [1.0, 2.0, 0.5, 4.0, 1.0, 3.0, 0.25]
    expected = np.zeros((ITEMS, COLUMNS))
    for upload, weight in zip(uploads, weights, strict=True):
        expected[upload.items] += weight / sum(weights) * upload.delta
    how = settings_of("uniform", "aggregation.normalise=clients").aggregation
    np.testing.assert_allclose(join(uploads, weights, (ITEMS, COLUMNS), how), expected, rtol=0, atol=1e-12)


def test_counts_of_denoising_clients_are_what_rows_are_divided_by() -> None:
    noisy = Upload(0, np.array([0, 1]), np.array([[3.0], [5.0]]))
    denoiser = Upload(1, np.array([0, 1]), np.array([[1.0], [-5.0]]), counts=np.array([1, -1]))
    how = settings_of("uniform").aggregation
    assert join([noisy, denoiser], [1.0, 1.0], (3, 1), how).tolist() == [[2.0], [0.0], [0.0]]
