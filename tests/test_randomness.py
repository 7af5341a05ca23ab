"""Keyed draws: the same key and index, the same number, in any order, batch, or engine."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings, strategies as st

from fedrecplus.arrays.compiling import mix as inside_mix, to_unit as inside_to_unit
from fedrecplus.randomness import keys, mix, new_secret, normal, purpose, subkey, to_unit, uniform

any_key = st.integers(0, 2**64 - 1)
indices = st.lists(st.integers(0, 2**40), min_size=1, max_size=40)
DRAWS = {"uniform": uniform, "normal": normal, "keys": keys}


@pytest.mark.parametrize("draw", DRAWS)
@settings(max_examples=50)
@given(key=any_key, numbers=indices)
def test_a_draw_depends_on_its_key_and_index_alone(draw: str, key: int, numbers: list[int]) -> None:
    together = DRAWS[draw](key, np.array(numbers))
    alone = np.concatenate([DRAWS[draw](key, np.array([number])) for number in numbers])
    # a cosine of many numbers at once may differ in the last bit from that of one
    np.testing.assert_allclose(together.astype(np.float64), alone.astype(np.float64), rtol=1e-14, atol=1e-15)
    if draw != "normal":
        assert (together == alone).all()


@numba.njit
def compiled_draw(key: Any, index: Any) -> Any:
    return inside_to_unit(inside_mix(key, index))


@settings(max_examples=50)
@given(any_key, st.integers(0, 2**40))
def test_compiled_draws_are_the_same(key: int, index: int) -> None:
    compiled = compiled_draw(np.uint64(key), np.uint64(index))
    assert compiled == uniform(key, np.array([index]))[0]


@settings(max_examples=50)
@given(any_key, any_key)
def test_keys_of_any_size_are_keys(key: int, index: int) -> None:
    assert 0 <= subkey(key, index, "name") < 2**64
    assert 0.0 <= float(to_unit(mix(np.array([key], np.uint64), np.array([index], np.uint64)))[0]) < 1.0


def test_uniform_draws_are_uniform_over_indices_and_over_keys() -> None:
    over_indices = uniform(3, np.arange(20_000))
    over_keys = np.array([uniform(key, np.array([5]))[0] for key in range(3000)])
    over_secrets = to_unit(keys(subkey(0, "secrets"), np.arange(20_000)))
    for draws in (over_indices, over_keys, over_secrets):
        assert ((draws >= 0.0) & (draws < 1.0)).all()
        assert scipy.stats.kstest(draws, "uniform").pvalue > 1e-3


def test_normal_draws_are_normal() -> None:
    assert scipy.stats.kstest(normal(3, np.arange(20_000)), "norm").pvalue > 1e-3


def test_neighbouring_indices_and_keys_are_unrelated() -> None:
    draws = uniform(3, np.arange(20_000))
    others = uniform(4, np.arange(20_000))
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.03
    assert abs(np.corrcoef(draws, others)[0, 1]) < 0.03


def test_keys_do_not_collide() -> None:
    assert len(np.unique(keys(7, np.arange(200_000)))) == 200_000
    purposes = [
        "secrets",
        "pseudo-items",
        "rounding",
        "batches",
        "denoiser",
        "sampling",
        "dropout",
        "start-U",
        "start-V",
    ]
    assert len({subkey(7, name, number) for name in purposes for number in range(50)}) == 50 * len(purposes)


def test_a_purpose_is_never_mistaken_for_a_client_a_round_or_an_item() -> None:
    assert purpose("pseudo-items") >= 2**40
    assert subkey(7, "pseudo-items") != subkey(7, 0)
    assert subkey(7, "a", 1) != subkey(7, 1, "a")


def test_the_numbers_are_the_same_for_good() -> None:
    """A run of last year must be repeatable: these are SplitMix64's numbers, and may never change."""
    assert int(keys(0, np.array([0]))[0]) == 0xE220A8397B1DCDAF
    assert int(keys(0, np.array([1]))[0]) == 0x6E789E6AA1B965F4


def test_secrets_of_real_devices_differ() -> None:
    assert len({new_secret() for _ in range(50)}) == 50


def test_a_real_device_draws_by_a_key_of_256_bits() -> None:
    key = new_secret().to_bytes(32, "big")
    draws = uniform(key, np.arange(20_000).reshape(2, -1))
    assert draws.shape == (2, 10_000)
    assert abs(draws.mean() - 0.5) < 0.02
    np.testing.assert_array_equal(uniform(key, np.array([7, 3])), draws[0, [7, 3]])
    other = bytes([key[0] ^ 1]) + key[1:]
    assert not np.intersect1d(keys(key, np.arange(500)), keys(other, np.arange(500))).size, "one bit is another key"
    assert len({key, subkey(key, "a"), subkey(key, "b"), subkey(key, "a", 1), subkey(other, "a")}) == 5
    assert max(new_secret() for _ in range(50)) > 2**240
