"""Messages between the server's app and nodes: with their objects along, in memory, bounded, and pruned."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from flwr.common.constant import NOOP_ACCOUNT_NAME, NOOP_FLWR_AID, SUPERLINK_NODE_ID
from flwr.proto.fleet_pb2 import PullMessagesRequest, PushMessagesRequest, PushMessagesResponse
from flwr.proto.message_pb2 import PullObjectResponse, PushObjectResponse
from flwr.proto.node_pb2 import Node
from flwr.proto.runtime_pb2 import PullAppMessagesResponse, PushAppMessagesResponse
from flwr.server.superlink.linkstate.in_memory_linkstate import InMemoryLinkState
from flwr.supercore.constant import NOOP_FEDERATION_ID, TaskType
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.federation import NoOpFederationManager
from flwr.superlink.grid.http_grid import HttpGrid
from flwr.superlink.servicer.runtime import runtime_handlers

from fedrecplus.deploy.flower import attached
from fedrecplus.deploy.flower.fleet import FleetApi
from fedrecplus.deploy.flower.long_polling import LongPolling
from fedrecplus.deploy.flower.memory import BoundedObjectStore, prepare, prune, undelivered
from fedrecplus.deploy.flower.messages import UnblockedLink, _portions
from fedrecplus.deploy.flower.respond import Unserved
from fedrecplus.deploy.light import ATTACHED, Malformed, decode, encode
from fedrecplus.deploy.light.messages import CALLS, Asked, Reply, packet_of_object
from fedrecplus.deploy.wire import Packet, Refusal


class Superlink:
    """Flower's state with one run, whose app is this test, and some nodes."""

    def __init__(self, nodes: int) -> None:
        self.state = InMemoryLinkState(NoOpFederationManager(), BoundedObjectStore())
        prepare(self.state)
        run = self.state.create_run("", "", "", {}, NOOP_FEDERATION_ID, None, NOOP_FLWR_AID, TaskType.SERVER_APP)
        self.task = next(task for task in self.state.task_store.values() if task.run_id == run)
        self.state.claim_task(self.task.task_id)
        self.state.activate_task(self.task.task_id)
        TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = run, self.task.task_id, SUPERLINK_NODE_ID
        self.nodes = []
        for number in range(nodes):
            node = self.state.create_node(NOOP_FLWR_AID, NOOP_ACCOUNT_NAME, bytes([number]), 30.0)
            self.state.activate_node(node, 30.0)
            self.nodes.append(node)
        self.calls: list[str] = []
        grid = HttpGrid(token="token")
        grid._run = self.state.get_run_info(run_ids=[run])[0]
        grid._client = self  # type: ignore[assignment]
        self.link = UnblockedLink(grid)

    def PushMessages(self, request: Any) -> Any:
        self.calls.append("push-messages")
        facts = attached.objects_in(attached.APP_ASKS, request.SerializeToString())
        reply = attached.push_from_app(self.state, request, self.task, facts)
        return PushAppMessagesResponse.FromString(reply)

    def PullMessages(self, request: Any) -> Any:
        self.calls.append("pull-messages")
        return PullAppMessagesResponse.FromString(attached.pull_for_app(self.state, request, self.task))

    def PushObject(self, request: Any) -> PushObjectResponse:
        self.calls.append("push-object")
        return runtime_handlers.push_object(request, self.state, self.task)

    def PullObject(self, request: Any) -> PullObjectResponse:
        self.calls.append("pull-object")
        return runtime_handlers.pull_object(request, self.state, self.task)

    def ConfirmMessageReceived(self, request: Any) -> Any:
        self.calls.append("confirm")
        return runtime_handlers.confirm_message_received(request, self.state, self.task)

    def pull(self, node: int) -> tuple[Asked, bytes | None]:
        """What a node is asked, and the content that came along."""
        content = attached.pull_for_node(self.state, PullMessagesRequest(node=Node(node_id=node)))
        came = decode(CALLS["pull-messages"][1] | ATTACHED["pull-messages"][1], content)
        asked = Asked.of(came["messages_list"][0], came["message_object_trees"][0], time.time())
        return asked, {one["object_id"]: one["content"] for one in came["attached"]}.get(asked.content)

    def push(self, node: int, reply: Reply, objects: Mapping[str, bytes], confirms: bool = True) -> dict[str, Any]:
        """A node's reply with some of its objects."""
        along = [{"object_id": name, "content": content} for name, content in objects.items()]
        request = {
            "node": {"node_id": node}, "messages_list": [reply.message], "message_object_trees": [reply.tree],
            "attached": along, "confirms": confirms,
        }  # fmt: skip
        content = encode(CALLS["push-messages"][0] | ATTACHED["push-messages"][0], request)
        facts = attached.objects_in(ATTACHED["push-messages"][0], content)
        said = attached.push_from_node(self.state, PushMessagesRequest.FromString(content), facts)
        PushMessagesResponse.FromString(said)  # Flower reads it, too
        return decode(CALLS["push-messages"][1] | ATTACHED["push-messages"][1], said)


