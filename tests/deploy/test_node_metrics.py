"""A node's figures for Prometheus: a file in its format, counters that outlive the process, no rating."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fedrecplus.cli.main import exit_code_of
from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store, answer, pause
from fedrecplus.deploy.node import NodeHome, NodeMetrics, read_public_key
from fedrecplus.deploy.node.connection import ConnectionFigures
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.reply import encode_refusal
from fedrecplus.errors import UserError
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config
from tests.deploy.running import Running
from tests.small_data import small_ratings


class Quiet:
    """What metrics look at of a connection."""

    def __init__(self) -> None:
        self.traffic = ConnectionFigures()


def figures(file: Path) -> dict[str, float]:
    """The samples of a file, without the label that all have."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(file.read_text()):
        assert family.documentation
        for sample in family.samples:
            others = [value for label, value in sample.labels.items() if label != "home"]
            found[" ".join([sample.name.removeprefix("fedrecplus_node_"), *others])] = sample.value
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("metrics") / "home") as running:
        yield running


def test_a_visit_leaves_a_file_that_prometheus_reads(server: Running, tmp_path: Path) -> None:
    home, file = NodeHome(tmp_path / "me"), tmp_path / "collected" / "node.prom"
    Store.create(home.store, Scale(1.0, 5.0, 1.0))
    with Store.open(home.store) as store:
        store.rate({"canary-item": 5.0})
    server.home.roster.admit(read_public_key(home.make_key()))
    once = ["node", "once", f"127.0.0.1:{server.home.port}", "--ca", str(server.ca), "--wait", "0"]
    assert exit_code_of([*once, "--home", str(home.path), "--metrics", str(file)]) == 0
    first = figures(file)
    assert time.time() - 60 < first["last_contact_timestamp_seconds"] <= time.time()
    assert 820 < first["certificate_days server"] < 826
    assert 3640 < first["certificate_days authority"] < 3651
    assert first["store_bytes"] > 4096
    assert (first["rounds_total"], first["answers_total"]) == (0, 0)
    assert exit_code_of([*once, "--home", str(home.path), "--metrics", str(file)]) == 0
    assert figures(file)["last_contact_timestamp_seconds"] > first["last_contact_timestamp_seconds"]
    assert "canary-item" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o644, "node_exporter is another user"
    assert [entry.name for entry in file.parent.iterdir()] == ["node.prom"]


def test_rounds_refusals_and_seconds_are_counted_over_restarts(tmp_path: Path) -> None:
    home = prepared(tmp_path, small_ratings(), small_config(rounds=2), nodes=1)[0]
    asked = InProcessLink([home])

    def visit(*packets: Packet) -> dict[str, float]:
        metrics = NodeMetrics(tmp_path / "n.prom", home.store)
        reply_to = metrics.measured(lambda packet: answer(packet, home.store))
        for packet in packets:
            reply_to(packet)
        metrics.note(Quiet())  # type: ignore[arg-type]
        return figures(tmp_path / "n.prom")

    serve(asked, tmp_path / "run")
    first, second = (packet for _, packet in asked.asked)
    assert visit(second, second)["rounds_total"] == 1, "a round that is asked for again is one round"
    with Store.open(home.store) as store:
        pause(store, True)
    found = visit(second, Packet({"version": "fedrecplus 9, protocol 99"}, {}))
    assert (found["rounds_total"], found["answers_total"]) == (1, 4)
    assert found["refusals_total paused"] == 2
    assert found["answer_seconds_total"] > found["last_answer_seconds"] > 0
    assert first.facts["round"] != second.facts["round"]


def test_a_secure_sums_messages_are_one_round(tmp_path: Path) -> None:
    Store.create(tmp_path / "me" / "store.db", Scale(1.0, 5.0, 1.0))
    metrics = NodeMetrics(tmp_path / "n.prom", tmp_path / "me" / "store.db")
    said = metrics.measured(lambda packet: packet if packet.facts["stage"] != "reveal" else encode_refusal("sum"))
    for number in (0, 1):
        for stage in ("advertise", "share", "mask", "reveal"):
            said(Packet({"model": "ab", "round": number, "stage": stage}, {}))
    metrics.note(Quiet())  # type: ignore[arg-type]
    found = figures(tmp_path / "n.prom")
    assert (found["rounds_total"], found["answers_total"], found["refusals_total sum"]) == (2, 8, 2)


def test_a_place_that_is_none_stops_no_node_and_a_wrong_name_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Store.create(tmp_path / "me" / "store.db", Scale(1.0, 5.0, 1.0))
    with pytest.raises(UserError, match=r"end in \.prom"):
        NodeMetrics(tmp_path / "metrics.txt", tmp_path / "me" / "store.db")
    (tmp_path / "file").touch()
    NodeMetrics(tmp_path / "file" / "n.prom", tmp_path / "me" / "store.db").note(Quiet())  # type: ignore[arg-type]
    assert "the node's metrics" in caplog.text


def test_a_link_that_another_user_put_there_is_not_followed(tmp_path: Path) -> None:
    Store.create(tmp_path / "me" / "store.db", Scale(1.0, 5.0, 1.0))
    file, private = tmp_path / "node.prom", tmp_path / "private"
    private.write_text("mine")
    private.chmod(0o600)
    (tmp_path / f".node.prom.{os.getpid()}.part").symlink_to(private)
    metrics = NodeMetrics(file, tmp_path / "me" / "store.db")
    metrics.note(Quiet(), at_end=True)  # type: ignore[arg-type]
    assert (private.read_text(), stat.S_IMODE(private.stat().st_mode)) == ("mine", 0o600)
    metrics.note(Quiet(), at_end=True)  # type: ignore[arg-type]
    assert file.exists()


def test_a_home_with_odd_letters_is_a_label(tmp_path: Path) -> None:
    home = tmp_path / 'a"b\\c'
    Store.create(home / "store.db", Scale(1.0, 5.0, 1.0))
    NodeMetrics(tmp_path / "n.prom", home / "store.db").note(Quiet())  # type: ignore[arg-type]
    families = list(text_string_to_metric_families((tmp_path / "n.prom").read_text()))
    assert families[0].samples[0].labels["home"] == str(home)
