"""The messages of Flower 1.41's Fleet API, by field numbers, and what a device reads and writes of them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from fedrecplus.deploy.light.protobuf import Field, Malformed, Schema, decode, encode
from fedrecplus.deploy.wire import PACKET, Packet, Refusal

NODE: Schema = {1: Field("node_id", "uint")}
METADATA: Schema = {
    1: Field("run_id", "uint"),
    2: Field("message_id", "text"),
    3: Field("src_node_id", "uint"),
    4: Field("dst_node_id", "uint"),
    5: Field("reply_to_message_id", "text"),
    6: Field("group_id", "text"),
    7: Field("ttl", "double"),
    8: Field("message_type", "text"),
    9: Field("created_at", "double"),
    10: Field("src_task_id", "uint", optional=True),
    11: Field("dst_task_id", "uint", optional=True),
}
RECORDS: Schema = {}
MESSAGE: Schema = {1: Field("metadata", METADATA), 2: Field("content", RECORDS)}
TREE: Schema = {1: Field("object_id", "text"), 2: Field("children", "self", repeated=True)}
RECONNECT: Schema = {1: Field("reconnect", "uint")}
VALUE: Schema = {6: Field("bytes", "bytes")}
ENTRY: Schema = {1: Field("key", "text"), 2: Field("value", VALUE)}
CONFIG_RECORD: Schema = {1: Field("items", ENTRY, repeated=True)}
_OF_NODE = Field("node", NODE)

CALLS: dict[str, tuple[Schema, Schema]] = {
    "register-node": ({1: Field("public_key", "bytes")}, NODE),
    "activate-node": ({1: Field("public_key", "bytes"), 2: Field("heartbeat_interval", "double")}, NODE),
    "deactivate-node": (NODE, {}),
    "send-node-heartbeat": (
        {1: _OF_NODE, 2: Field("heartbeat_interval", "double")},
        {1: Field("success", "bool")},
    ),
    "pull-messages": (
        {1: _OF_NODE},
        {
            1: Field("reconnect", RECONNECT),
            2: Field("messages_list", MESSAGE, repeated=True),
            3: Field("message_object_trees", TREE, repeated=True),
        },
    ),
    "push-messages": (
        {
            1: _OF_NODE,
            2: Field("messages_list", MESSAGE, repeated=True),
            3: Field("message_object_trees", TREE, repeated=True),
        },
        {3: Field("objects_to_push", "text", repeated=True), 4: Field("session_id", "text")},
    ),
    "pull-object": (
        {1: _OF_NODE, 2: Field("run_id", "uint"), 3: Field("object_id", "text")},
        {
            1: Field("object_found", "bool"),
            2: Field("object_available", "bool"),
            3: Field("object_content", "bytes"),
        },
    ),
    "push-object": (
        {
            1: _OF_NODE,
            2: Field("run_id", "uint"),
            3: Field("object_id", "text"),
            4: Field("object_content", "bytes"),
            5: Field("session_id", "text"),
        },
        {1: Field("stored", "bool")},
    ),
    "confirm-message-received": (
        {1: _OF_NODE, 2: Field("run_id", "uint"), 3: Field("message_object_id", "text")},
        {},
    ),
}  # fmt: skip
"""last part of the path → request and response"""

OBJECT: Schema = {1: Field("object_id", "text"), 2: Field("content", "bytes")}
_ATTACHED = Field("attached", OBJECT, repeated=True)
ATTACHED: dict[str, tuple[Schema, Schema]] = {
    "pull-messages": ({}, {50_001: _ATTACHED}),
    "push-messages": (
        {50_001: _ATTACHED, 50_002: Field("confirms", "bool")},
        {50_002: Field("confirmed", "bool")},
    ),
}
"""Fields beyond Flower's: objects that come with their message, and that its question needs no keeping any more.

Our server reads and writes them, and a round then takes a node two requests instead of eight. Flower's own skips them,
as the format wants it, and the objects go one by one.
"""


@dataclass(frozen=True)
class Asked:
    """A message that waits for this node's answer: all that is needed to give it, now or after a restart."""

    metadata: dict[str, Any]
    content: str
    """the id of the object with the packet"""
    taken: float
    """seconds since 1970 when it was first seen here; an answer's name depends on it, so it stays"""

    @classmethod
    def of(cls, message: dict[str, Any], tree: dict[str, Any], now: float) -> Asked:
        """A message as the server announces it, with the tree of its objects: message, records, record."""
        metadata, records = message["metadata"], tree["children"]
        if metadata is None or len(records) != 1 or len(records[0]["children"]) != 1:
            raise Malformed("a message of another form")
        return cls(metadata, records[0]["children"][0]["object_id"], now)

    @property
    def until(self) -> float:
        """When the server forgets it."""
        return float(self.metadata["created_at"] + self.metadata["ttl"])

    def to_text(self) -> str:
        """For the store."""
        return json.dumps([self.metadata, self.content, self.taken])

    @classmethod
    def of_text(cls, text: str) -> Asked:
        """What ``to_text`` wrote."""
        return cls(*json.loads(text))


def packet_of_object(content: bytes, name: str) -> Packet:
    """The packet in a record; ``Refusal`` if there is none."""
    try:
        if hashlib.sha256(content).hexdigest() != name:
            raise Malformed("content and name of an object differ")
        record = decode(CONFIG_RECORD, content[content.index(b"\0") + 1 :])
        return Packet.of_bytes(next(item["value"]["bytes"] for item in record["items"] if item["key"] == PACKET))
    except (ValueError, LookupError, TypeError, StopIteration, Refusal) as error:
        raise Refusal("request", type(error).__name__) from None


@dataclass(frozen=True)
class Reply:
    """An answer as Flower's objects: a message with one record dict with one record, each named by its hash."""

    message: dict[str, Any]
    tree: dict[str, Any]
    objects: dict[str, bytes]

    @classmethod
    def to(cls, asked: Asked, packet: Packet) -> Reply:
        """The reply with a packet. The same packet for the same question is the same reply, byte for byte."""
        its = asked.metadata
        metadata = {
            "run_id": its["run_id"], "message_id": "", "src_node_id": its["dst_node_id"],
            "dst_node_id": its["src_node_id"], "reply_to_message_id": its["message_id"], "group_id": its["group_id"],
            "ttl": asked.until - asked.taken, "message_type": its["message_type"], "created_at": asked.taken,
            "src_task_id": its["dst_task_id"], "dst_task_id": its["src_task_id"],
        }  # fmt: skip
        record = encode(CONFIG_RECORD, {"items": [{"key": PACKET, "value": {"bytes": packet.to_bytes()}}]})
        objects: dict[str, bytes] = {}
        leaf = _add(objects, "ConfigRecord", [], record)
        records = _add(objects, "RecordDict", [leaf], json.dumps({PACKET: leaf}).encode())
        name = _add(objects, "Message", [records], encode(MESSAGE, {"metadata": metadata}))
        tree = {"object_id": name, "children": [{"object_id": records, "children": [{"object_id": leaf}]}]}
        return cls({"metadata": {**metadata, "message_id": name}, "content": {}}, tree, objects)


def _add(objects: dict[str, bytes], kind: str, children: list[str], body: bytes) -> str:
    """Put an object, with the head that Flower gives it, under its hash."""
    content = f"{kind} {','.join(children)} {len(body)}".encode() + b"\0" + body
    name = hashlib.sha256(content).hexdigest()
    objects[name] = content
    return name
