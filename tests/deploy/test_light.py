"""A device's node in one process: Flower's messages without Flower, and going on after whatever interrupts it."""

from __future__ import annotations

import contextlib
import http.server
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.flower.messages import packet_of, record_of
from fedrecplus.deploy.light import (
    NODE_KEY,
    Fleet,
    Key,
    LightNode,
    NodeHome,
    Pace,
    make_node_key,
    run_once,
    running,
    trust,
)
from fedrecplus.deploy.light.fleet import NoAnswer, Rejected, _reason
from fedrecplus.deploy.light.messages import ATTACHED, CALLS, CONFIG_RECORD, MESSAGE, METADATA, TREE, Asked, Reply
from fedrecplus.deploy.light.messages import packet_of_object as read_object
from fedrecplus.deploy.light.protobuf import Field, Malformed, Schema, decode, encode
from fedrecplus.deploy.process import free_port
from fedrecplus.deploy.process.certificates import make_server_certificates
from fedrecplus.deploy.wire import Packet, Refusal
from fedrecplus.errors import UserError
from tests.waiting import GIVE_UP

METADATA_OF_A_QUESTION: dict[str, Any] = {
    "run_id": 2**64 - 7, "message_id": "ab" * 32, "src_node_id": 1, "dst_node_id": 2**63 + 5, "reply_to_message_id": "",
    "group_id": "", "ttl": 150.0, "message_type": "train", "created_at": 1.8e9, "src_task_id": 0, "dst_task_id": None,
}  # fmt: skip


def nested(depth: int) -> bytes:
    """Trees within each other."""
    content = b""
    for number in [2] * depth + [3]:
        content = encode({number: Field("children", "bytes")}, {"children": content or b"\x12\x00"})
    return content


def flowers(name: str) -> Any:
    from flwr.proto import fleet_pb2, heartbeat_pb2, message_pb2, recorddict_pb2

    for module in (fleet_pb2, heartbeat_pb2, message_pb2, recorddict_pb2):
        if hasattr(module, name):
            return getattr(module, name)
    raise AssertionError(f"Flower has no message {name} any more")


def camel(path: str) -> str:
    return "".join(word.capitalize() for word in path.split("-"))


def differences(schema: Schema, descriptor: Any, seen: tuple[int, ...] = ()) -> list[str]:
    """Fields of ours that are none of Flower's, by number, name, kind and whether they are repeated."""
    types = {"uint": {4, 13}, "sint": {18}, "bool": {8}, "double": {1}, "text": {9}, "bytes": {12}}
    wrong: list[str] = []
    for number, field in schema.items():
        theirs = descriptor.fields_by_number.get(number)
        if theirs is None or (theirs.name, theirs.is_repeated) != (field.name, field.repeated):
            wrong.append(f"{descriptor.full_name}.{field.name}")
        elif field.kind == "self":
            wrong += [] if theirs.message_type is descriptor else [field.name]
        elif isinstance(field.kind, dict):
            wrong += differences(field.kind, theirs.message_type)
        elif theirs.type not in types[field.kind] or (field.optional and not theirs.has_presence):
            wrong.append(f"{descriptor.full_name}.{field.name}: kind {theirs.type}")
    return wrong


@pytest.mark.parametrize("path", CALLS)
def test_messages_are_flowers_field_by_field(path: str) -> None:
    from flwr.supernode import fleet_http_client

    fleet = {"register-node", "unregister-node"}
    name = camel(path) + ("Fleet" if path in fleet else "")
    for kind, schema in zip(("Request", "Response"), CALLS[path], strict=True):
        assert differences(schema, flowers(name + kind).DESCRIPTOR) == []
    assert f'"/v1/fleet/{path}"' in Path(fleet_http_client.__file__).read_text()