def packet(number: int, size: int = 10) -> Packet:
    return Packet({"number": number}, {"V": np.full(size, number, dtype=np.float64)})


def test_a_round_takes_the_app_two_requests_and_a_node_two() -> None:
    there = Superlink(3)
    shared, own = packet(1), packet(2)
    asked = there.link.ask({there.nodes[0]: shared, there.nodes[1]: shared, there.nodes[2]: own}, 60.0)
    assert there.calls == ["push-messages"]
    assert sorted(asked.values()) == sorted(there.nodes)
    assert undelivered(there.state, time.time()) == set(there.nodes)
    for node, expected in zip(there.nodes, (shared, shared, own), strict=True):
        question, content = there.pull(node)
        assert content is not None
        assert packet_of_object(content, question.content).to_bytes() == expected.to_bytes()
        reply = Reply.to(question, packet(node % 1000))
        said = there.push(node, reply, reply.objects)
        assert said["objects_to_push"] == []
        assert said["confirmed"]
    assert undelivered(there.state, time.time()) == set()
    came = there.link.replies(asked)
    assert there.calls == ["push-messages", "pull-messages"]
    numbers = {asked[name]: reply.facts["number"] for name, reply in came if isinstance(reply, Packet)}
    assert numbers == {node: node % 1000 for node in there.nodes}
    assert len(there.state.object_store) == 0 == there.state.object_store.bytes, "nothing stays on the server"


def test_who_knows_nothing_of_attached_objects_is_served_as_flower_serves() -> None:
    there = Superlink(1)
    node = there.nodes[0]
    asked = there.link.ask({node: packet(7)}, 60.0)
    question, _ = there.pull(node)
    reply = Reply.to(question, packet(8))
    said = there.push(node, reply, {}, confirms=False)
    assert set(said["objects_to_push"]) == set(reply.objects)
    assert not said["confirmed"]
    assert there.link.replies(asked) == [], "announced, but nothing of it is here"
    for name in said["objects_to_push"]:
        assert there.state.store_object(question.metadata["run_id"], said["session_id"], name, reply.objects[name])
    for _ in range(100):
        if came := there.link.replies(asked):
            break
        time.sleep(0.05)
    assert [one.facts["number"] for _, one in came if isinstance(one, Packet)] == [8]


