"""A device's node against a real worker: it answers in place, goes on after whatever interrupts it, and says why."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from sqlalchemy import update

from fedrecplus.deploy.device import answer
from fedrecplus.deploy.node import (
    NODE_KEY,
    Node,
    NodeHome,
    Pace,
    ServerConnection,
    prepare,
    read_node_key,
    read_public_key,
    trust,
)
from fedrecplus.deploy.node.connection import NoAnswer
from fedrecplus.deploy.server import Lease
from fedrecplus.deploy.server.link import DatabaseLink
from fedrecplus.deploy.server.schema import objects, work
from fedrecplus.deploy.server.stored_run import CoordinatedRun
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.questions import WorkItem
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.sealing import SealingKey
from fedrecplus.errors import UserError
from fedrecplus.rounds import start_server
from tests.deploy.in_process import MODEL, database_of, prepared, small_config, stored
from tests.deploy.running import Running
from tests.small_data import small_ratings

RATINGS = small_ratings()


class Meeting:
    """A worker, a coordinator's link, and one node."""

    def __init__(self, folder: Path, running: Running, home: NodeHome) -> None:
        self.running, self.home = running, home
        self.number = running.home.roster.admit(read_public_key(home.make_key()))[0]
        lease = Lease(running.home.database, seconds=1e6)
        assert lease.take()
        self.link = DatabaseLink(CoordinatedRun(lease, stored(folder / "run").number))

    def node(self, reply_to: Callable[[Packet], Packet] | None = None) -> Node:
        key = read_node_key(self.home.path / NODE_KEY)
        server = ServerConnection("127.0.0.1", self.running.home.port, trust(self.running.ca), key)
        return Node(server, self.home.store, pace=Pace(0.01, 0.1), reply_to=reply_to, wait=3.0)

    def request(self, round_number: int = 0) -> Packet:
        config, catalogue = small_config(), ItemCatalogue.of(RATINGS)
        packet = encode_request(MODEL, start_server(config, catalogue.public), config, catalogue, attach=True)
        return Packet({**packet.facts, "round": round_number}, packet.arrays)

    def ask(self, packet: Packet) -> int:
        (name,) = self.link.ask({self.number: packet}, 60.0)
        return name


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[Meeting]:
    (home,) = prepared(tmp_path, RATINGS, small_config(), nodes=1)
    with Running(tmp_path / "server", database_of(tmp_path / "run").address) as running:
        yield Meeting(tmp_path, running, home)


def test_a_question_is_answered_by_the_device_and_the_catalogue_is_fetched_once(meeting: Meeting) -> None:
    seen: list[Packet] = []

    def noting(packet: Packet) -> Packet:
        seen.append(packet)
        return answer(packet, meeting.home.store)

    node = meeting.node(noting)
    for number in (0, 1):
        name = meeting.ask(meeting.request(number))
        node.step()
        ((_, reply),) = meeting.link.replies([name])
        assert isinstance(reply, Packet)
        assert len(reply.arrays["clients"]) == RATINGS.clients
    assert ["catalogue.content" in packet.arrays for packet in seen] == [True, False]
    np.testing.assert_array_equal(seen[0].arrays["V"], meeting.request().arrays["V"])
    node.leave()


def test_an_interrupted_answer_is_sent_by_the_next_step_and_after_a_kill_again(meeting: Meeting) -> None:
    name, made = meeting.ask(meeting.request()), list[Packet]()

    def noting(packet: Packet) -> Packet:
        made.append(answer(packet, meeting.home.store))
        return made[-1]

    node = meeting.node(noting)
    node.server.call = _only_get(node.server)  # type: ignore[method-assign]
    node.step()
    assert node.at_work
    assert meeting.link.replies([name]) == []
    del node.server.call
    again = meeting.node(noting)  # as if it had been killed: nothing is left but the store
    again.step()
    assert len(made) == 2
    assert made[0].digest == made[1].digest, "the same answer, not one made anew"
    ((_, reply),) = meeting.link.replies([name])
    assert isinstance(reply, Packet)
    node.step()  # the first one hears that it was answered, and goes on
    assert not node.at_work
    for each in (node, again):
        each.leave()


def _only_get(server: ServerConnection) -> Callable[..., bytes]:
    call = server.call

    def cut_off(method: str, target: str, *rest: object, **more: object) -> bytes:
        if method == "POST":
            raise NoAnswer("cut off")
        return call(method, target, *rest, **more)  # type: ignore[arg-type]

    return cut_off


def test_a_question_that_is_over_is_given_up(meeting: Meeting, caplog: pytest.LogCaptureFixture) -> None:
    meeting.ask(meeting.request())

    def slow(packet: Packet) -> Packet:
        with meeting.running.home.database.changing() as connection:
            connection.execute(update(work).values(until=1.0))
        return answer(packet, meeting.home.store)

    node = meeting.node(slow)
    node.step()
    assert not node.at_work
    assert "a round went on without this node: 410" in caplog.text
    node.leave()


def test_a_question_that_makes_no_sense_costs_a_node_its_round_and_no_other(meeting: Meeting) -> None:
    """Such as a table that a cache has spoiled: the node looked at that question for ever, and at no other."""
    first = meeting.request()
    meeting.ask(first)
    with meeting.running.home.database.changing() as connection:
        connection.execute(update(objects).where(objects.c.until.is_not(None)).values(content=b"another"))
    node = meeting.node()
    assert node.step() > 0.0
    assert node.in_trouble
    name = meeting.ask(Packet(first.facts, {"V": first.arrays["V"] + 0.01}))
    node.step()
    ((answered, reply),) = meeting.link.replies([name])
    assert answered == name
    assert isinstance(reply, Packet)
    node.leave()


