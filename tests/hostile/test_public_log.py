"""A server that tells two worlds, or a round twice: the task's public log finds it out."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from fedrecplus.cli.main import exit_code_of
from fedrecplus.deploy.device import Store, answer, known_logs, round as rounds_of_devices
from fedrecplus.deploy.device.steps import load_state, save_state
from fedrecplus.deploy.node import ServerConnection, trust, witness
from fedrecplus.deploy.server.task_log import append, head_of, log_key
from fedrecplus.deploy.wire.log import LogHead, leaf_hash, root_of
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import decode_request
from fedrecplus.deploy.wire.stages import FIRST
from fedrecplus.deploy.wire.task import Task
from fedrecplus.errors import UserError
from tests.deploy.in_process import MODEL, InProcessLink, serve, stored
from tests.deploy.running import Running
from tests.deploy.summing import secure_config
from tests.hostile.test_checked_tables import LyingLink, agreed

CONFIG = secure_config(rounds=3)


def test_roots_are_those_of_rfc_6962() -> None:
    """Seven leaves, as the standard draws them: a full tree of four, one of two, and one leaf."""

    def node(left: bytes, right: bytes) -> bytes:
        return hashlib.sha256(b"\x01" + left + right).digest()

    a, b, c, d, e, f, g = leaves = [leaf_hash(name) for name in "abcdefg"]
    assert root_of(leaves) == node(node(node(a, b), node(c, d)), node(node(e, f), g))
    assert root_of([a]) == hashlib.sha256(b"\x00a").digest()
    assert root_of([]) == hashlib.sha256(b"").digest()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, InProcessLink]:
    """A whole run of three rounds, over devices that look at the log."""
    folder = tmp_path_factory.mktemp("logged")
    link = InProcessLink(agreed(folder, CONFIG))
    serve(link, folder / "run")
    return folder, link


def test_a_crash_after_an_answer_takes_no_round_out_of_the_device_s_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it was told and its answer are kept together: after a crash it has neither, and is asked again."""
    homes, crashes = agreed(tmp_path, secure_config(rounds=1)), [OSError("the power went")]

    def save(*told: Any) -> None:
        save_state(*told)
        if crashes:
            raise crashes.pop()

    monkeypatch.setattr(rounds_of_devices, "save_state", save)
    link = LyingLink(homes, {"a crash": (lambda packet: packet, 0)})
    serve(link, tmp_path / "run")
    assert link.refusals == {"a crash": "fault"}
    with Store.open(homes[0].store) as store:
        assert [len(head.leaves) for head in known_logs(store)] == [2]
        assert load_state(store, MODEL) is not None


def last_question(link: InProcessLink) -> Packet:
    return [packet for _, packet in link.asked if packet.facts.get("stage") == FIRST][-1]


def log_of(folder: Path) -> tuple[Task, LogHead]:
    kept = stored(folder / "run")
    task = Task.parse(kept.deployment.task)
    with kept.database.changing() as connection:
        head = head_of(connection, task.digest)
    assert head is not None
    return task, head


def told(packet: Packet, head: LogHead | None, **facts: str) -> Packet:
    """The same question with another log."""
    arrays = {name: one for name, one in packet.arrays.items() if not name.startswith("log.")}
    return Packet({**packet.facts, **facts}, {**arrays, **({} if head is None else head.arrays())})


def test_every_device_has_the_log_of_the_whole_run(run: tuple[Path, InProcessLink]) -> None:
    folder, link = run
    task, head = log_of(folder)
    head.check(task)
    assert len(head.leaves) == 1 + CONFIG.server.rounds
    for home in link.homes:
        with Store.open(home.store) as store:
            assert known_logs(store) == [head]


def test_the_log_s_head_is_part_of_the_sum_s_name(run: tuple[Path, InProcessLink]) -> None:
    folder, link = run
    packet = last_question(link)
    _, head = log_of(folder)
    other = replace(head, leaves=(*head.leaves[:-1], leaf_hash("another round")))
    names = {decode_request(question).sum_session for question in (packet, told(packet, other), told(packet, head))}
    assert len(names) == 2


def test_a_log_that_was_rewritten_is_refused(run: tuple[Path, InProcessLink]) -> None:
    """The server's own key signs another world, in which the second round was another one."""
    folder, link = run
    packet, (task, head) = last_question(link), log_of(folder)
    kept = stored(folder / "run")
    with kept.database.changing() as connection:
        key = log_key(connection)
    forked = LogHead.signed(task.digest, (*head.leaves[:2], leaf_hash("another round"), head.leaves[-1]), key)
    short = LogHead.signed(task.digest, head.leaves[:-1], key)
    unsigned = LogHead.signed(task.digest, head.leaves, Ed25519PrivateKey.generate())
    for wrong in (forked, short, unsigned, None):
        assert answer(told(packet, wrong), link.homes[0].store).facts["refusal"] == "log"
    moved = replace(packet, arrays={**packet.arrays, "V": packet.arrays["V"] + 1e-9})
    assert answer(moved, link.homes[0].store).facts["refusal"] == "log", "the log has the table's digest"


def test_a_round_has_one_place_in_the_log(run: tuple[Path, InProcessLink]) -> None:
    kept = stored(run[0] / "run")
    task, head = log_of(run[0])
    with pytest.raises(UserError, match="begin a new run"), kept.database.changing() as connection:
        append(connection, task.digest, 2, '{"round": 1, "V": "other", "sum": ""}')
    assert log_of(run[0])[1] == head


def test_a_witness_finds_two_worlds(run: tuple[Path, InProcessLink], tmp_path: Path) -> None:
    """The witness was told one log, a device another; both are signed by the server."""
    folder, link = run
    task, head = log_of(folder)
    kept = stored(folder / "run")
    with kept.database.changing() as connection:
        key = log_key(connection)
    same = witness.witness_log(tmp_path / "same", head, [task.text])
    assert same["root"] == head.root.hex()
    home = ["--home", str(link.homes[0].path)]
    heads = ["--witness", str(tmp_path / "same" / witness.HEADS), "--key", witness.witness_key(tmp_path / "same")]
    assert exit_code_of(["device", "log", *heads, *home]) == 0
    world = LogHead.signed(task.digest, (*head.leaves[:2], leaf_hash("another round")), key)
    witness.witness_log(tmp_path / "other", world, [task.text])
    heads = ["--witness", str(tmp_path / "other" / witness.HEADS)]
    assert exit_code_of(["device", "log", *heads, *home]) == 1
    with pytest.raises(UserError, match="no head that this witness signed"):
        witness.read_heads(tmp_path / "other" / witness.HEADS, witness.witness_key(tmp_path / "same"))
    with pytest.raises(UserError, match="it was rewritten"):
        witness.witness_log(tmp_path / "other", head, [task.text])


def test_whoever_asks_is_told_the_log(tmp_path: Path) -> None:
    with Running(tmp_path / "server") as server:
        with server.home.database.changing() as connection:
            public = log_key(connection).public_key().public_bytes_raw().hex()
            task = Task("00c0ffee", "{}", 1, "", "", 0, public)
            append(connection, task.digest, 0, task.text)
        asking = ServerConnection("127.0.0.1", server.home.port, trust(server.ca))
        head, entries = witness.fetch_log(asking, task.digest)
        asking.close()
        head.check(task)
        assert entries == [task.text]
        with pytest.raises(Refusal):
            replace(head, signature=b"\x00" * 64).check(task)
