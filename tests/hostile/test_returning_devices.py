"""A server that lies to a device that was away, or comes late: it makes the steps that it missed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from fedrecplus.config import change
from fedrecplus.deploy.device import Store, agree, answer
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.server import Deployment
from fedrecplus.deploy.server.task_log import append, log_key
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.log import LogHead, PublicLog, leaf_hash, round_leaf
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.task import Task
from tests.deploy.in_process import InProcessLink, StoredPast, change_terms, go_on, serve, stored
from tests.deploy.summing import secure_config
from tests.hostile.test_checked_tables import RATINGS, agreed, moved

CONFIG = secure_config(rounds=5, channel__fewest_contributors=1, server_optimizer__rule="momentum")


class AwayLink(InProcessLink):
    """Its last node is away in some rounds; what it is asked first when it is back may be a lie."""

    def __init__(self, folder: Path, homes: list[NodeHome], away: range, run: str = "run") -> None:
        super().__init__(homes, past=StoredPast(stored(folder / run).database))
        self.away, self.refusals = away, list[str]()
        self.lie: Callable[[Packet], Packet] | None = None

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[int, int]:
        last, number = len(self.homes), int(next(iter(packets.values())).facts["round"])
        present = {node: packet for node, packet in packets.items() if node != last or number not in self.away}
        back = last in packets and number == self.away.stop and packets[last].facts.get("stage") == "advertise"
        if back and self.lie is not None:
            told = self.lie(packets[last])
            self.refusals.append(str(answer(told, self.homes[-1].store, past=self.past).facts.get("refusal")))
        asked = super().ask(present, seconds)
        gone = {-len(self.asked): node for node in packets.keys() - present.keys()}  # one at most
        self.box.update(dict.fromkeys(gone, Refusal("lost", blame=False)))
        return {**asked, **gone}


def away(folder: Path, rounds: range) -> AwayLink:
    """Four nodes, of which the last is not there in these rounds."""
    return AwayLink(folder, agreed(folder, CONFIG, nodes=4), rounds)


def together(folder: Path) -> list[bool]:
    """In which rounds all four were in the sum."""
    return [len(line["nodes"]) == 4 for line in stored(folder / "run").lines()]


@pytest.mark.parametrize("rounds", [range(1, 3), range(3)], ids=["who comes back", "who comes late"])
def test_a_device_makes_the_steps_that_it_missed(
    tmp_path: Path, rounds: range, caplog: pytest.LogCaptureFixture
) -> None:
    link = away(tmp_path, rounds)
    serve(link, tmp_path / "run")
    assert together(tmp_path) == [number not in rounds for number in range(5)]
    assert "as the server tells it" not in caplog.text
    with Store.open(link.homes[-1].store) as store:
        assert store.models()[0]["round"] == 4


@pytest.mark.parametrize(
    "rounds", [range(0), range(2, 4), range(4)], ids=["who stays", "who comes back", "who is late"]
)
def test_a_device_goes_on_with_a_run_whose_last_rounds_took_smaller_steps(tmp_path: Path, rounds: range) -> None:
    """Each run cools down by its own number of rounds, which the log has: the first run's steps stay what they were."""
    config = change(change(CONFIG, "server.rounds", 3), "server.cooldown", 0.9)
    homes = agreed(tmp_path, config, nodes=4, rounds=6)
    task = stored(tmp_path / "run").deployment.task
    serve(AwayLink(tmp_path, homes, rounds), tmp_path / "run")
    with (
        closing(sqlite3.connect(tmp_path / "run.db")) as first,
        closing(sqlite3.connect(tmp_path / "second.db")) as second,
    ):
        first.backup(second)  # with the key that signs the log
    terms = Deployment(4, deadline=5.0, patience=5.0)
    after = go_on(tmp_path / "run", tmp_path / "second", config, terms, ItemCatalogue.of(RATINGS), overwrite=False)
    assert after.deployment.task == task, "nobody is asked anew"
    serve(AwayLink(tmp_path, homes, rounds, "second"), tmp_path / "second")
    present = [len(line["nodes"]) == 4 for line in after.lines()]
    assert present == [number not in rounds for number in range(3, 6)]


