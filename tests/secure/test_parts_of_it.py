"""Shares, neighbours and masks, each by itself."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fedrecplus.parts.channel import RingLayout, zeros
from fedrecplus.parts.channel.secure import graph, shamir
from fedrecplus.parts.channel.secure.masks import add_mask, shared_rows


@settings(max_examples=40, deadline=None)
@given(secret=st.binary(min_size=32, max_size=32), holders=st.integers(1, 12), data=st.data())
def test_as_many_shares_as_the_threshold_restore_the_secret(secret: bytes, holders: int, data: st.DataObject) -> None:
    threshold = data.draw(st.integers(1, holders))
    shares = shamir.split(secret, holders, threshold, os.urandom)
    chosen = data.draw(st.permutations(range(1, holders + 1)))[:threshold]
    assert shamir.restore({x: shares[x - 1] for x in chosen}) == secret


def test_fewer_shares_fit_every_secret() -> None:
    """With threshold − 1 shares, any other secret has a polynomial through them: they tell nothing."""
    shares = shamir.split(bytes(32), 5, 3, os.urandom)
    held = {1: shares[0], 4: shares[3]}
    for guess in (1, 2**255, 2**256 - 1):
        third = {**held, 5: b""}
        # the share of holder 5 that makes the secret the guess
        low, high = (shamir.value_at(0, {**held, 5: value.to_bytes(33, "big")}) for value in (0, 1))
        fifth = (guess - low) * pow(high - low, -1, shamir.PRIME) % shamir.PRIME
        third[5] = fifth.to_bytes(33, "big")
        assert shamir.value_at(0, third) == guess


def test_many_wrong_shares_are_named_wherever_they_are() -> None:
    secret = os.urandom(32)
    shares = dict(enumerate(shamir.split(secret, 21, 11, os.urandom), 1))
    wrong = (2, 7, 13, 18)
    for x in wrong:
        shares[x] = os.urandom(32).rjust(33, b"\0")
    shares[20] = b"no share"
    found, named = shamir.restore_checked(shares, 11, lambda guess: guess == secret)
    assert (found, named) == (secret, (*wrong, 20))


def test_wrong_shares_are_named() -> None:
    secret = os.urandom(32)
    shares = dict(enumerate(shamir.split(secret, 6, 3, os.urandom), 1))
    shares[2] = bytes(33)
    assert shamir.restore_checked(shares, 3, lambda found: found == secret) == (secret, (2,))
    assert shamir.restore_checked({x: shares[x] for x in (1, 2, 3)}, 3, lambda found: found == secret) == (None, ())
    assert shamir.restore_checked({x: shares[x] for x in (1, 2, 3, 5)}, 3, lambda found: found == secret)[0] == secret
    for bad in (b"short", b"\xff" * 33):
        with pytest.raises(ValueError, match="no share"):
            shamir.restore({1: bad, 2: shares[1]})


def test_the_field_is_a_prime_above_every_secret() -> None:
    assert shamir.PRIME > 2**256
    assert all(pow(base, shamir.PRIME - 1, shamir.PRIME) == 1 for base in (2, 3, 5, 7, 11, 13))


def test_everybody_in_the_ring_has_the_same_number_of_neighbours_and_they_are_mutual() -> None:
    near = graph.ring(range(50), 8, random.Random(0).shuffle)
    assert {len(others) for others in near.values()} == {8}
    assert all(client in near[other] for client, others in near.items() for other in others)
    assert graph.everybody([2, 0, 1])[1] == (0, 2)


def test_plans_meet_the_bounds_that_they_state() -> None:
    for cohort in (100, 943, 5000):
        for corrupted, dropout in ((0.05, 0.05), (0.1, 0.1), (0.3, 0.1)):
            plan = graph.plan(cohort, corrupted, dropout)
            insecure, unfinished = graph.failure_bounds(cohort, corrupted, dropout, plan.neighbours, plan.threshold)
            if not plan.complete:
                assert insecure <= 2.0**-graph.SECURITY_BITS
                assert unfinished <= 2.0**-graph.CORRECTNESS_BITS
            assert plan.threshold > plan.neighbours / 2
    assert graph.plan(99, 0.1, 0.1).complete
    assert graph.plan(1000, 0.1, 0.1, sparse=False).neighbours == 999


def test_failure_bounds_hold_in_drawn_rings() -> None:
    """With bounds large enough to be seen: the share of bad rings among drawn ones stays below them."""
    cohort, corrupted, dropout, k, threshold = 60, 0.3, 0.2, 8, 5
    insecure, unfinished = graph.failure_bounds(cohort, corrupted, dropout, k, threshold)
    rng, bad_rings, stuck_rings, rings = random.Random(1), 0, 0, 400
    for _ in range(rings):
        near = graph.ring(range(cohort), k, rng.shuffle)
        bad, away = set(range(18)), set(range(18, 30))
        honest = [client for client in range(cohort) if client not in bad | away]
        caught = any(sum(other in bad for other in near[client]) >= threshold for client in range(cohort))
        reached, edge = {honest[0]}, [honest[0]]
        while edge:
            edge = [other for client in edge for other in near[client] if other in set(honest) - reached]
            reached |= set(edge)
        bad_rings += caught or len(reached) < len(honest)
        stuck_rings += any(sum(other not in away for other in near[client]) < threshold for client in range(cohort))
    assert bad_rings / rings <= insecure
    assert stuck_rings / rings <= unfinished


@pytest.mark.parametrize("bits", [16, 32])
def test_a_mask_is_taken_out_by_its_opposite_whatever_rows_are_spanned(bits: int) -> None:
    layout = RingLayout(9, 3, bits, 2, block=1)
    one, other = np.array([0, 2, 5, 8]), np.array([2, 3, 8])
    shared = shared_rows(one, other)
    assert shared is not None
    assert shared.tolist() == [2, 8]
    first, second, total = zeros(layout, one), zeros(layout, other), zeros(layout)
    add_mask(first, bytes(32), layout, shared)
    add_mask(second, bytes(32), layout, shared, minus=True)
    assert first.updates[1].any()
    assert not first.updates[0].any()
    total.add(first)
    total.add(second)
    assert not total.updates.any()
    assert not total.weights.any()
    add_mask(total, bytes(32), layout, shared)
    add_mask(total, bytes(32), layout, shared, minus=True)
    assert not total.updates.any()


def test_masks_of_different_keys_differ_and_wide_rings_use_all_their_bits() -> None:
    layout = RingLayout(50, 10, 32)
    one, other = zeros(layout), zeros(layout)
    add_mask(one, bytes(32), layout, None)
    add_mask(other, b"\1" + bytes(31), layout, None)
    assert not np.array_equal(one.updates, other.updates)
    assert int(one.updates.max()) > 2**31
