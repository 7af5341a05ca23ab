"""Token buckets: rates and bursts of each caller, of a bounded number of callers."""

from __future__ import annotations

import math

from fedrecplus.rates import TokenBuckets, peer_of


def test_a_caller_has_a_rate_and_a_burst() -> None:
    now = 0.0
    buckets = TokenBuckets(2.0, 3.0, clock=lambda: now)
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]
    now = 0.6
    assert [buckets.take("a"), buckets.take("a"), buckets.take("b")] == [True, False, True]
    assert buckets.take("c", 100.0), "more than a bucket holds comes from a full one"
    assert not buckets.take("c")


def test_a_quota_without_a_rate_is_never_filled_again_and_no_bound_is_none() -> None:
    once = TokenBuckets(0.0, 1.0)
    assert (once.wait("a"), once.wait("a")) == (0.0, math.inf)
    free = TokenBuckets(None, 1.0)
    assert all(free.take("a") for _ in range(1000))


def test_a_bounded_number_of_callers_is_remembered() -> None:
    now = 0.0
    buckets = TokenBuckets(1.0, 2.0, callers=100, clock=lambda: now)
    assert [buckets.wait("10.0.0.1") for _ in range(3)] == [0.0, 0.0, 1.0]
    for number in range(1000):
        buckets.wait(f"10.1.{number // 256}.{number % 256}")
    assert len(buckets.levels) == 100
    network = [buckets.wait(peer_of(f"2001:db8::{number}")) for number in range(3)]
    assert network == [0.0, 0.0, 1.0], "one network, one peer"
    now = 1.0
    assert buckets.wait(peer_of("2001:db8::9")) == 0.0
    assert peer_of("::ffff:10.0.0.1") == "10.0.0.1"