@given(
    st.fixed_dictionaries(
        {
            "run_id": st.integers(0, 2**64 - 1), "message_id": st.text(max_size=20),
            "src_node_id": st.integers(0, 2**64 - 1), "ttl": st.floats(0.0, 1e12),
            "src_task_id": st.none() | st.integers(0, 2**64 - 1),
        }
    )
)  # fmt: skip
def test_bytes_are_flowers_bytes(facts: dict[str, Any]) -> None:
    theirs = flowers("Metadata")(**{name: value for name, value in facts.items() if value is not None})
    ours = encode(METADATA, facts)
    assert ours == theirs.SerializeToString(deterministic=True)
    assert {name: decode(METADATA, ours)[name] for name in facts} == facts


@given(st.binary(max_size=200))
def test_whatever_a_server_sends_is_a_message_or_malformed(content: bytes) -> None:
    for schema in (MESSAGE, TREE, CONFIG_RECORD, CALLS["pull-messages"][1]):
        with contextlib.suppress(Malformed):
            assert set(decode(schema, content)) == {field.name for field in schema.values()}
    with pytest.raises(Refusal):
        read_object(content, "0" * 64)


def packet() -> Packet:
    return Packet({"round": 3, "version": "7"}, {"delta": np.arange(12.0).reshape(3, 4), "items": np.arange(3)})


@pytest.mark.parametrize("content", [nested(2000), b"\x12\x00" * 200_000])
def test_messages_that_would_fill_the_memory_or_the_stack_are_malformed(content: bytes) -> None:
    with pytest.raises(Malformed):
        decode(CALLS["pull-messages"][1], content)


def test_flower_reads_our_reply_and_gives_its_objects_the_same_names() -> None:
    from flwr.supercore.inflatable.inflatable_object import get_object_tree
    from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents, validate_object_content

    asked = Asked(METADATA_OF_A_QUESTION, "0" * 64, 1.8e9 + 3)
    reply = Reply.to(asked, packet())
    name = reply.message["metadata"]["message_id"]
    for content in reply.objects.values():
        validate_object_content(content)
    read: Any = inflate_object_from_contents(name, dict(reply.objects))
    assert read.object_id == name
    assert encode(TREE, reply.tree) == get_object_tree(read).SerializeToString(deterministic=True)
    assert packet_of(read.content).digest == packet().digest
    assert read.metadata.reply_to_message_id == METADATA_OF_A_QUESTION["message_id"]
    assert (read.metadata.src_node_id, read.metadata.dst_node_id) == (2**63 + 5, 1)
    assert read.metadata.dst_task_id == 0, "zero is a number"
    assert read.metadata.created_at + read.metadata.ttl == asked.until
    assert Reply.to(Asked.of_text(asked.to_text()), packet()) == reply, "the same after a restart"


def test_we_read_what_flower_writes() -> None:
    record = next(iter(record_of(packet()).children.values()))
    assert read_object(record.deflate(), record.object_id).digest == packet().digest
    with pytest.raises(Refusal):
        read_object(record.deflate(), "0" * 64)


