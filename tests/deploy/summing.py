"""Secure sums without processes: what a run must have come to, computed from the devices' own uploads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.catalogue import ITEMS
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.ring import persons_bound, sum_terms
from fedrecplus.engines import device_of, engine_of, message_of, prepare
from fedrecplus.engines.state import remember
from fedrecplus.parts.channel import add_all, decode, encode
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.parts.privacy import Words
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import client_round, released, server_round, start_server
from fedrecplus.training.model_files import read_tensors
from tests.deploy.in_process import MODEL, small_config

NODES = 4


def secure_config(name: str = "fedmf", rounds: int = 2, **settings: Any) -> Config:
    """Settings under which a deployed secure sum equals a simulated one bit for bit."""
    sums = {
        "channel__rule": "secure", "channel__cryptography": "computed", "channel__least_cohort": 3,
        "channel__bits": 32, "channel__demonstration": True,
    }  # fmt: skip
    return small_config(name, rounds, **{"engine": "reference", "precision": "float64", **sums, **settings})


Nodes = Collection[int]
Tamper = Callable[[int, Packet], Packet | Refusal]


class Killed(BaseException):
    """The server's app was killed."""


def dying(stage: str | None, node: int, number: int, tamper: Tamper = lambda _, packet: packet) -> Tamper:
    """A link on which the server is killed when a node's reply of a stage comes, in one round."""

    def die(sender: int, packet: Packet) -> Packet | Refusal:
        if (packet.facts.get("stage"), sender, packet.facts["round"]) == (stage, node, number):
            raise Killed
        return tamper(sender, packet)

    return die


def losing(stage: str, *nodes: int, rounds: Collection[int] = (0,)) -> Tamper:
    """A link on which some nodes' replies of a stage are lost, in some rounds."""

    def tamper(node: int, packet: Packet) -> Packet | Refusal:
        gone = node in nodes and packet.facts.get("stage") == stage and packet.facts["round"] in rounds
        return Refusal("lost", blame=False) if gone else packet

    return tamper


def expected(
    ratings: Ratings, config: Config, advertised: list[Nodes], summed: list[Nodes], nodes: int = NODES,
    words: Mapping[tuple[int, int], Words] | None = None, public: PublicItems | None = None,
) -> np.ndarray[Any, Any]:  # fmt: skip
    """V after rounds in which these nodes advertised keys, and those nodes' vectors are in the sum.

    ``words`` are the draws of each round and node for its own noise, as ``NoiseWords`` has noted them.
    """
    problem = prepare(ratings, config, public)
    state = engine_of(config).start(problem)
    persons = {node: [c for c in range(ratings.clients) if c % nodes == node - 1] for node in range(1, nodes + 1)}
    for keys, vectors in zip(advertised, summed, strict=True):
        message, uploads = message_of(problem, state), {}
        for client in range(ratings.clients):
            upload, device = client_round(message, device_of(problem, state.private, client), problem.config)
            remember(problem, state.private, device)
            uploads[client] = upload
        room = sum(persons_bound(len(persons[node])) for node in keys)
        terms = sum_terms(config, problem.public, state.server.V.shape, state.server.round)
        encoding = terms.encoding(room, len(keys))
        chosen = [uploads[client] for node in vectors for client in persons[node]]
        total = add_all((encode(upload, encoding) for upload in chosen), terms.layout)
        for node in vectors if terms.noise is not None else ():
            terms.add_share(total, encoding, len(keys), (words or {})[state.server.round, node])
        sums = replace(decode(total, encoding), noise=terms.share(encoding, len(keys)) * len(vectors) ** 0.5)
        state = replace(
            state,
            server=server_round(
                state.server, released(sums, state.server.round, problem.public, config), problem.public, config
            ),
        )
    return state.server.V


class NoiseWords(dict[tuple[int, int], Words]):
    """The draws of each round and node, noted while a run goes on: nodes keep what leads to them until they unmask."""

    def __init__(self, homes: list[NodeHome], tamper: Tamper = lambda _, packet: packet) -> None:
        super().__init__()
        self.homes, self.tamper = homes, tamper

    def __call__(self, node: int, packet: Packet) -> Packet | Refusal:
        """What a link does with a node's answer."""
        if packet.facts.get("stage") == "mask":
            with Store.open(self.homes[node - 1].store) as store:
                state = store.value("SELECT state FROM sums WHERE session = ?", packet.facts["session"])
            self[int(packet.facts["round"]), node] = SecureClient.of_bytes(state).noise_words()
        return self.tamper(node, packet)


def model(folder: Path) -> np.ndarray[Any, Any]:
    """V of a finished run."""
    return read_tensors(folder / "run" / "model.safetensors")[0]["V"]


def message(packet: Packet) -> bytes:
    """The protocol's message in a packet."""
    return packet.arrays["message"].tobytes()


def advert_request(folder: Path, session: bytes = b"s" * 16, **settings: object) -> Packet:
    """A round's request that begins a sum."""
    config, catalogue = secure_config(**settings), ItemCatalogue.read(folder / "run" / ITEMS)
    state = start_server(config, catalogue.public)
    return encode_request(MODEL, state, config, catalogue, attach=True, session=session)
