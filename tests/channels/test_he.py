"""Homomorphic encryption: exact sums, a server without a key, and nothing of the noise in what is decrypted."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import check, preset, with_budget, with_channel
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import _ckks, he
from fedrecplus.rounds import sums_of
from fedrecplus.testing import example_config
from fedrecplus.testing.aggregation import some_broadcast, some_uploads


def some_settings(**options: Any) -> he.Settings:
    """For cohorts as small as those here."""
    return he.Settings(**{"least_cohort": 3, "fewest_contributors": 1, "weights": "sent", **options})


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the size of a block: those of the package hold the whole table of a test."""
    return lambda size: monkeypatch.setattr(he.Settings, "block_size", size)


def added(values: list[np.ndarray], bits: int) -> np.ndarray:
    """Through encryption, addition by somebody without the key, and decryption."""
    key = _ckks.key_of(bits)
    server = _ckks.Adder(_ckks.without_secret(key))
    for each in values:
        for place, ciphertext in enumerate(_ckks.encrypt(each, bits, key)):
            server.add(place, ciphertext)
    chunks = -(-len(values[0]) // _ckks.FOR_BITS[bits].slots)
    return _ckks.decrypt([server.total(place) for place in range(chunks)], len(values[0]), bits, key)


@pytest.mark.parametrize("bits", [16, 32])
def test_integers_up_to_the_edge_of_the_ring_add_up_exactly(bits: int) -> None:
    rng, most = np.random.default_rng(bits), (2 ** (bits - 1) - 1) // 20
    values = [rng.choice([-most, -1, 0, 1, most], 2500) for _ in range(20)]
    values = [np.where(np.arange(2500) < 500, most, each) for each in values]
    np.testing.assert_array_equal(added(values, bits), sum(values))


@pytest.mark.parametrize("bits", [16, 32])
def test_noise_is_what_the_bound_on_summands_takes_it_for(bits: int) -> None:
    tenseal, how = _ckks.library(), _ckks.FOR_BITS[bits]
    noise = np.array(tenseal.ckks_vector(_ckks.key_of(bits), np.zeros(how.slots)).decrypt())
    assumed = 0.5 / (_ckks._MARGIN * np.sqrt(how.most_summands))
    assert 0.4 * assumed < noise.std() < 1.1 * assumed
    assert how.most_summands > 100_000


def test_the_server_can_add_and_not_decrypt() -> None:
    key = _ckks.key_of(16)
    server = _ckks.without_secret(key)
    assert not server.is_private()
    ciphertext = _ckks.encrypt(np.array([7]), 16, key)[0]
    with pytest.raises(ValueError, match="secret_key"):
        _ckks.library().ckks_vector_from(server, ciphertext).decrypt()


def test_a_number_is_another_ciphertext_each_time() -> None:
    key = _ckks.key_of(16)
    assert _ckks.encrypt(np.zeros(3), 16, key) != _ckks.encrypt(np.zeros(3), 16, key)


def test_what_is_decrypted_has_no_noise_of_the_key_in_it() -> None:
    """Exact decryptions of CKKS give the key away (Li and Micciancio 2021); here they are rounded, or refused."""
    key, how = _ckks.key_of(16), _ckks.FOR_BITS[16]
    raw = _ckks.library().ckks_vector(key, np.zeros(how.slots)).decrypt()
    assert np.any(np.array(raw) != 0.0)
    np.testing.assert_array_equal(added([np.zeros(how.slots)], 16), 0)
    halves = _ckks.library().ckks_vector(key, np.full(how.slots, 0.4)).serialize()
    with pytest.raises(ArithmeticError, match="too many"):
        _ckks.decrypt([halves], how.slots, 16, key)


@pytest.mark.parametrize("bits", [16, 32])
@pytest.mark.parametrize("rows", ["whole", "blocks"])
def test_sums_are_the_same_with_ciphertexts_and_without(bits: int, rows: str, blocks: Any) -> None:
    blocks(4)
    uploads, message = some_uploads(), some_broadcast()
    found = [
        he.HomomorphicEncryption(some_settings(bits=bits, rows=rows, cryptography=how)).add_up(uploads, message, 1)
        for how in ("skipped", "computed")
    ]
    for name in ("total", "weights", "overall", "clients"):
        np.testing.assert_array_equal(getattr(found[1][0], name), getattr(found[0][0], name))
    assert found[0][1] == found[1][1]


def test_sums_are_the_plain_ones_within_the_encoding() -> None:
    """32 bits, bound 64, at most 7 clients: half a step each, a hundred-millionth."""
    uploads, message = some_uploads(), some_broadcast()
    exact = sums_of(uploads, message, example_config("channel.rule=clear"))
    found, _ = he.HomomorphicEncryption(some_settings(cryptography="computed")).add_up(uploads, message, 1)
    np.testing.assert_allclose(found.total, exact.total, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.weights, exact.weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize("bits", [16, 32])
def test_a_ciphertext_has_the_size_that_is_reported(bits: int) -> None:
    full = _ckks.FOR_BITS[bits]
    values = np.random.default_rng(0).integers(-1000, 1000, full.slots)
    assert 0.97 * full.size < len(_ckks.encrypt(values, bits, _ckks.key_of(bits))[0]) <= full.size


def test_blocks_without_a_row_of_the_client_are_not_sent(blocks: Any) -> None:
    blocks(1)
    uploads, message = some_uploads(), some_broadcast()
    up = {
        rows: he.HomomorphicEncryption(some_settings(rows=rows)).add_up(uploads, message, 1)[1].bytes_up
        for rows in ("whole", "blocks")
    }
    rows = sum(len(upload.items) for upload in uploads)
    of_weights = len(uploads) * _ckks.FOR_BITS[32].size
    assert up["blocks"] == rows * _ckks.FOR_BITS[32].size + of_weights
    assert up["whole"] == len(uploads) * _ckks.FOR_BITS[32].size + of_weights
    blocks(4)
    seen = he.HomomorphicEncryption(some_settings(rows="blocks")).visible_rows(np.array([1, 5]), 9)
    assert seen.tolist() == [0, 1, 2, 3, 4, 5, 6, 7]
    assert len(he.HomomorphicEncryption(some_settings(rows="whole")).visible_rows(np.array([1, 5]), 9)) == 0


def test_single_rows_and_too_large_cohorts_are_refused() -> None:
    with pytest.raises(UserError, match="holds the rows of many items"):
        check(example_config("channel.rule=he", "channel.rows=rows", "aggregation.weigh_on=client"))
    with pytest.raises(UserError, match="before any noise"):
        check(with_budget(with_channel(preset("fedmf"), "he"), 10.0, 1e-5, "central", 900))
    with pytest.raises(UserError, match="too many for one sum"):
        he.check_room(10**9, he.RingLayout(5, 3, 16))


def test_a_missing_library_is_named_before_the_first_round(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    config = example_config("channel.rule=he", "channel.cryptography=computed", "aggregation.weigh_on=client")
    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UserError, match=r"fedrecplus\[he\]"):
        check(config)
    check(example_config("channel.rule=he", "aggregation.weigh_on=client"))  # sums and bytes alone need none
