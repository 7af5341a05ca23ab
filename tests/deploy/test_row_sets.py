"""Blocks and rows in deployed secure sums: equal to simulated ones, silos too, and never a row of too few."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config
from fedrecplus.deploy.device import Policy, Store
from fedrecplus.deploy.server import journal_of
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.parts.channel import RingSettings
from tests.deploy.in_process import InProcessLink, prepared, serve
from tests.deploy.replay import simulated
from tests.deploy.summing import losing, model, secure_config
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=10, items=40)
WEIGHED = {"aggregation__rule": "wasserstein", "aggregation__weigh_on": "client", "aggregation__global_step": "last"}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As few items as here would be one block or two."""
    monkeypatch.setattr(RingSettings, "block_size", 4)


def row_config(rows: str, rounds: int = 2, **settings: Any) -> Config:
    here = {"channel__rows": rows, "channel__fewest_contributors": 2, **WEIGHED, **settings}
    return secure_config("fedrec+", rounds, **here)


@pytest.mark.parametrize("rows", ["blocks", "rows"])
def test_rounds_of_single_persons_equal_simulated_rounds_bit_for_bit(rows: str, tmp_path: Path) -> None:
    config = row_config(rows)
    serve(InProcessLink(prepared(tmp_path, RATINGS, config, nodes=RATINGS.clients)), tmp_path / "run")
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, config))


def test_a_silo_spans_the_rows_of_all_its_persons_and_its_sum_is_theirs(tmp_path: Path) -> None:
    """Scales leave room for more persons than nodes, so the sum is the simulation's up to rounding."""
    ratings = small_ratings(clients=20, items=40)
    config = row_config("blocks", 2, channel__fewest_contributors=1)
    serve(InProcessLink(prepared(tmp_path, ratings, config, nodes=5)), tmp_path / "run")
    np.testing.assert_allclose(model(tmp_path), simulated(ratings, config), atol=1e-6)


def test_nodes_show_which_rows_they_span_and_rated_ones_are_not_told_from_pseudo_ones(tmp_path: Path) -> None:
    config = row_config("rows", 1)
    homes = prepared(tmp_path, RATINGS, config, nodes=RATINGS.clients)
    serve(InProcessLink(homes), tmp_path / "run")
    with Store.open(homes[0].store) as store:
        kept = Packet.of_bytes(store.value("SELECT content FROM answers"))
        rated = len(next(iter(store.ratings().values())))
    counts = kept.arrays["counts"]
    assert counts.sum() == rated
    assert len(counts) >= 2 * rated, "as many pseudo rows at least, which are marks without a value"
    assert not kept.arrays["delta"][counts == 0].any()


def test_a_node_may_drop_out_and_what_is_left_counts_by_those_who_advertised(tmp_path: Path) -> None:
    config = row_config("blocks", 1, channel__fewest_contributors=1)
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=RATINGS.clients), losing("mask", 2))
    serve(link, tmp_path / "run")
    line = journal_of(tmp_path / "run")[0]
    assert (line["uploads"], line["lost"]) == (9, {"2": "mask lost"})


def test_where_a_row_is_left_with_too_few_the_sum_begins_anew_before_anybody_unmasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody spans some block that six of ten leave: nobody would unmask, so nobody is asked to."""
    monkeypatch.setattr(RingSettings, "block_size", 40)
    config = row_config("blocks", 1, channel__fewest_contributors=5)
    homes = prepared(tmp_path, RATINGS, config, nodes=RATINGS.clients)
    sessions = list[str]()

    def first_time(node: int, packet: Packet) -> Packet | Refusal:
        session = str(packet.facts.get("session"))
        if packet.facts.get("stage") == "mask" and not set(sessions) - {session} and node > 4:
            sessions.append(session)
            return Refusal("lost", blame=False)
        return packet

    link = InProcessLink(homes, first_time)
    serve(link, tmp_path / "run")
    asked = [p.facts["stage"] for _, p in link.asked if p.facts["session"] == sessions[0]]
    assert "reveal" not in asked
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, config))


@pytest.mark.parametrize(("rows", "refused"), [("whole", False), ("blocks", True), ("rows", True)])
def test_rows_with_too_few_pseudo_items_are_refused_by_the_owner(rows: str, refused: bool) -> None:
    config = row_config(rows, 1, pseudo_items__ratio=0.5)
    with pytest.raises(Refusal, match=r"0\.5 pseudo items") if refused else contextlib.nullcontext():
        Policy(demonstration=True).check(config, ItemCatalogue.published(RATINGS), pinned=False)
