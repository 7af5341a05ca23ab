"""Whom a round asks, when it closes, who is asked again, and what is believed of an update."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Connection, event

from fedrecplus.cli.live_view import show_rounds
from fedrecplus.config import change
from fedrecplus.deploy.server import CoordinatedRun, Lease, export, journal_of, serve as serve_run
from fedrecplus.deploy.server.cohort import draw_cohort, dropout_seen
from fedrecplus.deploy.server.collect import NodeRecords
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.errors import UserError
from fedrecplus.training.model_files import read_tensors
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config, stored
from tests.deploy.replay import simulated
from tests.small_data import small_ratings

RATINGS = small_ratings()
CONFIG = small_config(engine="reference", precision="float64")


def line(nodes: int, lost: int = 0, silent: int = 0, closed: str = "all") -> dict[str, Any]:
    return {
        "nodes": dict.fromkeys(range(nodes), 1.0), "lost": dict.fromkeys(range(lost), "lost"),
        "silent": list(range(silent)), "closed": closed,
    }  # fmt: skip


def test_more_nodes_are_asked_where_some_were_lost() -> None:
    everybody, half = list(range(1, 101)), change(CONFIG, "cohort.fraction", 0.5)
    assert draw_cohort(CONFIG, 0, everybody, 0, 0.3).asked == everybody
    cohort = draw_cohort(half, 0, everybody, 0, 0.0)
    assert (len(cohort.asked), cohort.target) == (50, 50)
    more = draw_cohort(half, 0, everybody, 0, 0.2)
    assert (len(more.asked), more.target) == (63, 50)
    assert set(cohort.asked) < set(more.asked)
    assert draw_cohort(half, 1, everybody, 0, 0.0).asked != cohort.asked
    assert len(draw_cohort(CONFIG, 0, everybody, 20, 0.5).asked) == 40
    assert draw_cohort(CONFIG, 0, [1, 2], 20, 0.5).target == 2


def test_who_was_not_waited_for_is_no_dropout() -> None:
    assert dropout_seen([]) == pytest.approx(0.1), "nothing is known yet"
    assert dropout_seen([line(8, lost=2)]) == pytest.approx(0.2)
    assert dropout_seen([line(8, silent=2, closed="enough")]) == pytest.approx(0.1)
    assert dropout_seen([line(8, silent=2, closed="deadline")]) == pytest.approx(0.2)
    waited = line(8, silent=1, closed="enough")
    waited["nodes"][7] = 30.0
    assert dropout_seen([waited]) == pytest.approx(2 / 9), "a round that was one answer short has waited for it"
    assert dropout_seen([{**waited, "closed": "all"}]) == 0.0
    assert dropout_seen([waited, line(8, silent=2, closed="enough")]) == pytest.approx(2 / 9), "which tells nothing"


def test_poisson_sampling_is_a_coin_for_each_node() -> None:
    config = change(change(CONFIG, "cohort.fraction", 0.25), "cohort.sampling", "poisson")
    sizes = [len(draw_cohort(config, 0, range(200), 0, 0.0).asked) for _ in range(60)]
    assert len(set(sizes)) > 3, "a fixed cohort has one size"
    assert 40 < np.mean(sizes) < 60


def test_coins_that_never_fall_on_their_head_end_the_run_with_a_reason(tmp_path: Path) -> None:
    config = change(change(CONFIG, "cohort.fraction", 1e-9), "cohort.sampling", "poisson")
    homes = prepared(tmp_path, RATINGS, config)
    with pytest.raises(UserError, match="nobody was drawn in 100 draws"):
        serve(InProcessLink(homes), tmp_path / "run")


def test_a_round_closes_at_its_target_asks_more_where_some_are_lost_and_lets_late_answers_go(tmp_path: Path) -> None:
    config = change(CONFIG, "server.rounds", 6)
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=6, cohort=3, deadline=1.0))
    link.tamper = lambda node, packet: None if node in (5, 6) else packet
    serve(link, tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    asked = [len(line["nodes"]) + len(line["silent"]) for line in lines]
    closed = [line["closed"] for line in lines]
    assert asked[0] == 4, "a tenth more, as nothing is known yet"
    assert max(asked) > 3
    assert {"enough", "deadline"} & set(closed)
    assert all(len(line["nodes"]) >= 3 for line in lines if line["closed"] == "enough")


def test_one_key_speaks_for_so_many_persons_and_no_more(tmp_path: Path) -> None:
    def others_each_round(node: int, packet: Packet) -> Packet:
        moved = packet.arrays["clients"] + 1000 * int(packet.facts["round"])
        return Packet(packet.facts, {**packet.arrays, "clients": moved}) if node == 2 else packet

    persons = RATINGS.clients // 2
    folder = tmp_path / "tight"
    homes = prepared(folder, RATINGS, CONFIG, nodes=2, clients_per_node=persons + 1)
    tight = InProcessLink(homes, others_each_round)
    serve(tight, folder / "run")
    lost = [line["lost"] for line in journal_of(folder / "run")]
    assert lost == [{}, {"2": "crowd"}, {"2": "crowd"}]


def pushing(node: int, packet: Packet) -> Packet:
    """From the third round on, all updates of node 2 are a thousand times as long, and within the fixed bound."""
    if node != 2 or packet.facts["round"] < 3:
        return packet
    delta = packet.arrays["delta"]
    return Packet(packet.facts, {**packet.arrays, "delta": np.clip(delta * 1000.0, -49.0, 49.0)})


def test_odd_steps_of_V_raise_an_alarm_and_a_learned_bound_shortens_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = small_config("fedmf", engine="reference", precision="float64", rounds=5)
    runs = {"honest": (lambda _, packet: packet, 0.0), "lying": (pushing, 0.0), "bounded": (pushing, 4.0)}
    odd, largest = {}, {}
    for name, (tamper, factor) in runs.items():
        homes = prepared(tmp_path / name, RATINGS, config, nodes=6, learned_bound=factor)
        serve(InProcessLink(homes, tamper), tmp_path / name / "run")
        lines = journal_of(tmp_path / name / "run")
        odd[name] = [len(line["odd_items"]) for line in lines]
        largest[name] = max(line["largest_step"] for line in lines)
    assert sum(odd["honest"]) == 0
    assert odd["lying"][3] > 0
    assert "items moved much farther" in caplog.text
    assert largest["bounded"] < 3 * largest["honest"] < largest["lying"] / 3


def test_where_the_disk_is_full_the_run_waits_for_room_and_nothing_is_half_written(tmp_path: Path) -> None:
    homes = prepared(tmp_path, RATINGS, CONFIG)
    kept, most = stored(tmp_path / "run"), {"pages": 0}
    said = list[str]()

    def bound(connection: Connection) -> None:
        if most["pages"]:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {most['pages']}")

    class MakeRoom(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "is full" in record.getMessage():
                said.append(record.getMessage())
                most["pages"] = 2**30

    def fill(node: int, packet: Packet) -> Packet:
        if packet.facts["round"] == 1 and not most["pages"]:
            with kept.database.reading() as connection:
                most["pages"] = int(connection.exec_driver_sql("PRAGMA page_count").scalar() or 0)
        return packet

    event.listen(kept.database.engine, "begin", bound)
    room = MakeRoom()
    logging.getLogger("fedrecplus").addHandler(room)
    lease = Lease(kept.database)
    assert lease.take()
    try:
        serve_run(InProcessLink(homes, fill), CoordinatedRun(lease, kept.number))
    finally:
        logging.getLogger("fedrecplus").removeHandler(room)
    assert said
    export(kept, tmp_path / "run")
    np.testing.assert_array_equal(read_tensors(tmp_path / "run/model.safetensors")[0]["V"], simulated(RATINGS, CONFIG))


def test_how_many_persons_a_node_speaks_for_is_known_after_a_restart() -> None:
    records = NodeRecords(limit=3, persons=3)
    assert records.bind(7, [1, 2]) == [1, 2]
    again = NodeRecords(limit=3, persons=3)
    again.restore([{"bound": {"7": [1, 2]}}])
    for one in (records, again):
        assert one.bind(7, [2, 3]) == [3]
        with pytest.raises(Refusal, match="more than 3"):
            one.bind(7, [4])
        with pytest.raises(Refusal, match="claimed"):
            one.bind(8, [1])


def test_progress_is_said_without_a_terminal_too(capsys: pytest.CaptureFixture[str]) -> None:
    with show_rounds(3) as show:
        show({"phase": "waiting", "nodes": 0, "wanted": 2}, [])
        show({"phase": "waiting", "nodes": 1, "wanted": 2}, [])
    assert capsys.readouterr().err == "waiting for nodes: 0 of 2 are here\n"