class ScriptedFleet:
    """Flower's side, as far as a node sees it: one message for whoever asks, and failures on demand."""

    host, port = "fed.example.org", 9092

    class key:
        public = b"a public key"

    def __init__(self, fails: Callable[[str, int], None] = lambda *_: None) -> None:
        record = next(iter(record_of(packet()).children.values()))
        self.record, self.fails, self.calls = record, fails, list[str]()
        self.known, self.waiting, self.stored = {7}, True, dict[str, bytes]()
        self.announced: list[str] = []
        self.now = time.time()
        self.ttl = 100.0
        self.gone, self.all_sent, self.left = False, True, False

    def sibling(self) -> ScriptedFleet:
        return self

    def close(self) -> None:
        pass

    def call(self, name: str, request: dict[str, Any], seconds: float = 1.0, *, wait: float = 0.0) -> dict[str, Any]:
        asks, answers = CALLS[name]
        request = decode(asks, encode(asks, request))
        self.calls.append(name)
        self.fails(name, self.calls.count(name))
        reply = getattr(self, name.replace("-", "_"))(request)
        return decode(answers | ATTACHED.get(name, ({}, {}))[1], encode(answers, reply))  # Flower attaches nothing

    def activate_node(self, request: dict[str, Any]) -> dict[str, Any]:
        if (self.announced and not self.left) or not self.known:
            raise Rejected(400, "activation failed")  # believed connected, or not admitted
        return {"node_id": 7}

    def send_node_heartbeat(self, request: dict[str, Any]) -> dict[str, Any]:
        assert 10 <= request["heartbeat_interval"] <= 1800, "Flower refuses others"
        if request["node"]["node_id"] not in self.known:
            raise Rejected(401, "Invalid SuperNode authentication")
        return {"success": True}

    def pull_messages(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["node"]["node_id"] not in self.known:
            raise Rejected(401, "Invalid SuperNode authentication")
        if not self.waiting:
            return {}
        self.waiting = False
        metadata = {**METADATA_OF_A_QUESTION, "created_at": self.now, "ttl": self.ttl, "dst_node_id": 7}
        tree = {"object_id": "a", "children": [{"object_id": "b", "children": [{"object_id": self.record.object_id}]}]}
        return {"messages_list": [{"metadata": metadata}], "message_object_trees": [tree]}

    def pull_object(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.gone:
            return {}
        if request["object_id"] == METADATA_OF_A_QUESTION["message_id"]:
            return {"object_found": True, "object_available": self.all_sent}
        assert request["object_id"] == self.record.object_id
        return {"object_found": True, "object_available": True, "object_content": self.record.deflate()}

    def push_messages(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["messages_list"][0]["metadata"]["message_id"]
        if self.announced and name not in self.announced:
            return {"session_id": "s"}  # Flower takes no second reply
        self.announced = [name]
        names = []
        trees = request["message_object_trees"]
        while trees:
            names += [tree["object_id"] for tree in trees]
            trees = [child for tree in trees for child in tree["children"]]
        return {"objects_to_push": [name for name in names if name not in self.stored], "session_id": "s"}

    def push_object(self, request: dict[str, Any]) -> dict[str, Any]:
        self.stored[request["object_id"]] = request["object_content"]
        return {"stored": True}

    def confirm_message_received(self, request: dict[str, Any]) -> dict[str, Any]:
        return {}

    def deactivate_node(self, request: dict[str, Any]) -> dict[str, Any]:
        self.left = True
        return {}


def node_of(folder: Path, fleet: ScriptedFleet, reply_to: Callable[[Packet], Packet] = lambda packet: packet) -> Any:
    path = folder / "store.db"
    if not path.exists():
        Store.create(path, Scale(1.0, 5.0, 1.0))
    return LightNode(fleet, path, pace=Pace(0.001, 0.01), reply_to=reply_to)  # type: ignore[arg-type]


def steps(node: LightNode, number: int = 12) -> None:
    for _ in range(number):
        node.step()


def test_a_node_answers_and_the_answer_arrives_whole(tmp_path: Path) -> None:
    fleet = ScriptedFleet()
    node = node_of(tmp_path, fleet)
    steps(node, 3)
    assert node.answered == 1
    assert len(fleet.stored) == 3
    assert fleet.calls.count("pull-object") == 2, "what is known of the tree isn't fetched"
    assert "confirm-message-received" in fleet.calls
    assert not node.at_work


class AttachingFleet(ScriptedFleet):
    """Our server's side: objects come and go with their messages."""

    def call(self, name: str, request: dict[str, Any], seconds: float = 1.0, *, wait: float = 0.0) -> dict[str, Any]:
        reply = super().call(name, request, seconds, wait=wait)
        if name == "pull-messages" and reply["messages_list"]:
            reply["attached"] = [{"object_id": self.record.object_id, "content": self.record.deflate()}]
        if name == "push-messages":
            self.stored |= {one["object_id"]: one["content"] for one in request["attached"]}
            reply |= {"objects_to_push": [], "confirmed": request["confirms"]}
        return reply


def test_a_round_takes_two_calls_where_objects_come_with_their_messages(tmp_path: Path) -> None:
    fleet = AttachingFleet()
    with_objects = node_of(tmp_path, fleet)
    while not with_objects.answered:
        with_objects.step()
    assert fleet.calls == ["activate-node", "pull-messages", "push-messages"]
    assert set(fleet.announced) < set(fleet.stored)


def test_nothing_is_confirmed_while_the_server_is_still_sending_it(tmp_path: Path) -> None:
    fleet = ScriptedFleet()
    fleet.all_sent = False
    node = node_of(tmp_path, fleet)
    steps(node, 3)
    assert node.answered == 1
    assert "confirm-message-received" not in fleet.calls
    fleet.all_sent = True
    steps(node, 3)
    assert fleet.calls.count("confirm-message-received") == 1


@pytest.mark.parametrize("where", ["pull-messages", "pull-object", "push-messages", "push-object", "activate-node"])
def test_a_call_that_fails_is_made_again_and_the_answer_is_computed_once(tmp_path: Path, where: str) -> None:
    def fails(name: str, times: int) -> None:
        if name == where and times <= 3:
            raise NoAnswer("500 (database is locked)")

    fleet, computed = ScriptedFleet(fails), list[Packet]()

    def reply_to(packet: Packet) -> Packet:
        computed.append(packet)
        return packet

    node = node_of(tmp_path, fleet, reply_to)
    steps(node)
    assert (node.answered, len(computed), len(fleet.stored)) == (1, 1, 3)


@pytest.mark.parametrize("where", ["pull-object", "push-messages", "push-object"])
def test_a_node_killed_in_a_round_goes_on_at_once_with_the_same_answer(tmp_path: Path, where: str) -> None:
    def killed(name: str, times: int) -> None:
        if name == where and times == 2 - (where != "push-object"):
            raise KeyboardInterrupt

    fleet = ScriptedFleet(killed)
    with pytest.raises(KeyboardInterrupt):
        steps(node_of(tmp_path, fleet))
    again = node_of(tmp_path, fleet)
    steps(again, 2)
    assert again.answered == 1
    assert len(fleet.stored) == 3, "the reply that was announced before is complete"
    assert fleet.calls.count("activate-node") == 1, "Flower would refuse a second activation for a while"
    assert fleet.calls.count("pull-messages") <= 2


def test_a_round_whose_time_is_up_is_given_up(tmp_path: Path) -> None:
    def fails(name: str, _: int) -> None:
        if name == "push-messages":
            raise NoAnswer("timed out")

    fleet = ScriptedFleet(fails)
    fleet.ttl = 0.05
    node = node_of(tmp_path, fleet)
    node.step()
    time.sleep(0.06)
    steps(node, 3)
    assert not node.at_work
    assert node.answered == 0


def test_a_round_that_the_server_has_closed_is_given_up(tmp_path: Path) -> None:
    fleet = ScriptedFleet()
    fleet.gone = True
    node = node_of(tmp_path, fleet)
    node.step()
    assert not node.at_work


def test_a_server_that_lost_its_database_is_joined_anew_when_it_admits_the_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fleet = ScriptedFleet()
    node = node_of(tmp_path, fleet)
    steps(node, 2)
    fleet.known, fleet.announced = set(), []
    steps(node, 4)
    assert "doesn't know this node any more" in caplog.text
    assert caplog.text.count("server admit") == 1, "said once"
    fleet.known = {7}
    steps(node, 2)
    assert fleet.calls[-1] == "pull-messages"


def test_pauses_grow_to_the_longest_and_are_short_again_after_work() -> None:
    pace = Pace(0.2, 30.0)
    pauses = [pace.after_nothing(0.001) for _ in range(30)]
    assert pauses[0] < 0.3
    assert 24.0 <= pauses[-1] <= 36.0
    assert len(set(pauses[-10:])) == 10, "no two devices keep step"
    assert pace.after_work() < 0.3
    assert pace.after_nothing(0.5) > 7.0, "a server that takes long is asked less"
    assert Pace().after_nothing(0.001, hint=100.0) > 70.0
    assert Pace().after_nothing(25.0, waited=25.0, hint=2.0**64) < 1000.0
    assert Pace().after_nothing(25.0, waited=25.0) < 0.3, "a server that held its answer has waited for us"
    assert pace.after_failure() <= 36.0


def test_a_visit_answers_and_ends(tmp_path: Path) -> None:
    fleet = ScriptedFleet()
    node = node_of(tmp_path, fleet)
    run_once(node, wait=0.05)
    assert node.answered == 1
    assert fleet.calls[-1] == "deactivate-node", "nobody waits for it"
    again = node_of(tmp_path, fleet)
    run_once(again, wait=0.0, back_in=900.0)
    assert again.answered == 0
    assert fleet.calls[-1] == "send-node-heartbeat", "messages wait for the next visit"


def test_a_visit_to_a_server_that_is_away_ends_too(tmp_path: Path) -> None:
    def fails(_: str, __: int) -> None:
        raise NoAnswer("connection refused")

    run_once(node_of(tmp_path, ScriptedFleet(fails)), wait=0.05)


def test_a_node_told_to_stop_ends_as_after_ctrl_c(tmp_path: Path) -> None:
    home = NodeHome(tmp_path / "me")
    Store.create(home.store, Scale(1.0, 5.0, 1.0))
    command = home.command(f"127.0.0.1:{free_port()}", ca=None, insecure=True)
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    while "doesn't answer" not in (tmp_path / "log").read_text():
        assert process.poll() is None, (tmp_path / "log").read_text()
        time.sleep(0.05)
    process.terminate()
    assert process.wait(GIVE_UP) == 130
    assert "Traceback" not in (tmp_path / "log").read_text()


def test_a_certificate_by_another_authority_ends_the_node_in_words(tmp_path: Path) -> None:
    for name in ("server", "other"):
        make_server_certificates(tmp_path / name, [])
    make_node_key(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server" / "server.crt", tmp_path / "server" / "server.key")
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                context.wrap_socket(server.accept()[0], server_side=True)

        threading.Thread(target=serve, daemon=True).start()
        port = server.getsockname()[1]
        fleet = Fleet("127.0.0.1", port, trust(tmp_path / "other" / "ca.crt"), Key(tmp_path / NODE_KEY))
        with pytest.raises(UserError, match=r"not signed by the authority(.|\n)*ca\.crt anew"):
            fleet.call("activate-node", {"public_key": b"", "heartbeat_interval": 10.0})


@pytest.mark.parametrize("status", [500, 503, 401, 403])
def test_answers_are_told_apart_by_what_to_do_next(tmp_path: Path, status: int) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b'{"code": 1, "detail": "why\\u001b[2J not"}')

        def log_message(self, *_: object) -> None:
            pass

    make_node_key(tmp_path)
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        fleet = Fleet("127.0.0.1", server.server_port, None, Key(tmp_path / NODE_KEY))
        with pytest.raises(NoAnswer if status >= 500 else Rejected, match=r"why\[2J not"):
            fleet.call("pull-messages", {"node": {"node_id": 1}})


def test_a_reason_of_brackets_alone_is_a_reason() -> None:
    assert _reason(b"[" * 2000) == "[" * 200


def told(node: LightNode, times: int) -> None:
    """Tell a node to stop while it is at work, so many times, and wait as a call does that hangs."""
    with running._told_to_stop(node):
        for _ in range(times):
            signal.raise_signal(signal.SIGTERM)
        time.sleep(GIVE_UP)


def test_an_answer_in_the_making_has_its_time_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_GRACE", 0.3)
    node, before = node_of(tmp_path, ScriptedFleet()), signal.getsignal(signal.SIGTERM)
    node._asked, began = object(), time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        told(node, 1)
    assert node.stopping, "it might have finished its answer"
    assert 0.25 < time.monotonic() - began < GIVE_UP / 2
    assert signal.getsignal(signal.SIGTERM) == before
    monkeypatch.setattr(running, "_GRACE", GIVE_UP)
    with pytest.raises(KeyboardInterrupt):
        told(node, 2)
    assert time.monotonic() - began < GIVE_UP / 2, "the second time is at once"
