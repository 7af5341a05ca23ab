"""Secure sums without processes: what a run must have come to, computed from the devices' own uploads."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.wire import Packet, Refusal, persons_bound, sum_encoding, sum_layout
from fedrecplus.engines import device_of, engine_of, message_of, prepare
from fedrecplus.engines.state import remember
from fedrecplus.parts.channel import add_all, decode, encode
from fedrecplus.rounds import client_round, server_round
from fedrecplus.training.model_files import read_tensors
from tests.deploy.in_process import small_config

NODES = 4


def secure_config(name: str = "fedmf", rounds: int = 2, **settings: Any) -> Config:
    """Settings under which a deployed secure sum equals a simulated one bit for bit."""
    sums = {"channel__rule": "secure", "channel__masks": "computed", "channel__least_cohort": 3, "channel__bits": 32}
    return small_config(name, rounds, **{"engine": "reference", "precision": "float64", **sums, **settings})


def losing(stage: str, *nodes: int, rounds: Collection[int] = (0,)) -> Callable[[int, Packet], Packet | Refusal]:
    """A link on which some nodes' replies of a stage are lost, in some rounds."""

    def tamper(node: int, packet: Packet) -> Packet | Refusal:
        gone = node in nodes and packet.facts.get("stage") == stage and packet.facts["round"] in rounds
        return Refusal("lost", blame=False) if gone else packet

    return tamper


Nodes = Collection[int]


def expected(
    ratings: Ratings, config: Config, advertised: list[Nodes], summed: list[Nodes], nodes: int = NODES
) -> np.ndarray[Any, Any]:
    """V after rounds in which these nodes advertised keys, and those nodes' vectors are in the sum."""
    problem = prepare(ratings, config)
    state = engine_of(config).start(problem)
    persons = {node: [c for c in range(ratings.clients) if c % nodes == node - 1] for node in range(1, nodes + 1)}
    for keys, vectors in zip(advertised, summed, strict=True):
        message, uploads = message_of(problem, state), {}
        for client in range(ratings.clients):
            upload, device = client_round(message, device_of(problem, state.private, client), problem.config)
            remember(problem, state.private, device)
            uploads[client] = upload
        room = sum(persons_bound(len(persons[node])) for node in keys)
        encoding = sum_encoding(config, problem.public, state.server.V.shape, room)
        chosen = [uploads[client] for node in vectors for client in persons[node]]
        total = add_all((encode(upload, encoding) for upload in chosen), sum_layout(config, state.server.V.shape))
        sums = decode(total, encoding)
        state = replace(state, server=server_round(state.server, sums, problem.public, config))
    return state.server.V


def model(folder: Path) -> np.ndarray[Any, Any]:
    """V of a finished run."""
    return read_tensors(folder / "run" / "model.safetensors")[0]["V"]
