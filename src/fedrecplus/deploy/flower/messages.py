"""Packets as Flower's messages: the one place that knows its records and its grid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedrecplus.deploy.wire import Packet, Refusal

FACTS, ARRAYS = "facts", "arrays"
ROUND = "train"
"""Flower's type of the message that asks for a round"""


def record_of(packet: Packet) -> RecordDict:
    """A packet as Flower carries it."""
    arrays = ArrayRecord({name: Array(table) for name, table in packet.arrays.items()})
    return RecordDict({FACTS: ConfigRecord(dict(packet.facts)), ARRAYS: arrays})


def packet_of(content: RecordDict) -> Packet:
    """The packet in a message; ``Refusal`` if there is none. Arrays are read without pickle, so nothing runs."""
    try:
        facts = {str(name): value for name, value in content.config_records[FACTS].items()}
        arrays = {str(name): array.numpy() for name, array in content.array_records[ARRAYS].items()}
    except Exception as error:
        raise Refusal("malformed", type(error).__name__) from None
    if not all(isinstance(value, str | int | float) for value in facts.values()):
        raise Refusal("malformed", "facts of the wrong kind")
    return Packet(facts, arrays)  # type: ignore[arg-type]


class FlowerLink:
    """``server.Link`` over Flower's grid."""

    def __init__(self, grid: Any) -> None:
        self._grid = grid

    def nodes(self) -> list[int]:
        """Nodes that are connected."""
        return sorted(self._grid.get_node_ids())

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[str, int]:
        """Send a packet to each node. Nodes with the same packet share its records, which Flower then sends once."""
        records: dict[int, RecordDict] = {}
        for packet in packets.values():
            records.setdefault(id(packet), record_of(packet))
        nodes = list(packets)
        messages = [
            Message(records[id(packets[node])], dst_node_id=node, message_type=ROUND, ttl=seconds + 60.0)
            for node in nodes
        ]
        ids = list(self._grid.push_messages(messages))
        return {str(name): node for name, node in zip(ids, nodes, strict=False) if name}

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
