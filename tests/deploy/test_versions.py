"""Versions that talk to each other: what the protocol's number stands for, and who is told to upgrade."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from fedrecplus.config import change, from_tables, preset, presets
from fedrecplus.deploy.device import answer
from fedrecplus.deploy.wire import packet as packets
from fedrecplus.deploy.wire.packet import PROTOCOL, VERSION, Packet, Refusal, check_reply, mismatch
from fedrecplus.deploy.wire.request import decode_request
from fedrecplus.deploy.wire.settings import fixed_settings, told_settings, told_text
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config
from tests.deploy.protocol import WRITTEN, spoken
from tests.small_data import small_ratings


def changed(written: dict[str, Any], today: dict[str, Any]) -> list[str]:
    """What another version would understand otherwise; what is new, and has a default, is none of it."""
    wrong = [name for name, carried in written["carried"].items() if today["carried"].get(name) != carried]
    for group in ("rules", "settings"):
        for name, value in written[group].items():
            if isinstance(value, dict):
                now = today[group].get(name, {})
                wrong += [f"{name}.{option}" for option, one in value.items() if now.get(option) != one]
            elif today[group].get(name) != value:
                wrong.append(name)
    return wrong


def test_fields_and_defaults_are_those_of_the_protocol() -> None:
    written = json.loads(WRITTEN.read_text())
    remedy = "raise PROTOCOL in deploy/wire/packet.py, then `python -m tests.deploy.protocol`"
    assert (written["protocol"], changed(written, json.loads(json.dumps(spoken())))) == (PROTOCOL, []), remedy


def test_a_changed_default_and_another_field_are_noticed_and_a_new_setting_is_none() -> None:
    written = json.loads(WRITTEN.read_text())
    today = json.loads(WRITTEN.read_text())
    today["rules"]["model.mf"]["mood"] = 1.0
    today["rules"]["model.new"] = {"rule": "new"}
    today["settings"]["cohort"]["patience"] = 3
    assert changed(written, today) == []
    today["settings"]["cohort"]["fraction"] = 0.5
    today["carried"]["Upload"].append("mood")
    del today["rules"]["model.mf"]["factors"]
    assert changed(written, today) == ["Upload", "model.mf.factors", "cohort.fraction"]


@pytest.mark.parametrize("name", presets())
def test_settings_travel_as_what_differs_and_arrive_whole(name: str) -> None:
    config = preset(name)
    assert from_tables(told_settings(config)) == config
    assert len(told_text(config)) < 900


def test_another_number_of_rounds_is_the_same_model_unless_a_budget_is_spent() -> None:
    one, other = (change(preset("fedmf"), "server.rounds", rounds) for rounds in (7, 100))
    assert fixed_settings(one) == fixed_settings(other)
    spent = [change(change(config, "channel.rule", "sums"), "privacy.rule", "central") for config in (one, other)]
    assert fixed_settings(spent[0]) != fixed_settings(spent[1])


@pytest.mark.parametrize(
    ("theirs", "upgraded"),
    [
        (f"fedrecplus 0.2.0, protocol {PROTOCOL - 1}", "the node"),
        (f"fedrecplus 0.2.0, protocol {PROTOCOL}-3aa0f1", "the node"),
        (f"fedrecplus 9.0, protocol {PROTOCOL + 1}", "this side"),
        ("no version at all", "the node"),
        (None, "the node"),
    ],
)
def test_a_mismatch_says_which_side_to_upgrade(theirs: object, upgraded: str) -> None:
    assert mismatch(theirs, "the node").endswith(f": upgrade {upgraded}")
    assert VERSION in mismatch(theirs, "the node")


def test_versions_of_the_same_protocol_understand_each_other() -> None:
    assert mismatch(f"fedrecplus 7.7, protocol {PROTOCOL}", "the node") == ""


def test_an_older_node_is_named_in_the_log_and_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two nodes, of which the second refuses, with its own version."""
    homes = prepared(tmp_path, small_ratings(), small_config(rounds=3), nodes=2)
    old = Packet({"version": "fedrecplus 0.2.0, protocol 6", "refusal": "version"}, {})
    link = InProcessLink(homes, tamper=lambda node, packet: old if node == 2 else packet)
    with caplog.at_level(logging.WARNING):
        serve(link, tmp_path / "run")
    assert "the node runs fedrecplus 0.2.0, protocol 6;" in caplog.text
    assert "upgrade the node" in caplog.text
    assert [node for node, _ in link.asked] == [1, 2, 1, 1]


def test_a_setting_of_a_later_version_is_refused_and_the_node_is_told_to_be_upgraded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    homes = prepared(tmp_path, small_ratings(), small_config(rounds=1), nodes=1)
    link = InProcessLink(homes)
    serve(link, tmp_path / "run")
    facts = dict(link.asked[0][1].facts)
    later = Packet({**facts, "config": f"{facts['config']}\n[later]\nmood = 1\n"}, link.asked[0][1].arrays)
    with pytest.raises(Refusal, match=r"later\.mood(.|\n)*upgrade this node") as refused:
        decode_request(later)
    assert refused.value.kind == "version"
    reply = answer(later, homes[0].store)
    with pytest.raises(Refusal, match=r"node-version(.|\n)*upgrade the node"):
        check_reply(reply)
    outside = Packet({**facts, "config": '[model]\nrule = "os.path"'}, link.asked[0][1].arrays)
    with pytest.raises(Refusal) as refused:
        decode_request(outside)
    assert refused.value.kind == "rule"


def test_a_server_of_a_later_protocol_is_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    homes = prepared(tmp_path, small_ratings(), small_config(rounds=1), nodes=1)
    link = InProcessLink(homes)
    serve(link, tmp_path / "run")
    packet = link.asked[0][1]
    monkeypatch.setattr(packets, "PROTOCOL", PROTOCOL - 1)
    with pytest.raises(Refusal, match="upgrade this side"):
        decode_request(packet)
    assert answer(packet, homes[0].store).facts["refusal"] == "version"