def test_large_packets_go_one_by_one_and_portions_are_bounded() -> None:
    there = Superlink(2)
    large = packet(1, 17 * 2**20 // 8)
    there.link.ask(dict.fromkeys(there.nodes, large), 60.0)
    assert there.calls[0] == "push-messages"
    assert "push-object" in there.calls
    assert undelivered(there.state, time.time()) == set(there.nodes)
    assert there.pull(there.nodes[0])[1] is not None
    shared, medium = packet(1), [packet(number, 9 * 2**17) for number in range(5)]
    assert [len(portion) for portion in _portions(dict.fromkeys(range(120), shared))] == [50, 50, 20]
    assert [len(portion) for portion in _portions(dict(enumerate(medium)))] == [1, 1, 1, 1, 1]


def test_an_object_that_is_not_what_its_name_says_is_refused() -> None:
    content = encode(ATTACHED["push-messages"][0], {"attached": [{"object_id": "ab" * 32, "content": b"something"}]})
    with pytest.raises(Unserved, match="malformed"):
        attached.objects_in(ATTACHED["push-messages"][0], content)


def test_a_node_confirms_no_question_but_its_own() -> None:
    there = Superlink(2)
    first, second = there.nodes
    there.link.ask({first: packet(1), second: packet(2)}, 60.0)
    question, _ = there.pull(first)
    other, _ = there.pull(second)
    forged = Reply.to(
        Asked({**question.metadata, "message_id": other.metadata["message_id"]}, "", time.time()), packet(3)
    )
    said = there.push(first, forged, forged.objects)
    assert not said["objects_to_push"]
    assert not said["confirmed"]
    assert there.state.object_store.get(other.metadata["message_id"]), "its question is still there"
    assert there.state.get_message_res({other.metadata["message_id"]}, there.task.run_id) == []


def doubling_tree(root: str, levels: int) -> dict[str, Any]:
    """A tree of few names that has 2 ** levels leaves once each name stands for all that is below it."""
    tree: dict[str, Any] = {"object_id": name_of("leaf")}
    for level in range(levels):
        tree = {"object_id": name_of(str(level)), "children": [tree, {"object_id": tree["object_id"]}]}
    return {"object_id": root, "children": [tree]}


def name_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("form", ["doubling", "wide", "deep", "another root", "the question's name"])
def test_a_reply_of_another_form_leaves_nothing_on_the_server(form: str) -> None:
    there = Superlink(1)
    node = there.nodes[0]
    there.link.ask({node: packet(1)}, 60.0)
    question, _ = there.pull(node)
    reply = Reply.to(question, packet(2))
    root, asked, message = reply.tree["object_id"], question.metadata["message_id"], reply.message
    trees = {
        "doubling": doubling_tree(root, 12),
        "wide": {"object_id": root, "children": [{"object_id": name_of(str(number))} for number in range(2000)]},
        "deep": {
            "object_id": root,
            "children": [{"object_id": name_of("between"), "children": reply.tree["children"]}],
        },
        "another root": {"object_id": name_of("root")},
        "the question's name": {"object_id": asked},
    }
    if form == "the question's name":
        message = {**message, "metadata": {**message["metadata"], "message_id": asked}}
    before = len(there.state.object_store)
    with pytest.raises(Unserved, match="malformed"):
        there.push(node, Reply(message, trees.get(form, reply.tree), {}), {})
    assert len(there.state.object_store) == before
    assert not there.state._object_push_sessions
    assert not there.state.message_res_store


def test_what_announces_a_reply_is_bounded_before_it_is_read() -> None:
    schema = ATTACHED["push-messages"][0]
    along = encode(schema, {"attached": [{"object_id": "name", "content": bytes(10**6)}], "confirms": True})
    announced = encode(CALLS["push-messages"][0], {"node": {"node_id": 5}})
    assert attached.apart(schema, announced + along, 100) == (announced, along)
    assert attached.apart(schema, along + announced, 100) == (announced, along)
    for many in (
        b"\x1a\x90\x4e" + b"\x12\x00" * 5000,
        b"\x12\x90\x4e" + bytes(10_000),
    ):  # children of a tree, a message
        with pytest.raises(Unserved, match="too long"):
            attached.apart(schema, many + along, 1000)
    with pytest.raises(Unserved, match="malformed"):
        attached.apart(schema, b"\x12\x00" * 200, 10**6)
    empty = encode(schema, {"attached": [{"object_id": 20 * "n"}]})
    for many in (empty * 20, empty[:3] + b"\xfe\x01" + b"\x12\x00" * 127):
        decode(schema, many)
        with pytest.raises(Malformed, match="too many"):
            decode(schema, many, attached.MOST_FIELDS)
    with pytest.raises(Unserved, match="malformed"):
        attached.apart(schema, along[:-10] + b"\x12", 100)


def test_a_name_that_is_known_keeps_its_parts() -> None:
    there = Superlink(2)
    asked = there.link.ask(dict.fromkeys(there.nodes, packet(1)), 60.0)
    first, second = (Reply.to(there.pull(node)[0], packet(node % 1000)) for node in there.nodes)
    there.push(there.nodes[0], first, first.objects)
    chained = {"object_id": second.tree["object_id"], "children": [{"object_id": first.tree["object_id"]}]}
    with pytest.raises(Unserved, match="malformed"):
        there.push(there.nodes[1], Reply(second.message, chained, {}), {})
    other = {"object_id": first.tree["object_id"], "children": [{"object_id": name_of("other")}]}
    with pytest.raises(Unserved, match="malformed"):
        there.push(there.nodes[0], Reply(first.message, other, {}), {})
    there.push(there.nodes[1], second, second.objects)
    assert sorted(node for name, node in asked.items() if name in dict(there.link.replies(asked))) == sorted(
        there.nodes
    )


def test_sessions_end_with_what_they_wait_for() -> None:
    there = Superlink(1)
    node, state = there.nodes[0], there.state
    asked = there.link.ask({node: packet(1)}, 60.0)
    question, _ = there.pull(node)
    unasked = Reply.to(Asked({**question.metadata, "message_id": name_of("nothing")}, "", time.time()), packet(1))
    there.push(node, unasked, unasked.objects)
    assert not state._object_push_sessions, "the answer to nothing"
    reply = Reply.to(question, packet(2))
    there.push(node, reply, reply.objects)
    there.push(node, reply, reply.objects)
    assert not state._object_push_sessions, "all is here, twice"
    assert len(there.link.replies(asked)) == 1
    asked = there.link.ask({node: packet(3)}, 60.0)
    question, _ = there.pull(node)
    announced = Reply.to(question, packet(4, 1000))
    some = dict(list(announced.objects.items())[:1])
    assert there.push(node, announced, some)["objects_to_push"]
    assert state._object_push_sessions
    for session in state._object_push_sessions.values():
        session.expires_at -= timedelta(hours=1)
    prune(state, prune(state, set()))
    assert not state._object_push_sessions, "nobody asked for what is missing"
    assert not state.message_res_store, "it may answer once more"
    assert set(state.message_ins_store) == set(asked)


def junk(kind: str, *children: bytes) -> tuple[str, dict[str, Any], dict[str, bytes]]:
    """A reply whose objects are named as they should be, and say nothing that Flower can read."""
    parts = {hashlib.sha256(content).hexdigest(): content for content in children}
    content = f"{kind} {','.join(parts)} 4".encode() + b"\0\xff\xff\xff\xff"
    name = hashlib.sha256(content).hexdigest()
    return name, {"object_id": name, "children": [{"object_id": part} for part in parts]}, {**parts, name: content}


@pytest.mark.parametrize("kind", ["Message", "ConfigRecord", "RecordDict", "Array"])
@pytest.mark.parametrize("children", [(), (b"Array  4\0junk",)])
def test_contents_that_flower_cannot_read_cost_their_node_alone(kind: str, children: tuple[bytes, ...]) -> None:
    there = Superlink(2)
    bad, good = there.nodes
    asked = there.link.ask(dict.fromkeys(there.nodes, packet(1)), 60.0)
    name, tree, objects = junk(kind, *children)
    message = Reply.to(there.pull(bad)[0], packet(2)).message
    message = {**message, "metadata": {**message["metadata"], "message_id": name}}
    assert there.push(bad, Reply(message, tree, objects), objects)["objects_to_push"] == []
    sound = Reply.to(there.pull(good)[0], packet(3))
    there.push(good, sound, sound.objects)
    came = {asked[question]: reply for question, reply in there.link.replies(asked)}
    assert isinstance(came[good], Packet)
    assert isinstance(came[bad], Refusal)
    assert came[bad].kind == "malformed"  # type: ignore[union-attr]
    assert came[bad].blame  # type: ignore[union-attr]


def test_a_reply_answers_what_the_server_has_checked_and_not_what_its_contents_say() -> None:
    there = Superlink(2)
    bad, victim = there.nodes
    asked = there.link.ask(dict.fromkeys(there.nodes, packet(1)), 60.0)
    own, others = there.pull(bad)[0], there.pull(victim)[0]
    inside = Reply.to(others, packet(666))
    reply = Reply.to(own, packet(666))
    metadata = {**reply.message["metadata"], "message_id": inside.tree["object_id"]}
    there.push(bad, Reply({**reply.message, "metadata": metadata}, inside.tree, inside.objects), inside.objects)
    assert [asked[question] for question, _ in there.link.replies(asked)] == [bad]


def test_what_is_in_flight_is_bounded_and_pruned() -> None:
    there = Superlink(2)
    store = there.state.object_store
    assert isinstance(store, BoundedObjectStore)
    asked = there.link.ask(dict.fromkeys(there.nodes, packet(1)), 60.0)
    node = there.nodes[0]
    question, _ = there.pull(node)
    reply = Reply.to(question, packet(2, 1000))
    store.most_bytes = store.bytes + 2000
    said = there.push(node, reply, reply.objects)
    assert len(said["objects_to_push"]) == 1, "the packet itself had no room"
    store.most_bytes = 2**30
    said = there.push(node, reply, reply.objects)
    assert said["objects_to_push"] == []
    assert len(there.link.replies(asked)) == 1
    # the other node never comes, and its question expires
    assert len(store) > 0
    for message in there.state.message_ins_store.values():
        message.metadata.__dict__["_ttl"] = -1.0
    seen = prune(there.state, set())
    assert len(store) > 0, "nothing goes at the first look"
    prune(there.state, seen)
    assert len(store) == 0 == store.bytes


def test_a_node_gets_its_own_messages_oldest_first_and_none_twice_or_late() -> None:
    there = Superlink(2)
    node, other = there.nodes
    late, *asked = (next(iter(there.link.ask({node: packet(number)}, 60.0))) for number in range(3))
    there.state.message_ins_store[late].metadata.__dict__["_ttl"] = -1.0
    there.link.ask({other: packet(9)}, 60.0)
    request = PullMessagesRequest(node=Node(node_id=node))
    pulled = [decode(CALLS["pull-messages"][1], attached.pull_for_node(there.state, request)) for _ in range(3)]
    assert [[one["metadata"]["message_id"] for one in came["messages_list"]] for came in pulled] == [
        [asked[0]], [asked[1]], [],
    ]  # fmt: skip
    assert undelivered(there.state, time.time()) == {other}
    assert undelivered(there.state, time.time(), [node]) == set()
    there.state.delete_messages(set(there.state.message_ins_store))
    assert there.state.message_ins_store.nodes() == set()  # type: ignore[attr-defined]


def test_many_large_replies_come_in_portions_and_none_is_fetched_by_itself() -> None:
    there = Superlink(6)
    asked = there.link.ask(dict.fromkeys(there.nodes, packet(1)), 60.0)
    for node in there.nodes[:5]:
        reply = Reply.to(there.pull(node)[0], packet(node % 1000, 12 * 2**17))
        there.push(node, reply, reply.objects)
    looks = []
    while len({name for came in looks for name, _ in came}) < 5:
        looks.append(there.link.replies(asked))
        asked = {name: node for name, node in asked.items() if name not in dict(looks[-1])}
    assert [len(came) for came in looks] == [2, 2, 1]
    assert all(isinstance(reply, Packet) for came in looks for _, reply in came)
    assert not {"pull-object", "confirm"} & set(there.calls)
    assert list(asked.values()) == there.nodes[5:]


def test_who_is_expelled_while_it_waits_gets_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Superlink(1)
    node, known, said = there.nodes[0], {b"key": there.nodes[0]}, []

    class Expelling(LongPolling):
        async def has_work(self, *_: Any) -> bool:
            known.clear()
            there.link.ask({node: packet(1)}, 60.0)
            return True

    async def authenticate(*_: Any) -> tuple[bytes, int]:
        return b"key", node

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": PullMessagesRequest(node=Node(node_id=node)).SerializeToString()}

    async def send(event: dict[str, Any]) -> None:
        said.append(event.get("status"))

    fleet = FleetApi(known.get, there.state, Expelling(there.state), keyed=True)
    monkeypatch.setattr(fleet, "authenticate", authenticate)
    scope = {"path": "/v1/fleet/pull-messages", "method": "POST", "headers": [(b"content-length", b"20")]}
    asyncio.run(fleet(scope, receive, send))
    assert said[0] == 401
    assert undelivered(there.state, time.time()) == {node}


def test_an_object_of_many_parts_is_not_looked_at() -> None:
    there = Superlink(1)
    node = there.nodes[0]
    there.link.ask({node: packet(1)}, 60.0)
    parts = ",".join(64 * "a" for _ in range(1000))
    content = f"Message {parts} 0".encode() + b"\0"
    name = hashlib.sha256(content).hexdigest()
    message = Reply.to(there.pull(node)[0], packet(2)).message
    message = {**message, "metadata": {**message["metadata"], "message_id": name}}
    said = there.push(node, Reply(message, {"object_id": name}, {}), {name: content})
    assert said["objects_to_push"] == [name], "it isn't kept"


def test_who_waits_for_work_is_woken_by_it_and_an_older_request_is_not() -> None:
    there = Superlink(1)
    node = there.nodes[0]

    async def wait() -> tuple[bool, bool, bool]:
        polling = LongPolling(there.state)
        in_vain = await polling.has_work(node, 0.01)
        older = asyncio.create_task(polling.has_work(node, 30.0))
        await asyncio.sleep(0.01)
        newer = asyncio.create_task(polling.has_work(node, 30.0))
        await asyncio.sleep(0.01)
        there.link.ask({node: packet(1)}, 60.0)
        polling.wake()
        return in_vain, await older, await newer

    began = time.monotonic()
    assert asyncio.run(wait()) == (False, False, True)
    assert time.monotonic() - began < 20.0
    assert SUPERLINK_NODE_ID not in undelivered(there.state, time.time())


def test_a_message_for_a_node_that_has_hung_up_stays_for_when_it_is_back() -> None:
    there = Superlink(1)
    node = there.nodes[0]

    async def hang_up() -> bool:
        polling, gone = LongPolling(there.state), asyncio.Event()
        waiting = asyncio.create_task(polling.has_work(node, 30.0, gone.wait))
        await asyncio.sleep(0.01)
        gone.set()
        found = await waiting
        there.link.ask({node: packet(1)}, 60.0)
        polling.wake()
        return found

    assert asyncio.run(hang_up()) is False
    assert undelivered(there.state, time.time()) == {node}
