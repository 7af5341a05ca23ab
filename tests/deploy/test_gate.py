"""Who gets to the server, and how much of it they get: strangers, local users, nodes, the operator."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import pwd
import socket
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from pathlib import Path
from ssl import create_default_context
from typing import Any

import pytest
import uvicorn
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from flwr.proto.fleet_pb2 import ActivateNodeRequest, PullMessagesRequest, PullMessagesResponse, PushMessagesRequest
from flwr.proto.message_pb2 import Message, Metadata, PullObjectRequest
from flwr.proto.node_pb2 import Node

from fedrecplus.deploy.flower.connections import MOST_OF_A_KEY, BoundedConnection, note_known
from fedrecplus.deploy.process import CA, NodeHome, ServerHome, Supervised
from fedrecplus.deploy.process.processes import server_port
from fedrecplus.errors import UserError
from tests.waiting import GIVE_UP


class Running:
    """A server of its own process."""

    def __init__(self, home: Path) -> None:
        self.home = ServerHome(home.absolute(), "127.0.0.1", server_port())
        self.home.prepare([])
        self._tls = create_default_context(cafile=str(self.home.certificates / CA))
        self.start()

    def start(self) -> None:
        self.process = Supervised(self.home.command(), self.home.environment(), self.home.path / "superlink.log")
        self.process.start()
        self.home.wait_until_up(GIVE_UP)

    def post(self, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
        connection = HTTPSConnection("127.0.0.1", self.home.port, timeout=30, context=self._tls)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request("POST", path, body, {"Content-Type": "application/protobuf", **names})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    @property
    def megabytes(self) -> float:
        assert self.process.process is not None
        status = Path(f"/proc/{self.process.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("server") / "home")
    try:
        yield running
    finally:
        running.process.end(2.0)


class Key:
    """A node's key, and what Flower's nodes put into headers."""

    def __init__(self, folder: Path) -> None:
        self.public = NodeHome(folder).make_key()
        self._key: Any = load_ssh_private_key((folder / "node.key").read_bytes(), None)
        self.pem = self._key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def headers(self, when: datetime | None = None) -> dict[str, str]:
        stamp = (when or datetime.now(UTC)).isoformat()
        signature = self._key.sign(stamp.encode(), ec.ECDSA(hashes.SHA256()))
        encoded = {name: base64.b64encode(value).decode() for name, value in (("k", self.pem), ("s", signature))}
        return {"flwr_public_key": encoded["k"], "flwr_signature": encoded["s"], "flwr_timestamp": stamp}


def as_nobody(work: Callable[[], int]) -> int:
    """Run something in a child with the rights of `nobody`; returns its number. Who isn't root stays who they are."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(pwd.getpwnam("nobody").pw_gid)
                os.setuid(pwd.getpwnam("nobody").pw_uid)
            os.write(writer, str(work()).encode())
        except PermissionError:
            os.write(writer, b"13")
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as said:
        return int(said.read())


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/control/start-run", 403),
        ("/v1/control/register-node", 403),
        ("/v1/server/start", 401),
        ("/v1/server/admit", 401),
        ("/v1/runtime/acquire-task", 401),
        ("/v1/runtime/push-messages", 401),
        ("/v1/runtime/get-nodes", 401),
        ("/docs", 403),
        ("/openapi.json", 403),
    ],
)
def test_a_local_user_starts_nothing_and_takes_no_task(server: Running, path: str, status: int) -> None:
    assert as_nobody(lambda: server.post(path)[0]) == status


@pytest.mark.parametrize("name", ["control.token", "superexec.secret", "nodes.json", "certificates/ca.key"])
def test_what_opens_the_server_is_its_owners_alone(server: Running, name: str, tmp_path: Path) -> None:
    server.home.admit(Key(tmp_path).public)
    path = server.home.path / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    if os.geteuid() == 0:
        assert as_nobody(lambda: len(path.read_bytes())) == 13


def test_no_task_token_is_in_a_command_line(server: Running) -> None:
    """Flower writes it there, for every user of the machine to read."""
    words = [
        (folder / "cmdline").read_bytes().split(b"\0")
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and (folder / "cmdline").exists()
    ]
    assert not [line for line in words if b"--token" in line and str(server.home.port).encode() in b" ".join(line)]


def test_files_that_others_may_read_are_refused(tmp_path: Path) -> None:
    home = ServerHome(tmp_path / "home", "127.0.0.1", server_port())
    home.prepare([])
    for name in ("control.token", "certificates/ca.key", "certificates/server.key"):
        (home.path / name).chmod(0o666)
        with pytest.raises(UserError, match=r"mode 666(.|\n)*chmod 600"):
            home.prepare([])
        (home.path / name).chmod(0o600)


