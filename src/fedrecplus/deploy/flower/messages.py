"""Packets as Flower's messages: the one place that knows its records and its grid."""

from __future__ import annotations

import copy
import logging
import queue
import threading
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.flower.attached import APP_ASKS, APP_IS_TOLD, names_in
from fedrecplus.deploy.light import decode, encode
from fedrecplus.deploy.wire import PACKET, Packet, Refusal

log = logging.getLogger("fedrecplus")
_PATIENCE = 1.0
"""seconds that a look waits for contents which didn't come along"""
_MOST_MESSAGES, _MOST_BYTES = 50, 16 * 2**20
"""in one request"""
_OBJECTS = "flwr.proto.message_pb2."


def record_of(packet: Packet) -> RecordDict:
    """A packet as Flower carries it: one record of one value, so that it is one object to send."""
    return RecordDict({PACKET: ConfigRecord({PACKET: packet.to_bytes()})})


def packet_of(content: RecordDict) -> Packet:
    """The packet in a message; ``Refusal`` if there is none."""
    try:
        value = content.config_records[PACKET][PACKET]
    except Exception as error:
        raise Refusal("malformed", type(error).__name__) from None
    if not isinstance(value, bytes):
        raise Refusal("malformed", "no packet")
    return Packet.of_bytes(value)


