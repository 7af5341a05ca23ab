"""FR-FMSS: shares cancel, fake marks weigh nothing, and a client's rows take all of its holders to read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config
from fedrecplus.engines import engine_of, message_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import shares
from fedrecplus.parts.channel._ring import RingLayout, RingVector, add_all, zeros
from fedrecplus.parts.channel.secure.masks import add_mask
from fedrecplus.protocol import Sums, Upload
from fedrecplus.testing import example_config, example_problem, small_ratings
from fedrecplus.testing.aggregation import some_broadcast, some_uploads

LAYOUT = RingLayout(items=9, columns=3, bits=32, statistic_size=0, block=1)


def some_settings(**options: Any) -> shares.Settings:
    """For cohorts as small as those here."""
    return shares.Settings(**{"least_cohort": 3, "fewest_contributors": 1, "weights": "sent", **options})


@pytest.fixture
def constants(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets what is the same in every training."""

    def put(**values: int) -> None:
        for name, value in values.items():
            monkeypatch.setattr(shares.Settings, name, value)

    return put


def sums_of(config: Config) -> Sums:
    """The sums of the first round, by the reference."""
    problem = prepare(small_ratings(), config)
    engine = engine_of(config)
    state = engine.start(problem)
    clients = problem.cohort(0)
    return engine.sums(problem, state.private, message_of(problem, state, clients), clients)[0]


def vectors(rng: np.random.Generator, count: int = 5) -> dict[int, RingVector]:
    """Some clients' ring vectors over rows of their own."""
    found = {}
    for client in range(count):
        rows = np.sort(rng.choice(LAYOUT.items, 4, replace=False)).astype(np.int64)
        vector = zeros(LAYOUT, rows)
        vector.updates[:] = rng.integers(0, 1000, vector.updates.shape)
        vector.weights[:] = rng.integers(0, 1000, vector.weights.shape)
        found[client] = vector
    return found


def seeds_of(holders: dict[int, tuple[int, ...]]) -> dict[tuple[int, int], bytes]:
    return {(u, v): bytes([u, v]) * 16 for u, held_by in holders.items() for v in held_by}


@pytest.mark.parametrize("rows", ["whole", "blocks", "rows"])
@pytest.mark.parametrize("peers", [1, 3, 50])
def test_sums_are_the_same_with_shares_and_without(rows: str, peers: int, constants: Any) -> None:
    constants(peers=peers, block_size=2)
    uploads, message = some_uploads(), some_broadcast()
    found = [
        shares.Shares(some_settings(rows=rows, cryptography=how)).add_up(uploads, message, 1)
        for how in ("skipped", "computed")
    ]
    for name in ("total", "weights", "overall", "clients"):
        np.testing.assert_array_equal(getattr(found[1][0], name), getattr(found[0][0], name))
    assert found[0][1] == found[1][1]


def test_what_the_server_gets_from_one_client_says_nothing_without_its_shares() -> None:
    plain = vectors(np.random.default_rng(0))
    holders = shares.holders_of(list(plain), 0, 1, 2)
    sent = shares.share_out(plain, holders, LAYOUT, seeds_of(holders))
    for client, vector in sent.items():
        places = np.searchsorted(vector.rows, plain[client].rows)
        assert not (vector.updates[places] == plain[client].updates).any()
        assert (vector.updates > 1000).mean() > 0.9  # numbers below 1,000 are one in four million
    total, expected = add_all(sent.values(), LAYOUT), add_all(plain.values(), LAYOUT)
    np.testing.assert_array_equal(total.updates, expected.updates)
    np.testing.assert_array_equal(total.weights, expected.weights)


@pytest.mark.parametrize("missing", [0, 1])
def test_a_client_is_read_by_all_its_neighbours_together_and_by_no_fewer(missing: int) -> None:
    """Its holders know what it gave away, the clients whose holder it is what it was given."""
    plain = vectors(np.random.default_rng(1))
    holders = shares.holders_of(list(plain), 0, 1, 2)
    seeds = seeds_of(holders)
    victim = 3
    seen = shares.share_out(plain, holders, LAYOUT, seeds)[victim]
    for giver, held_by in holders.items():
        if victim in held_by:
            add_mask(seen, seeds[giver, victim], LAYOUT, plain[giver].rows, minus=True)
    for holder in holders[victim][missing:]:
        add_mask(seen, seeds[victim, holder], LAYOUT, plain[victim].rows)
    read = seen.updates[np.searchsorted(seen.rows, plain[victim].rows)] == plain[victim].updates
    assert read.all() == (missing == 0)
    assert read.any() == (missing == 0)


def test_fake_marks_are_seen_and_weigh_nothing() -> None:
    """Lossless: the sums are those of rated rows alone, whatever the virtual ratings are."""
    base = ("engine=reference", "model.user_step=rated", "pseudo_items.rule=random")
    few = ("channel.rule=shares", "channel.rows=rows", "channel.fewest_contributors=1")
    marked = sums_of(example_config(*base, *few))
    bare = sums_of(example_config(*base[:2], "pseudo_items.rule=none"))
    np.testing.assert_allclose(marked.weights, bare.weights, atol=1e-3)
    np.testing.assert_allclose(marked.total, bare.total, atol=1e-5)
    problem = example_problem(*base, "channel.rule=shares", "channel.rows=rows")
    assert problem.config.hides_rows
    assert not example_config(*base, "channel.rule=shares", "channel.rows=whole").hides_rows


def test_everybody_holds_as_many_shares_as_it_gives() -> None:
    holders = shares.holders_of(range(20), 4, 7, 3)
    given = [holder for held_by in holders.values() for holder in held_by]
    assert sorted(given) == sorted(list(range(20)) * 3)
    assert all(client not in held_by for client, held_by in holders.items())
    assert holders != shares.holders_of(range(20), 5, 7, 3)  # drawn anew each round


def test_more_rows_are_more_bytes(constants: Any) -> None:
    constants(peers=1, block_size=3)
    uploads, message = some_uploads(clients=12), some_broadcast()
    up = {
        rows: shares.Shares(some_settings(rows=rows)).add_up(uploads, message, 1)[1].bytes_up
        for rows in ("rows", "blocks", "whole")
    }
    assert up["rows"] < up["blocks"]
    whole = shares.Shares(some_settings(rows="whole"))
    assert up["whole"] == whole.add_up(uploads, message, 2)[1].bytes_up
    constants(peers=2)
    more = whole.add_up(uploads, message, 1)[1].bytes_up
    assert more - up["whole"] == len(uploads) * shares.SEALED_BYTES


def test_too_few_clients_are_no_sum() -> None:
    with pytest.raises(UserError, match="no sum"):
        shares.Shares(some_settings()).add_up(some_uploads(clients=2), some_broadcast(), 1)


def test_a_client_beyond_the_bound_is_clipped() -> None:
    uploads = some_uploads()
    wild = Upload(99, np.array([1]), np.full((1, 3), 1e6))
    with_it, without = (
        shares.Shares(some_settings()).add_up(each, some_broadcast(), 1)[0] for each in ([*uploads, wild], uploads)
    )
    assert with_it.clients == len(uploads) + 1
    moved = np.where(np.arange(len(without.total))[:, None] == 1, some_settings().bound, 0.0)
    np.testing.assert_allclose(with_it.total, without.total + moved, atol=1e-5)