def test_a_signed_look_for_work_of_an_admitted_node_is_answered(server: Running, tmp_path: Path) -> None:
    key = Key(tmp_path)
    request = ActivateNodeRequest(public_key=key.pem, heartbeat_interval=30).SerializeToString()
    assert server.post("/v1/fleet/activate-node", request, **key.headers())[0] == 401, "not admitted yet"
    number, _ = server.home.admit(key.public, "anna")
    assert server.post("/v1/fleet/activate-node", request, **key.headers())[0] == 200
    assert server.post("/v1/fleet/activate-node", request, **key.headers())[0] == 200, "killed, and back at once"
    look = PullMessagesRequest()
    look.node.node_id = number
    status, content = server.post("/v1/fleet/pull-messages", look.SerializeToString(), **key.headers())
    assert status == 200
    assert not PullMessagesResponse.FromString(content).messages_list
    look.node.node_id = number + 1
    assert server.post("/v1/fleet/pull-messages", look.SerializeToString(), **key.headers())[0] == 401
    old = datetime(2020, 1, 1, tzinfo=UTC)
    assert server.post("/v1/fleet/pull-messages", b"", **key.headers(old))[0] == 401
    assert server.post("/v1/fleet/pull-messages", b"\xff\xff", **key.headers())[0] == 400
    server.home.expel(number)
    assert server.post("/v1/fleet/activate-node", request, **key.headers())[0] == 401
    assert server.home.admit(key.public) == (number, True), "an expelled key comes back as who it was"
    assert server.post("/v1/fleet/activate-node", request, **key.headers())[0] == 200


def test_twenty_strangers_with_31_megabytes_each_cost_no_memory(server: Running, tmp_path: Path) -> None:
    before, key, body = server.megabytes, Key(tmp_path), bytes(31 * 10**6)
    refused: list[bool] = []

    def stranger(headers: dict[str, str]) -> None:
        try:
            refused.append(server.post("/v1/fleet/push-object", body, **headers)[0] == 401)
        except (OSError, HTTPException):  # closed in its face, while it still sent
            refused.append(True)

    threads = [threading.Thread(target=stranger, args=(key.headers() if n % 2 else {},)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert refused == [True] * 20
    assert server.megabytes - before < 40


def test_requests_that_never_end_are_closed_and_the_oldest_strangers_go_first() -> None:
    class Quick(BoundedConnection):
        head_seconds, body_seconds, most_strangers = 0.4, 0.8, 200

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"ok"})

    port = server_port()
    web = uvicorn.Server(uvicorn.Config(app, port=port, http=Quick, lifespan="off", ws="none", log_level="error"))
    thread = threading.Thread(target=lambda: asyncio.run(web.serve()), daemon=True)
    thread.start()
    while not web.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        open_ones = []
        for number in range(300):
            one = socket.create_connection(("127.0.0.1", port), 5)
            whole = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"
            one.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nX-Slow: " if number % 2 else whole)
            open_ones.append(one)
        ok = HTTPConnection("127.0.0.1", port, timeout=5)
        ok.request("GET", "/")
        assert ok.getresponse().read() == b"ok", "who asks properly is answered meanwhile"
        ok.close()
        time.sleep(1.5)
        assert len(web.server_state.connections) <= 1
        for one in open_ones:
            one.close()
        flood = socket.create_connection(("127.0.0.1", port), 5)
        with pytest.raises(ConnectionError):
            flood_with_headers(flood)
        flood.close()
    finally:
        web.should_exit = True
        thread.join(10)


@pytest.mark.parametrize("ahead", ["requests", "headers"])
def test_nobody_sends_on_and_on_while_an_answer_waits(ahead: str) -> None:
    over = threading.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        while not over.is_set():
            await asyncio.sleep(0.01)

    port = server_port()
    options = {"http": BoundedConnection, "lifespan": "off", "ws": "none", "log_level": "critical"}
    web = uvicorn.Server(uvicorn.Config(app, port=port, **options))  # type: ignore[arg-type]
    thread = threading.Thread(target=lambda: asyncio.run(web.serve()), daemon=True)
    thread.start()
    while not web.started:
        assert thread.is_alive()
        time.sleep(0.02)
    one = socket.create_connection(("127.0.0.1", port), 5)
    try:
        request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
        one.sendall(request)
        time.sleep(0.1)
        if ahead == "headers":
            one.sendall(request[:-2])
        with pytest.raises(ConnectionError):
            flood_with_headers(one, request * 20 if ahead == "requests" else b"X-More: " + b"x" * 10_000)
    finally:
        one.close()
        over.set()
        web.should_exit = True
        thread.join(10)


