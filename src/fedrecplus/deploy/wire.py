"""The protocol's types as packets, and back. What isn't a field in ``protocol.py`` has no place in a packet.

Factors travel in ``Config.precision``: with float64 a deployed round equals a simulated one bit for bit, with float32
(the default) messages are half as long and differ by rounding. Item numbers travel in 32 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, check, dumps, loads
from fedrecplus.deploy.catalogue import ItemCatalogue
from fedrecplus.deploy.packet import Packet
from fedrecplus.deploy.versions import VERSION
from fedrecplus.parts import part
from fedrecplus.protocol import Broadcast, ErrorReport, Upload
from fedrecplus.rounds.filling import rates_by_features, selects_by_features
from fedrecplus.rounds.server import ServerState
from fedrecplus.similarity import unit_rows

_CATALOGUE = "catalogue."


@dataclass(frozen=True)
class Request:
    """What a node is asked in a round."""

    version: str
    model: str
    config: Config
    round: int
    V: NDArray[Any]
    last_step: NDArray[Any]
    last_spread: NDArray[Any]
    mean: float
    catalogue: str
    """digest of the catalogue"""
    attached: ItemCatalogue | None
    """the catalogue itself, for nodes that may not have it"""
    bytes: int = 0


def request_packet(
    model: str, state: ServerState, config: Config, mean: float, catalogue: ItemCatalogue, *, attach: bool
) -> Packet:
    """What the server asks. Last step and spread go along only where clients weigh themselves."""
    number = np.dtype(config.precision)
    arrays: dict[str, NDArray[Any]] = {"V": state.V.astype(number)}
    if config.aggregation.weigh_on == "client":
        arrays["last_step"] = state.last_step.astype(number)
        arrays["last_spread"] = state.last_spread.astype(number)
    if attach:
        arrays.update({_CATALOGUE + name: table for name, table in catalogue.arrays().items()})
    return Packet(
        {
            "version": VERSION,
            "model": model,
            "round": state.round,
            "mean": mean,
            "config": dumps(config),
            "catalogue": catalogue.digest,
        },
        arrays,
    )


def request_of(packet: Packet) -> Request:
    """What a node understands of it; KeyError, TypeError or ValueError where it makes no sense."""
    facts, arrays = packet.facts, packet.arrays
    config = check(loads(str(facts["config"]), "the server's config"))
    catalogue = {name.removeprefix(_CATALOGUE): table for name, table in arrays.items() if name.startswith(_CATALOGUE)}
    V = arrays["V"]
    return Request(
        version=str(facts["version"]),
        model=str(facts["model"]),
        config=config,
        round=int(facts["round"]),
        V=V,
        last_step=arrays.get("last_step", np.zeros_like(V)),
        last_spread=arrays.get("last_spread", np.zeros((0, V.shape[1]), V.dtype)),
        mean=float(facts["mean"]),
        catalogue=str(facts["catalogue"]),
        attached=ItemCatalogue.of_arrays(catalogue) if catalogue else None,
        bytes=packet.size,
    )


def broadcast_of(request: Request, catalogue: ItemCatalogue) -> Broadcast:
    """The round's broadcast as the client function takes it; features are computed here, from what everybody knows."""
    V = request.V.astype(np.float64)
    encoder = part("encoders", request.config.pseudo_items.encoder)
    by_features = selects_by_features(request.config) or rates_by_features(request.config)
    features = unit_rows(encoder.encode(V, catalogue.public)) if by_features else np.zeros((0, 0))
    last_step, last_spread = request.last_step.astype(np.float64), request.last_spread.astype(np.float64)
    return Broadcast(request.round, V, last_step, last_spread, request.mean, features, catalogue.public)


def reply_packet(request: Request, uploads: Sequence[Upload], report: ErrorReport | None) -> Packet:
    """A node's answer: the uploads of its persons, end to end."""
    number = np.dtype(request.config.precision)
    columns = request.V.shape[1]
    arrays: dict[str, NDArray[Any]] = {
        "clients": np.array([upload.client for upload in uploads], dtype=np.int64),
        "rows": np.array([len(upload.items) for upload in uploads], dtype=np.int32),
        "items": np.concatenate([np.empty(0, np.int32), *(upload.items.astype(np.int32) for upload in uploads)]),
        "delta": np.concatenate([np.empty((0, columns), number), *(u.delta.astype(number) for u in uploads)]),
    }
    if request.config.aggregation.weigh_on == "client":
        arrays["weights"] = np.array([upload.weight for upload in uploads], dtype=np.float64)
    facts: dict[str, Any] = {"version": VERSION, "model": request.model, "round": request.round}
    if report is not None:
        facts.update(squared_error=report.squared, rated=report.ratings)
    return Packet(facts, arrays)


def refusal_packet(reason: str) -> Packet:
    """A node's answer when it can't take part: one of the words in ``answering.REASONS``, nothing else."""
    return Packet({"version": VERSION, "refusal": reason}, {})