def test_a_fault_of_the_node_is_one_word_to_the_server(meeting: Meeting) -> None:
    name = meeting.ask(meeting.request())

    def broken(_: Packet) -> Packet:
        raise RuntimeError("rating 5 of item 7")

    node = meeting.node(broken)
    node.step()
    ((_, reply),) = meeting.link.replies([name])
    assert isinstance(reply, Packet)
    assert reply.facts["refusal"] == "fault"
    assert "7" not in str({name: value for name, value in reply.facts.items() if name != "version"})
    node.leave()


def test_whoever_is_not_admitted_is_told_what_to_do_and_tries_on(
    meeting: Meeting, caplog: pytest.LogCaptureFixture
) -> None:
    meeting.running.home.roster.expel(meeting.number)
    node = meeting.node()
    pauses = [node.step() for _ in range(3)]
    assert caplog.text.count("server admit") == 1, "said once"
    assert min(pauses) > 0.5
    node.leave()


def test_a_server_that_is_away_is_waited_for_ever_longer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (home,) = prepared(tmp_path, RATINGS, small_config(), nodes=1)
    home.make_key()
    node = prepare(home.path, "127.0.0.1:9", None, insecure=True, longest_pause=5.0)
    pauses = [node.step() for _ in range(8)]
    assert pauses[0] < pauses[-1] < 6.1
    assert caplog.text.count("doesn't answer") == 1
    with pytest.raises(UserError, match="in the clear"):
        prepare(home.path, "127.evil.example:9", None, insecure=True)


@pytest.mark.parametrize("content", [b"", b"\x00", b"\xff" * 100, b"\x86", b"{}", b"A" * 1000])
def test_whatever_a_server_answers_a_node_lives_on(content: bytes, tmp_path: Path) -> None:
    class Strange(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    (home,) = prepared(tmp_path, RATINGS, small_config(), nodes=1)
    home.make_key()
    with http.server.HTTPServer(("127.0.0.1", 0), Strange) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        node = prepare(home.path, f"127.0.0.1:{server.server_address[1]}", None, insecure=True)
        assert node.step() > 0.0
        assert not node.at_work
        node.server.close()
        server.shutdown()


@contextlib.contextmanager
def answering(status_of: Callable[[str], int]) -> Iterator[tuple[ServerConnection, list[int]]]:
    """A connection to somebody who answers each path with a status and nothing else, and what was answered."""
    given = list[int]()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            given.append(status_of(self.path))
            self.send_response(given[-1])
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        connection = ServerConnection("127.0.0.1", server.server_address[1], None)
        yield connection, given
        connection.close()
        server.shutdown()


def test_a_busy_server_is_not_asked_again_at_once() -> None:
    """A connection that broke is opened anew; an answer that says *later* is an answer."""
    with answering(lambda _: 503) as (connection, given):
        for _ in range(3):
            with pytest.raises(NoAnswer, match="503"):
                connection.call("GET", "/v1/work")
    assert len(given) == 3


def test_polls_are_held_for_less_where_a_proxy_cuts_them_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would end in a failure, and a pause in which nobody can ask the node."""
    (home,) = prepared(tmp_path, RATINGS, small_config(), nodes=1)

    def proxy(target: str) -> int:
        wait = float(target.partition("wait=")[2].partition("&")[0])
        time.sleep(min(wait, 0.6))
        return 504 if wait > 0.6 else 204

    monkeypatch.setattr("fedrecplus.deploy.node.node._SHORTEST_WAIT", 0.1)
    with answering(proxy) as (connection, given):
        node = Node(connection, home.store, wait=2.0)
        node.step()
        assert node.in_trouble
        node.step()
        assert not node.in_trouble
    assert given == [504, 204]


@pytest.mark.parametrize(("computing", "sent_after"), [(0.2, 1.0), (0.7, 1.0), (1.3, 2.0)])
def test_answers_go_at_whole_steps_after_their_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, computing: float, sent_after: float
) -> None:
    """Else how long a device computes would tell of how many ratings it has."""
    (home,) = prepared(tmp_path, RATINGS, small_config(), nodes=1)
    clock, sent = [100.0], list[float]()
    question = WorkItem(7, 1, 0.0, SealingKey().public, Packet({}, {}).to_bytes(), {})

    def call(self: ServerConnection, method: str, *_: object, **__: object) -> bytes:
        if method == "POST":
            sent.append(clock[0])
        return msgspec.msgpack.encode(question) if method == "GET" else b""

    def reply(packet: Packet) -> Packet:
        clock[0] += computing
        return packet

    monkeypatch.setattr(ServerConnection, "call", call)
    monkeypatch.setattr("fedrecplus.deploy.node.node.time.monotonic", lambda: clock[0])
    node = Node(ServerConnection("127.0.0.1", 9, None), home.store, reply_to=reply, answer_step=1.0)
    pauses = 0
    while not sent:
        clock[0], pauses = clock[0] + node.step(), pauses + 1
    assert pauses > 1
    assert sent == [pytest.approx(100.0 + sent_after)]