def signed_again(folder: Path, packet: Packet) -> Packet:
    """The question with a log that says what it asks, signed by the server: everybody else was told another one."""
    run, task = stored(folder / "run"), Task.parse(str(packet.facts["task"]))
    head = LogHead.of_arrays(task.digest, dict(packet.arrays))
    assert head is not None
    entry = msgspec.json.decode(str(packet.facts["leaf"]))
    tables = {name: one for name, one in packet.arrays.items() if name in ("V", "last_step", "last_covariance")}
    leaf = round_leaf(entry["round"], Packet({}, tables).digest, entry["sum"], entry["items"], 0, 0.0)
    with run.database.changing() as connection:
        key = log_key(connection)
    log = LogHead.signed(task.digest, (*head.leaves[:-1], leaf_hash(leaf)), key)
    return Packet({**packet.facts, "leaf": leaf}, {**packet.arrays, **log.arrays()})


@pytest.mark.parametrize("rounds", [range(1, 3), range(3)], ids=["who comes back", "who comes late"])
def test_another_table_is_refused_by_who_was_away(tmp_path: Path, rounds: range) -> None:
    link = away(tmp_path, rounds)
    link.lie = lambda packet: signed_again(tmp_path, moved(packet, 0.01))
    serve(link, tmp_path / "run")
    assert link.refusals == ["task"]
    assert together(tmp_path)[rounds.stop :] == [True, True], "and the truth is taken"


class Withholding(StoredPast):
    """It has no sum, or tells another one in its place."""

    def __init__(self, past: StoredPast, tell: Callable[[list[str]], list[str]]) -> None:
        super().__init__(past.database)
        self.tell = tell

    def log(self, task: str) -> PublicLog:
        told = super().log(task)
        return msgspec.structs.replace(told, sums=self.tell(told.sums))


FALSELY_TOLD: dict[str, Callable[[list[str]], list[str]]] = {
    "none": lambda names: ["" for _ in names],
    "in another order": lambda names: names[::-1],
    "one twice": lambda names: [*names[:3], names[2], *names[4:]],
    "too few": lambda _: [],
}


def test_sums_that_the_task_says_are_kept_must_be_there(tmp_path: Path) -> None:
    link, refusals = away(tmp_path, range(1, 3)), {}
    truth = link.past
    assert isinstance(truth, StoredPast)

    def ask_without(packet: Packet) -> Packet:
        for name, tell in FALSELY_TOLD.items():
            reply = answer(packet, link.homes[-1].store, past=Withholding(truth, tell))
            refusals[name] = reply.facts.get("refusal")
        return packet

    link.lie = ask_without
    serve(link, tmp_path / "run")
    assert refusals == dict.fromkeys(FALSELY_TOLD, "task")
    assert link.refusals == ["None"], "and the truth is taken"


def test_who_missed_more_than_the_server_keeps_takes_the_table_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The bound of the claim: the log still binds the table, so a witness finds who was told another one."""
    link = away(tmp_path, range(1, 4))
    run = stored(tmp_path / "run")
    task = msgspec.structs.replace(Task.parse(run.deployment.task), kept=1)
    change_terms(tmp_path / "run", task=task.text)
    with run.database.changing() as connection:
        append(connection, task.digest, 0, task.text)
    for home in link.homes:
        with Store.open(home.store) as store:
            agree(store, task)
    link.lie = lambda packet: signed_again(tmp_path, moved(packet, 0.01))
    serve(link, tmp_path / "run")
    assert link.refusals == ["None"]
    assert "3 rounds were missed, and the server keeps sums of 1" in caplog.text
    assert "the log is another one than before" in caplog.text, "it has the proof when it is asked with everybody"
    told = StoredPast(run.database).log(task.digest)
    assert len(told.entries) == 6
    assert [bool(name) for name in told.sums] == [False, False, False, False, True, True]


def test_sums_are_kept_as_long_as_the_task_says_and_no_longer(tmp_path: Path) -> None:
    serve(away(tmp_path, range(0)), tmp_path / "run")
    run = stored(tmp_path / "run")
    task = Task.parse(run.deployment.task)
    assert task.kept == 5
    assert [bool(name) for name in StoredPast(run.database).log(task.digest).sums] == [
        False,
        False,
        True,
        True,
        True,
        True,
    ], "one for each round but the first"
