"""Sums of so few people that they can be taken apart: refused, unless every owner agrees to a demonstration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import Config, preset, with_channel
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.operate.runs import deal_out
from fedrecplus.deploy.server import journal_of, most_persons
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.ring import sum_terms
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import encoding_for, layout_of, secure
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import start_server
from tests.deploy.in_process import MODEL, InProcessLink, prepared, serve, small_config
from tests.deploy.summing import secure_config
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=64, items=30)


def asked(config: Config) -> Packet:
    catalogue = ItemCatalogue.published(RATINGS)
    state = start_server(config, catalogue.public)
    return encode_request(MODEL, state, config, catalogue, attach=True, session=b"s" * 16)


def least_of(home: NodeHome) -> int:
    """The fewest nodes of a sum that a node has begun."""
    with Store.open(home.store) as store:
        return SecureClient.of_bytes(store.value("SELECT state FROM sums")).state.least_cohort


def in_earnest(**settings: Any) -> Config:
    return secure_config(rounds=1, channel__demonstration=False, **settings)


def test_a_demonstration_takes_the_owner_s_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(tmp_path / "me")]
    assert exit_code_of(["device", "init", *home]) == 0
    path = tmp_path / "me" / "store.db"
    assert answer(asked(secure_config()), path).facts["refusal"] == "policy"
    assert exit_code_of(["device", "policy", "--allow-demonstration", "--allow-any-task", *home]) == 0
    assert "demonstrations are allowed" in capsys.readouterr().out
    assert "refusal" not in answer(asked(secure_config()), path).facts


@pytest.mark.parametrize(("nodes", "factors", "least"), [(64, 4, 100), (2, 4, 69), (64, 48, 144)])
def test_a_sum_must_be_of_three_persons_a_column_and_a_silo_counts_its_own(
    nodes: int, factors: int, least: int, tmp_path: Path
) -> None:
    home = deal_out(RATINGS, tmp_path, nodes, 0)[0]
    assert "refusal" not in answer(asked(in_earnest(model__factors=factors)), home.store).facts
    assert least_of(home) == least


def test_noise_of_the_devices_needs_no_crowd(tmp_path: Path) -> None:
    budget = {"privacy__rule": "distributed", "privacy__epsilon": 8.0, "privacy__delta": 1e-3}
    noised = in_earnest(**budget, statistics__source="public")
    home = deal_out(RATINGS, tmp_path, 64, 0)[0]
    assert "refusal" not in answer(asked(noised), home.store).facts
    assert least_of(home) == 3


def test_a_small_cohort_has_no_sum_and_the_operator_is_told_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UserError, match=r"4 persons are too few(.|\n)*channel\.demonstration"):
        prepared(tmp_path / "one each", RATINGS, in_earnest(), nodes=4, clients_per_node=1)
    homes = prepared(tmp_path, RATINGS, in_earnest(), nodes=4, patience=0.3)
    with pytest.raises(UserError, match="no upload came"):
        serve(InProcessLink(homes), tmp_path / "run")
    assert "a cohort of 4, and at least 85 are asked for" in caplog.text, "100 persons, of whom 16 are here"
    assert journal_of(tmp_path / "run") == []


def test_a_node_speaks_for_no_more_persons_than_the_operator_says(tmp_path: Path) -> None:
    """In a sum of 108 of 943 people one that says 65,536 would bring rows of six public ratings in."""
    config, one_each = secure_config(rounds=1), small_ratings(clients=4, items=30)

    def claim(node: int, packet: Packet) -> Packet:
        facts = dict(packet.facts)
        if node == 2 and "persons" in facts:
            facts["persons"] = 2
        return Packet(facts, packet.arrays)

    homes = prepared(tmp_path, one_each, config, nodes=4, clients_per_node=most_persons(config))
    serve(InProcessLink(homes, claim), tmp_path / "run")
    line = journal_of(tmp_path / "run")[0]
    assert line["lost"] == {"2": "advertise out-of-range"}
    assert line["uploads"] == 3
    assert most_persons(small_config()) > 1, "uploads in the clear are counted"


def test_rows_are_summed_where_enough_of_the_cohort_are_expected_to_have_rated_them() -> None:
    """By counts of other people, as many of whom as the catalogue says: not by how many of those there are."""
    public = PublicItems(np.zeros((3, 0)), np.array([5, 60, 600]), source="public", people=1000)
    layout = layout_of((3, 1), 0, secure.Settings())
    kept = {n: (encoding_for(layout, public, n, secure.Settings()).scales > 0).tolist() for n in (10, 100, 1000)}
    assert kept == {10: [False, False, True], 100: [False, True, True], 1000: [False, True, True]}


def test_a_node_that_says_it_speaks_for_many_brings_no_rarer_rows_into_a_sum() -> None:
    """Of 943 people; one of their nodes claims 65,536 persons, and honest ones believe it."""
    config = with_channel(preset("fedmf"), "secure")
    public = PublicItems(np.zeros((3, 0)), np.array([1, 5, 60]), source="public", people=943)
    terms = sum_terms(config, public, (3, config.model.columns), 0)
    for persons in (943, 943 + 65_536):
        assert (terms.encoding(persons, 943).scales > 0).tolist() == [False, False, True]
