"""Packets as Flower's messages: the one place that knows its records and its grid."""

from __future__ import annotations

import copy
import queue
import threading
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from flwr.app import ConfigRecord, Message, RecordDict

from fedrecplus.deploy.flower import private
from fedrecplus.deploy.wire import PACKET, Packet, Refusal

_PATIENCE = 1.0
"""seconds that a look waits for contents: most come at once"""


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
        messages = [
            Message(records[id(packet)], dst_node_id=node, message_type="train", ttl=seconds + 60.0)
            for node, packet in packets.items()
        ]
        ids = self._grid.push_messages(messages)
        return {str(name): node for name, node in zip(ids, packets, strict=False) if name}

    def replies(self, messages: Iterable[str]) -> list[tuple[str, Packet | Refusal]]:
        """Replies that came."""
        return [(reply.metadata.reply_to_message_id, _read(reply)) for reply in self._pull(messages)]

    def _pull(self, messages: Iterable[str]) -> Iterable[Any]:
        pulled: Iterable[Any] = self._grid.pull_messages(messages)
        return pulled


def _read(reply: Message) -> Packet | Refusal:
    if reply.has_error():
        return Refusal("lost", f"Flower's error {reply.error.code}", blame=False)
    try:
        return packet_of(reply.content)
    except Refusal as refusal:
        return refusal


class UnblockedLink(FlowerLink):
    """A link over Flower's ``HttpGrid`` whose pull waits for nobody.

    Flower announces a reply before its contents are there, and its pull then waits for them: three minutes where the
    node was killed in between or means harm, with everybody else's replies behind it, and whatever the deadline is.
    Here each reply's contents are fetched by a thread of its own, and a look returns what is complete.
    """

    def __init__(self, grid: Any) -> None:
        super().__init__(grid)
        self._came: queue.SimpleQueue[tuple[str, list[Any] | BaseException]] = queue.SimpleQueue()
        self._being_fetched: set[str] = set()

    def _pull(self, messages: Iterable[str]) -> Iterable[Any]:
        """Replies that are here completely."""
        threads = self._fetch_new([name for name in messages if name not in self._being_fetched])
        end = time.monotonic() + _PATIENCE
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
        while not self._came.empty():
            name, came = self._came.get()
            self._being_fetched.discard(name)
            if isinstance(came, BaseException):
                raise came
            yield from came

    def _fetch_new(self, names: list[str]) -> list[threading.Thread]:
        """Start fetching what has been announced. Flower announces once, so what is being fetched isn't asked for."""
        if not names:
            return []
        request = private.get("flwr.proto.runtime_pb2.PullAppMessagesRequest")
        announced = self._grid._runtime_client.PullMessages(request(message_ids=names))
        threads = []
        for message, tree in zip(announced.messages_list, announced.message_object_trees, strict=True):
            self._being_fetched.add(message.metadata.reply_to_message_id)
            threads.append(threading.Thread(target=self._fetch, args=(message, tree), daemon=True))
            threads[-1].start()
        return threads

    def _fetch(self, message: Any, tree: Any) -> None:
        """Let a copy of the grid pull one reply: to its client towards the SuperLink, no other is announced."""
        grid, name = copy.copy(self._grid), message.metadata.reply_to_message_id
        response = private.get("flwr.proto.runtime_pb2.PullAppMessagesResponse")
        grid._client = _Announced(self._grid._client, response(messages_list=[message], message_object_trees=[tree]))
        try:
            self._came.put((name, list(grid.pull_messages([name]))))
        except BaseException as failure:
            self._came.put((name, failure))


class _Announced:
    """Flower's client towards the SuperLink, with a fixed answer to the question what has been announced."""

    def __init__(self, client: Any, announced: Any) -> None:
        self._client, self.PullMessages = client, lambda _: announced

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)