class FlowerLink:
    """``server.Link`` over Flower's grid."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def nodes(self) -> list[int]:
        """Nodes that are connected."""
        return sorted(self._grid.get_node_ids())

    def connected_since(self) -> dict[int, float]:
        """Nodes that are connected, and since when."""
        return {
            node.node_id: datetime.fromisoformat(node.last_activated_at).timestamp()
            for node in self._grid.get_nodes()
            if node.last_activated_at
        }

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[str, int]:
        """Send a packet to each node. Nodes with the same packet share its records, which Flower then sends once."""
        records: dict[int, RecordDict] = {}
        for packet in packets.values():
            records.setdefault(id(packet), record_of(packet))
        messages = {
            node: Message(records[id(packet)], dst_node_id=node, message_type="train", ttl=seconds + 60.0)
            for node, packet in packets.items()
        }
        asked: dict[str, int] = {}
        for nodes in _portions(packets):
            ids = self._push([messages[node] for node in nodes])
            asked |= {str(name): node for name, node in zip(ids, nodes, strict=False) if name}
        return asked

    def _push(self, messages: list[Message]) -> Iterable[str]:
        pushed: Iterable[str] = self._grid.push_messages(messages)
        return pushed

    def replies(self, messages: Iterable[str]) -> list[tuple[str, Packet | Refusal]]:
        """Replies that came."""
        pulled: Iterable[Any] = self._grid.pull_messages(messages)
        return [(reply.metadata.reply_to_message_id, _read(reply)) for reply in pulled]


def _portions(packets: Mapping[int, Packet]) -> Iterable[list[int]]:
    """Nodes in portions that go in one request each: the first ones are at work before the last are asked."""
    portion: list[int] = []
    sizes: dict[int, int] = {}
    for node, packet in packets.items():
        sizes[id(packet)] = packet.size
        if portion and (len(portion) == _MOST_MESSAGES or sum(sizes.values()) > _MOST_BYTES):
            yield portion
            portion, sizes = [], {id(packet): packet.size}
        portion.append(node)
    if portion:
        yield portion


def _read(reply: Message) -> Packet | Refusal:
    if reply.has_error():
        return Refusal("lost", f"Flower's error {reply.error.code}", blame=False)
    try:
        return packet_of(reply.content)
    except Refusal as refusal:
        return refusal


class UnblockedLink(FlowerLink):
    """A link over Flower's ``HttpGrid`` that moves messages with their objects, and whose pull waits for nobody.

    Flower moves each object by a request of its own. Here a portion of messages goes in one, and replies come in one
    (``attached.py``). Flower also announces a reply before its contents are there, and its pull then waits for them:
    three minutes where the node was killed in between or means harm, with everybody else's replies behind it, and
    whatever the deadline is. Here the contents of such a reply are fetched by a thread of its own, and a look returns
    what is complete.
    """

    def __init__(self, grid: Any) -> None:
        super().__init__(grid)
        self._came: queue.SimpleQueue[tuple[str, list[Packet | Refusal]]] = queue.SimpleQueue()
        self._being_fetched: set[str] = set()

    def _push(self, messages: list[Message]) -> Iterable[str]:
        """One request with messages and objects; objects that the server lacks after it go one by one."""
        client, grid, parts = self._grid._runtime_client, copy.copy(self._grid), _Parts()
        grid._client = parts
        grid.push_messages(messages)
        request, attached = parts.request, []
        room = _MOST_BYTES
        for name, content in parts.objects.items():
            room -= len(content)
            if room >= 0:
                attached.append({"object_id": name, "content": content})
        request.MergeFromString(encode(APP_ASKS, {"attached": attached}))
        said = client.PushMessages(request)
        for name in said.objects_to_push:
            rest = {"object_id": name, "object_content": parts.objects[name], "session_id": said.session_id}
            wanted = private.get(_OBJECTS + "PushObjectRequest")(node=grid.node, run_id=grid.run.run_id, **rest)
            if not client.PushObject(wanted).stored:
                log.error("the server has no room for a question: messages in flight fill its memory")
        return list(said.message_ids)

    def replies(self, messages: Iterable[str]) -> list[tuple[str, Packet | Refusal]]:
        """Replies that are here completely.

        What they answer is what the SuperLink has checked. Their own contents may say anything.
        """
        threads = self._take_new([name for name in messages if name not in self._being_fetched])
        end = time.monotonic() + _PATIENCE
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        replies: list[tuple[str, Packet | Refusal]] = []
        while not self._came.empty():
            name, came = self._came.get()
            self._being_fetched.discard(name)
            replies += [(name, one) for one in came]
        return replies

    def _take_new(self, names: list[str]) -> list[threading.Thread]:
        """Read what came whole, and start fetching what was only announced.

        Flower announces once, so what is being fetched isn't asked for.
        """
        if not names:
            return []
        request = private.get("flwr.proto.runtime_pb2.PullAppMessagesRequest")
        announced = self._grid._runtime_client.PullMessages(request(message_ids=names))
        attached = decode(APP_IS_TOLD, announced.SerializeToString())["attached"]
        objects = {one["object_id"]: one["content"] for one in attached}
        threads = []
        for message, tree in zip(announced.messages_list, announced.message_object_trees, strict=True):
            self._being_fetched.add(message.metadata.reply_to_message_id)
            if tree.object_id in objects:  # then all of it is
                self._fetch(message, tree, objects)
                continue
            threads.append(threading.Thread(target=self._fetch, args=(message, tree, {}), daemon=True))
            threads[-1].start()
        return threads

    def _fetch(self, message: Any, tree: Any, objects: dict[str, bytes]) -> None:
        """Let a copy of the grid pull one reply: to its client towards the SuperLink, no other is announced."""
        grid, name = copy.copy(self._grid), message.metadata.reply_to_message_id
        response = private.get("flwr.proto.runtime_pb2.PullAppMessagesResponse")
        announced = response(messages_list=[message], message_object_trees=[tree])
        grid._client = _Announced(self._grid._client, announced, objects)
        try:
            self._came.put((name, [_read(reply) for reply in grid.pull_messages([name])]))
        except Exception as failure:  # Flower reads contents that a node made, and promises nothing for bad ones
            blame = bool(objects)  # where they were fetched, it may be the connection
            self._came.put((name, [Refusal("malformed", type(failure).__name__, blame=blame)]))


class _Parts:
    """A client towards no SuperLink: it takes apart what Flower's grid would send."""

    def __init__(self) -> None:
        self.request: Any = None
        self.objects: dict[str, bytes] = {}

    def PushMessages(self, request: Any) -> Any:
        """Keep the messages, and ask for all of their objects."""
        self.request = request
        names = [name for tree in request.message_object_trees for name in names_in(tree)]
        ids = [message.metadata.message_id for message in request.messages_list]
        return private.get("flwr.proto.runtime_pb2.PushAppMessagesResponse")(message_ids=ids, objects_to_push=names)

    def PushObject(self, request: Any) -> Any:
        """Keep an object."""
        self.objects[request.object_id] = request.object_content
        return private.get(_OBJECTS + "PushObjectResponse")(stored=True)


class _Announced:
    """Flower's client towards the SuperLink, with a fixed answer to the question what has been announced."""

    def __init__(self, client: Any, announced: Any, objects: dict[str, bytes]) -> None:
        self._client, self._objects, self.PullMessages = client, objects, lambda _: announced

    def PullObject(self, request: Any) -> Any:
        """An object that came along, or else the SuperLink's."""
        if (content := self._objects.get(request.object_id)) is None:
            return self._client.PullObject(request)
        found = {"object_found": True, "object_available": True, "object_content": content}
        return private.get(_OBJECTS + "PullObjectResponse")(**found)

    def ConfirmMessageReceived(self, request: Any) -> Any:
        """What came along was deleted when it was sent."""
        if request.message_object_id not in self._objects:
            return self._client.ConfirmMessageReceived(request)
        return private.get(_OBJECTS + "ConfirmMessageReceivedResponse")()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)