def test_of_one_key_a_few_connections_stay_and_none_that_does_not_read(tmp_path: Path) -> None:
    class Quick(BoundedConnection):
        read_seconds = 0.3

    async def app(scope: Any, receive: Any, send: Any) -> None:
        note_known(scope["client"], scope["path"].encode())
        size = 20 * 2**20 if scope["path"] == "/large" else 2
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(size)})

    port = server_port()
    web = uvicorn.Server(uvicorn.Config(app, port=port, http=Quick, lifespan="off", ws="none", log_level="critical"))
    thread = threading.Thread(target=lambda: asyncio.run(web.serve()), daemon=True)
    thread.start()
    while not web.started:
        assert thread.is_alive()
        time.sleep(0.02)
    open_ones = []
    try:
        for name in ["/one"] * 40 + ["/other"]:
            one = HTTPConnection("127.0.0.1", port, timeout=5)
            one.request("GET", name)
            assert len(one.getresponse().read()) == 2
            open_ones.append(one)
        assert len(web.server_state.connections) == MOST_OF_A_KEY + 1
        slow = HTTPConnection("127.0.0.1", port, timeout=5)
        open_ones.append(slow)
        slow.request("GET", "/large")
        answer, read = slow.getresponse(), 0
        for _ in range(10):  # as long as it reads, it may take its time
            read += len(answer.read(2**20))
            time.sleep(0.1)
        assert read == 10 * 2**20
        time.sleep(1.0)
        with pytest.raises((ConnectionError, IncompleteRead)):
            answer.read()
        answer.close()
        assert len(web.server_state.connections) == MOST_OF_A_KEY + 1
    finally:
        for one in open_ones:
            one.close()
        web.should_exit = True
        thread.join(10)


def flood_with_headers(connection: socket.socket, more: bytes = b"X-More: " + b"x" * 10_000) -> None:
    """A megabyte of one request's headers, or something else a hundred times."""
    for _ in range(100):
        connection.sendall(more)
        time.sleep(0.005)


def test_a_restart_and_a_new_key_leave_nodes_who_they_are(tmp_path: Path) -> None:
    running = Running(tmp_path / "home")
    try:
        first, second = Key(tmp_path / "a"), Key(tmp_path / "b")
        number, _ = running.home.admit(first.public, "anna")
        gone, _ = running.home.admit(Key(tmp_path / "c").public)
        running.home.expel(gone)
        running.process.end(2.0)
        assert not list(running.home.path.glob("superlink.db*")), "nothing of a message is on the disk"
        running.start()
        assert [(node["node-id"], node["name"], node["status"]) for node in running.home.nodes()] == [
            (str(number), "anna", "registered"), (str(gone), "", "expelled"),
        ]  # fmt: skip
        request = ActivateNodeRequest(public_key=first.pem, heartbeat_interval=30).SerializeToString()
        assert running.post("/v1/fleet/activate-node", request, **first.headers())[0] == 200
        assert running.home.admit(second.public, instead_of=number) == (number, True)
        assert running.post("/v1/fleet/activate-node", request, **first.headers())[0] == 401
        request = ActivateNodeRequest(public_key=second.pem, heartbeat_interval=30).SerializeToString()
        assert running.post("/v1/fleet/activate-node", request, **second.headers())[0] == 200
        with pytest.raises(UserError, match="no node 5"):
            running.home.admit(Key(tmp_path / "d").public, instead_of=5)
    finally:
        running.process.end(2.0)
    assert [row["number"] for row in json.loads((running.home.path / "nodes.json").read_text())]


@pytest.mark.parametrize("damaged", [False, True])
def test_the_database_of_an_earlier_version_is_taken_over_and_deleted(tmp_path: Path, damaged: bool) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    key = Key(tmp_path / "a")
    path = home / "superlink.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE node (node_id, public_key, name, registered_at, status, owner_aid)")
        row = (7 - 2**63, key.pem, "anna", "2026-01-01", "offline", "owner")
        database.execute("INSERT INTO node VALUES (?, ?, ?, ?, ?, ?)", row)
        database.commit()
    if damaged:
        path.write_bytes(b"no database at all" * 100)
    running = Running(home)
    try:
        assert not path.exists()
        named = [(node["node-id"], node["name"]) for node in running.home.nodes()]
        assert named == ([] if damaged else [(str(7 + 2**63), "anna")])
    finally:
        running.process.end(2.0)


def test_an_answer_to_a_run_that_a_restarted_server_does_not_know_is_refused_for_good(
    server: Running, tmp_path: Path
) -> None:
    key = Key(tmp_path / "a")
    number, _ = server.home.admit(key.public)
    node = Node(node_id=number)
    asked = PullObjectRequest(node=node, run_id=12345, object_id="ab" * 32).SerializeToString()
    assert server.post("/v1/fleet/pull-object", asked, **key.headers())[0] == 403
    metadata = Metadata(run_id=12345, src_node_id=number)
    answer = PushMessagesRequest(node=node, messages_list=[Message(metadata=metadata)]).SerializeToString()
    assert server.post("/v1/fleet/push-messages", answer, **key.headers())[0] == 403
