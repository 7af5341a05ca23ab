"""Nodes without processes: the same packets, answered at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from flwr.app import Message
from flwr.supercore.task_identity import TaskIdentity

from fedrecplus.config import Config, change, preset
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import CHANNELS, Policy, Store, answer, save_policy
from fedrecplus.deploy.flower.messages import packet_of, record_of
from fedrecplus.deploy.process import NodeHome, deal_out
from fedrecplus.deploy.server import Deployment, begin
from fedrecplus.deploy.wire import ItemCatalogue, Packet, Refusal
from tests.waiting import GIVE_UP

MODEL = "00c0ffee"


def small_config(name: str = "fedrec+private", rounds: int = 3, **settings: Any) -> Config:
    config = change(change(preset(name), "model.factors", 4), "server.rounds", rounds)
    for path, value in settings.items():
        config = change(config, path.replace("__", "."), value)
    return config


def prepared(folder: Path, ratings: Ratings, config: Config, nodes: int = 3, **deployment: Any) -> list[NodeHome]:
    """A run folder that is ready for its first round, and a store for each node."""
    limits = replace(Deployment(nodes, model=MODEL, deadline=GIVE_UP, patience=GIVE_UP), **deployment)
    begin(folder / "run", config, limits, ItemCatalogue.of(ratings), {"dataset": "small"})
    return deal_out(ratings, folder / "nodes", nodes, config.seed)


def allow_clear(store: Path, **demands: Any) -> None:
    """The owner's word that uploads may go in the clear, too."""
    with Store.open(store) as opened, opened.changing():
        save_policy(opened, Policy(channels=CHANNELS, **demands))


@dataclass
class InProcessLink:
    """``server.Link`` whose nodes answer while they are asked. ``tamper`` changes a node's answer."""

    homes: list[NodeHome]
    tamper: Callable[[int, Packet], Packet | Refusal | None] = lambda _, packet: packet
    asked: list[tuple[int, Packet]] = field(default_factory=list)
    box: dict[str, Packet | Refusal] = field(default_factory=dict)
    since: dict[int, float] = field(default_factory=dict)

    def nodes(self) -> list[int]:
        return list(range(1, len(self.homes) + 1))

    def connected_since(self) -> dict[int, float]:
        return dict.fromkeys(self.nodes(), 0.0) | self.since

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[str, int]:
        ids = {}
        for node, packet in packets.items():
            name = f"message {len(self.asked)}"
            self.asked.append((node, packet))
            reply = self.tamper(node, answer(packet, self.homes[node - 1].store))
            if reply is not None:
                self.box[name] = reply
            ids[name] = node
        return ids

    def replies(self, messages: Iterable[str]) -> list[tuple[str, Packet | Refusal]]:
        return [(name, self.box.pop(name)) for name in sorted(messages) if name in self.box]


class InProcessGrid:
    """Flower's grid, as far as ``FlowerLink`` uses it, answering itself."""

    def __init__(self, homes: list[NodeHome]) -> None:
        self.homes, self.replies = homes, dict[str, Message]()
        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1

    def get_node_ids(self) -> list[int]:
        return list(range(1, len(self.homes) + 1))

    def push_messages(self, messages: Iterable[Message]) -> list[str]:
        ids = []
        for number, message in enumerate(messages):
            name = f"{len(self.replies)}-{number}"
            message.metadata.__dict__["_message_id"] = name
            node = message.metadata.dst_node_id
            reply = answer(packet_of(message.content), self.homes[node - 1].store)
            self.replies[name] = Message(record_of(reply), reply_to=message)
            ids.append(name)
        return ids

    def pull_messages(self, messages: Iterable[str]) -> list[Any]:
        found = [(name, self.replies.pop(name)) for name in messages if name in self.replies]
        return [
            SimpleNamespace(
                metadata=SimpleNamespace(reply_to_message_id=name), has_error=reply.has_error, content=reply.content
            )
            for name, reply in found
        ]
