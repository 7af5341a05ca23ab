"""A server that lies to real devices: it chooses V, settings, names and cohorts, and notes who falls silent where."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store, agree, answer
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.request import decode_request, encode_request
from fedrecplus.deploy.wire.stages import Stage, encode_stage, mask_context
from fedrecplus.deploy.wire.task import Task
from fedrecplus.parts.channel import RingVector
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.parts.channel.secure.messages import Advertisement, unpack
from fedrecplus.parts.channel.secure.server import SecureServer
from fedrecplus.parts.channel.secure.server_state import Aborted, ServerOptions
from fedrecplus.rounds import ServerState, start_server
from tests.deploy.summing import message

Nodes = list[int]


@dataclass
class Outcome:
    """What a server has after it asked for a sum."""

    answered: dict[str, set[int]] = field(default_factory=dict)
    """stage → nodes that answered it"""
    total: RingVector | None = None
    """the unmasked sum, in the ring"""

    @property
    def silent(self) -> set[int]:
        """Who answered at first and not to the end."""
        stages = list(self.answered.values())
        return stages[0] - stages[-1] if stages else set()


@dataclass
class LyingServer:
    """Asks devices by their stores, in process, as the wire would."""

    homes: list[NodeHome]
    ratings: Ratings
    asked: int = 0

    @property
    def catalogue(self) -> ItemCatalogue:
        """What it says that the items are."""
        return ItemCatalogue.of(self.ratings)

    def state(self, config: Config) -> ServerState:
        """An honest start."""
        return start_server(config, self.catalogue.public)

    def ask(self, config: Config, nodes: Nodes, V: NDArray[Any] | None = None, **told: Any) -> dict[int, Packet]:
        """Every node's answer to a request of its own making, under a model's name that was never used before."""
        self.asked += 1
        state = self.state(config)
        state = state if V is None else replace(state, V=V)
        told = {"session": self.asked.to_bytes(16, "big")} | told
        packet = encode_request(f"{self.asked:08x}", state, config, self.catalogue, attach=True, **told)
        self.packet = packet
        return {node: answer(packet, self.store(node)) for node in nodes}

    def sum(self, config: Config, nodes: Nodes, V: NDArray[Any] | None = None) -> Outcome:
        """A secure sum over these nodes, as far as they go along."""
        replies, outcome = self.ask(config, nodes, V), Outcome()
        outcome.answered["advertise"] = willing(replies)
        if len(outcome.answered["advertise"]) < 3:
            return outcome
        request, first = decode_request(self.packet), min(outcome.answered["advertise"])
        numbers = {n: unpack(Advertisement, message(replies[n]), request.sum_session).number for n in willing(replies)}
        options = ServerOptions(least_cohort=3)
        server = SecureServer(request.sum_session, self._layout(first), list(numbers.values()), options)
        persons = sum(int(replies[n].facts["persons"]) for n in numbers)
        server.context = mask_context(persons)
        try:
            while server.stage != "done":
                for node in willing(replies) & set(numbers):
                    server.take(numbers[node], message(replies[node]))
                if server.stage == "reveal":
                    break
                questions = server.close()
                stage = Stage(str(self.packet.facts["model"]), int(self.packet.facts["round"]), request.session,
                              server.stage)  # fmt: skip
                more = {"persons": persons} if server.stage == "mask" else {}
                asked = [node for node in willing(replies) if numbers.get(node) in questions]
                replies = {
                    node: answer(encode_stage(stage, questions[numbers[node]], **more), self.store(node))
                    for node in asked
                }
                outcome.answered[server.stage] = willing(replies)
            outcome.total = server.close()
        except Aborted:
            pass
        return outcome

    def agreed_by(self, nodes: Nodes, task: Task) -> None:
        """Their owners agree to a task."""
        for node in nodes:
            with Store.open(self.store(node)) as store:
                agree(store, task)

    def store(self, node: int) -> Path:
        """Of a node, which is its owner's."""
        return self.homes[node - 1].store

    def _layout(self, node: int) -> Any:
        with Store.open(self.store(node)) as store:
            state = store.connection.execute("SELECT state FROM sums WHERE state IS NOT NULL").fetchall()[-1][0]
        return SecureClient.of_bytes(state).layout


def willing(replies: dict[int, Packet]) -> set[int]:
    """Who didn't refuse."""
    return {node for node, reply in replies.items() if "refusal" not in reply.facts}


def rated(ratings: Ratings, node: int, nodes: int) -> set[int]:
    """The items that a node's persons have rated."""
    return set(np.concatenate([ratings.of(c)[0] for c in range(node - 1, ratings.clients, nodes)]).tolist())
