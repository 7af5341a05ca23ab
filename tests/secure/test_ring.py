"""Fixed-point numbers: sums within half a step per contributor, no wrap-around, and clipping at the bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fedrecplus.errors import UserError
from fedrecplus.parts.channel import (
    RingLayout,
    add_all,
    contributors,
    decode,
    encode,
    encoding_for,
    encoding_of,
    from_bytes,
    is_clipped,
    layout_of,
    secure,
)
from fedrecplus.protocol import PublicItems, Upload


def upload(client: int, items: list[int], delta: np.ndarray, weight: float | None = 1.0, statistic=()) -> Upload:
    return Upload(client, np.array(items), delta, weight, statistic=np.array(statistic, dtype=np.float64))


@settings(max_examples=50, deadline=None)
@given(
    bits=st.sampled_from([16, 32]),
    block=st.sampled_from([0, 1, 3]),
    clients=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_sums_are_those_of_the_numbers_within_the_stated_rounding(
    bits: int, block: int, clients: int, seed: int
) -> None:
    rng, layout = np.random.default_rng(seed), RingLayout(7, 3, bits, 2, block)
    encoding = encoding_of(layout, np.full(7, clients), clients, 8.0, 4.0, 2.0)
    uploads, total, weights, statistic = [], np.zeros((7, 3)), np.zeros(7), np.zeros(2)
    for client in range(clients):
        items = np.sort(rng.choice(7, rng.integers(1, 8), replace=False))
        one = upload(client, items, rng.uniform(-8, 8, (len(items), 3)), rng.uniform(0, 4), rng.uniform(-2, 2, 2))
        total[items] += one.delta
        weights[items] += one.weight
        statistic += one.statistic
        uploads.append(one)
    sent = [encode(one, encoding, client) for client, one in enumerate(uploads)]
    received = [from_bytes(each.to_bytes(), layout, each.rows) for each in sent]
    sums = decode(add_all(received, layout), encoding)
    room = encoding.rounding_error(np.full(7, clients)) + 1e-9
    assert (np.abs(sums.total - total) <= room[:, None]).all()
    np.testing.assert_allclose(sums.weights, weights, atol=clients / encoding.weight_scale)
    np.testing.assert_allclose(sums.statistic, statistic, atol=clients / encoding.statistic_scale)
    np.testing.assert_allclose(sums.overall, sum(one.weight for one in uploads), atol=clients / encoding.weight_scale)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_as_many_clients_as_allowed_for_all_at_the_bound_do_not_wrap_around(bits: int, sign: float) -> None:
    layout, most = RingLayout(3, 2, bits), np.array([1, 333, 1000])
    encoding = encoding_of(layout, most, 1000, 8.0, 64.0)
    clients = [
        upload(
            client,
            [row for row in range(3) if client < most[row]],
            np.full(((most > client).sum(), 2), sign * 8.0),
            64.0,
        )
        for client in range(1000)
    ]
    sums = decode(add_all((encode(one, encoding) for one in clients), layout), encoding)
    np.testing.assert_allclose(sums.total, sign * 8.0 * most[:, None] * np.ones(2), rtol=1e-9)
    np.testing.assert_allclose(sums.weights, 64.0 * most, rtol=1e-3)


def test_16_bits_round_a_popular_row_by_little_beside_what_people_differ_by() -> None:
    public, rng = PublicItems(np.zeros((1, 0)), np.array([600]), people=943), np.random.default_rng(0)
    layout = RingLayout(1, 8, 16)
    encoding = encoding_for(layout, public, 943, secure.Settings(bits=16))
    moves = rng.normal(0.0, 0.1, (600, 1, 8))
    vectors = (encode(upload(client, [0], move), encoding, client) for client, move in enumerate(moves))
    sums = decode(add_all(vectors, layout), encoding)
    assert np.abs(sums.total - moves.sum(axis=0)).max() < 0.25 * 0.1 * np.sqrt(600)


def test_rare_rows_are_more_precise_than_popular_ones() -> None:
    encoding = encoding_of(RingLayout(2, 1, 16), contributors(np.array([3, 600]), 943), 943, 8.0, 64.0)
    assert encoding.scales[0] > 30 * encoding.scales[1]


def test_public_counts_are_taken_with_slack_and_the_cohort_bounds_them() -> None:
    assert contributors(np.array([0, 100, 1000]), 500).tolist() == [16, 141, 500]
    assert contributors(np.array([-3, 5]), 1).tolist() == [1, 1]


def test_under_a_budget_every_row_has_room_for_the_whole_cohort() -> None:
    cohort, chosen = 500, secure.Settings(bound=2.0)
    exact = PublicItems(np.zeros((3, 0)), np.array([8, 40, 400]), source="secure-sum", people=cohort)
    noisy, layout = replace(exact, epsilon=2.0), layout_of((3, 1), 0, chosen)
    narrow, wide = (encoding_for(layout, public, cohort, chosen) for public in (exact, noisy))
    assert narrow.scales[0] > wide.scales[0], "exact counts may be relied on"
    vectors = [encode(upload(client, [0, 1, 2], np.full((3, 1), 2.0)), wide) for client in range(cohort)]
    np.testing.assert_allclose(decode(add_all(vectors, layout), wide).total, 2.0 * cohort, rtol=1e-4)


def test_uniform_weights_are_exact() -> None:
    layout = RingLayout(4, 1, 16)
    encoding = encoding_of(layout, np.full(4, 300), 300, 8.0, 64.0)
    vectors = (encode(upload(client, [1, 3], np.zeros((2, 1)), None), encoding) for client in range(300))
    sums = decode(add_all(vectors, layout), encoding)
    assert sums.weights.tolist() == [0.0, 300.0, 0.0, 300.0]
    assert sums.overall == 300.0
    assert sums.clients == 300


@pytest.mark.parametrize(
    ("delta", "weight", "statistic", "sent"),
    [
        (8.001, 1.0, 0.0, (8.0, 1.0, 0.0)),
        (np.nan, 1.0, 0.0, (0.0, 1.0, 0.0)),
        (-np.inf, 1.0, 0.0, (-8.0, 1.0, 0.0)),
        (1e200, 65.0, 1.5, (8.0, 64.0, 1.5)),
        (0.0, -1.0, 0.0, (0.0, 0.0, 0.0)),
        (0.0, np.nan, np.nan, (0.0, 0.0, 0.0)),
        (0.0, 1.0, -2.5, (0.0, 1.0, -2.0)),
    ],
)
def test_numbers_beyond_the_bound_are_clipped_and_what_is_no_number_is_zero(
    delta: float, weight: float, statistic: float, sent: tuple[float, ...]
) -> None:
    encoding = encoding_of(RingLayout(2, 1, 32, 1), np.full(2, 10), 10, 8.0, 64.0, 2.0)
    beyond = upload(0, [0], np.array([[delta]]), weight, [statistic])
    sums = decode(encode(beyond, encoding), encoding)
    np.testing.assert_allclose([sums.total[0, 0], sums.overall, sums.statistic[0]], sent, atol=1e-6)
    assert is_clipped(beyond, encoding)
    assert not is_clipped(upload(0, [0], np.array([[sent[0]]]), sent[1], [sent[2]]), encoding)


def test_rows_that_are_left_out_are_zero_with_their_weights() -> None:
    layout = RingLayout(3, 2, 16)
    encoding = encoding_of(layout, np.full(3, 5), 5, 8.0, 4.0, left_out=np.array([False, True, False]))
    vector = encode(upload(0, [0, 1], np.ones((2, 2))), encoding)
    assert vector.updates[0].all()
    assert not vector.updates[1].any()
    assert vector.weights.astype(bool).tolist() == [True, False, False, False, True, True]


def test_a_cohort_that_16_bits_have_no_room_for_is_refused() -> None:
    with pytest.raises(UserError, match="16 bits"):
        encoding_of(RingLayout(2, 1, 16), np.full(2, 40_000), 40_000, 8.0, 64.0)


@given(st.lists(st.integers(0, 30), min_size=1), st.integers(1, 40))
def test_blocks_hold_the_items_and_survive_as_bits(items: list[int], block: int) -> None:
    layout = RingLayout(31, 1, 16, block=block)
    rows = layout.rows_for(np.unique(items))
    assert rows is not None
    assert set(items) <= set(rows.tolist())
    assert {row // block for row in rows.tolist()} == {item // block for item in items}
    np.testing.assert_array_equal(layout.from_bits(layout.to_bits(rows)), rows)


@pytest.mark.parametrize("bits", [b"", b"\0\0", b"\xff"])
def test_bits_that_mean_no_rows_of_the_table_are_refused(bits: bytes) -> None:
    with pytest.raises(ValueError, match="block"):
        RingLayout(6, 1, 16, block=1).from_bits(bits)


def test_without_sent_weights_rows_weigh_what_public_counts_let_expect() -> None:
    layout = RingLayout(3, 1, 32, weights=False)
    expected = np.array([0.5, 0.25, 0.1])
    left_out = np.array([False, False, True])
    encoding = encoding_of(layout, np.full(3, 8), 8, 8.0, 4.0, left_out=left_out, expected=expected)
    vectors = [encode(upload(client, [0], np.ones((1, 1)), 2.0), encoding) for client in range(8)]
    assert layout.bytes_of(3) == 3 * 4 + 3 * 4
    sums = decode(add_all(vectors, layout), encoding)
    np.testing.assert_allclose(sums.weights, [8.0, 4.0, 0.0], rtol=1e-6)
    assert (sums.overall, sums.clients) == (16.0, 8)


def test_coarse_steps_are_taken_by_chance_so_that_sums_are_not_shifted() -> None:
    """A number of a tenth of a step would always be rounded to nothing."""
    layout = RingLayout(1, 200, 16)
    encoding = encoding_of(layout, np.array([1000]), 1000, 8.0, 4.0)
    tenth = 0.1 / encoding.scales[0]
    for keys in (range(1000), [None] * 1000):
        vectors = (encode(upload(0, [0], np.full((1, 200), tenth)), encoding, key) for key in keys)
        total = decode(add_all(vectors, layout), encoding).total * encoding.scales[0]
        deviation = np.sqrt(1000 * 0.1 * 0.9)
        assert abs(total.mean() - 100.0) < 5 * deviation / np.sqrt(200)
        assert 0.7 * deviation < total.std() < 1.3 * deviation
    one, same = (encode(upload(0, [0], np.full((1, 200), tenth)), encoding, 7) for _ in range(2))
    np.testing.assert_array_equal(one.updates, same.updates)


def test_zeros_stay_zeros_and_whole_steps_stay_what_they_are() -> None:
    layout = RingLayout(1, 4, 16)
    encoding = encoding_of(layout, np.array([10]), 10, 8.0, 4.0)
    whole = np.array([[0.0, -8.0, 8.0, 0.0]])
    for key in range(50):
        steps = encode(upload(0, [0], whole), encoding, key).updates.view("<i2")
        assert steps.tolist() == [[0, -3276, 3276, 0]]
