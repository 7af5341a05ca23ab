"""What the server asks a node in a round.

Factors travel in ``Config.precision``: with float64 a deployed round equals a simulated one bit for bit, with float32
(the default) messages are half as long and differ by rounding.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, check, dumps, loads
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Facts, Packet
from fedrecplus.deploy.wire.reply import Refusal
from fedrecplus.deploy.wire.rules import check_deployable, check_rules, fixed_settings
from fedrecplus.deploy.wire.version import VERSION, mismatch
from fedrecplus.errors import UserError
from fedrecplus.parts import part
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import ServerState
from fedrecplus.rounds.filling import rates_by_features, selects_by_features
from fedrecplus.similarity import unit_rows

_CATALOGUE = "catalogue."


@dataclass(frozen=True)
class Request:
    """A request as a node understands it."""

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
    bytes: int

    @cached_property
    def digest(self) -> str:
        """A hash over what a reply depends on."""
        arrays = {"V": self.V, "last_step": self.last_step, "last_spread": self.last_spread}
        facts: Facts = {"mean": self.mean, "catalogue": self.catalogue, "round": self.round}
        return Packet({**facts, "settings": fixed_settings(self.config)}, arrays).digest


def encode_request(
    model: str, state: ServerState, config: Config, mean: float, catalogue: ItemCatalogue, *, attach: bool
) -> Packet:
    """The packet of a request. Last step and spread go along only where clients weigh themselves."""
    number = np.dtype(config.precision)
    arrays: dict[str, NDArray[Any]] = {"V": state.V.astype(number)}
    if config.aggregation.weigh_on == "client":
        arrays.update(last_step=state.last_step.astype(number), last_spread=state.last_spread.astype(number))
    if attach:
        arrays.update({_CATALOGUE + name: table for name, table in catalogue.arrays().items()})
    facts: Facts = {"version": VERSION, "model": model, "round": state.round, "mean": mean}
    return Packet({**facts, "config": dumps(config), "catalogue": catalogue.digest}, arrays)


def decode_request(packet: Packet, allowed_rules: Collection[str] = ()) -> Request:
    """The request in a packet; ``Refusal`` where it makes no sense or names a rule that the node doesn't let in."""
    wrong = mismatch(packet.facts.get("version"), "the server")
    if wrong:
        raise Refusal("version", wrong)
    try:
        return _decode(packet, allowed_rules)
    except (KeyError, TypeError, ValueError, UserError) as error:
        raise Refusal("request", f"the server's request makes no sense: {error}") from None


def _decode(packet: Packet, allowed_rules: Collection[str]) -> Request:
    facts, arrays = packet.facts, packet.arrays
    config = loads(str(facts["config"]), "the server's config")
    check_rules(config, allowed_rules)  # first: the next line looks rules up
    check_deployable(check(config))
    attached = {name.removeprefix(_CATALOGUE): table for name, table in arrays.items() if name.startswith(_CATALOGUE)}
    V = arrays["V"]
    if V.ndim != 2 or not np.isfinite(V).all():
        raise ValueError("V is no table of finite numbers")
    int(str(facts["model"]), 16)
    return Request(
        model=str(facts["model"]),
        config=config,
        round=int(facts["round"]),
        V=V,
        last_step=arrays.get("last_step", np.zeros_like(V)),
        last_spread=arrays.get("last_spread", np.zeros((0, V.shape[1]), V.dtype)),
        mean=float(facts["mean"]),
        catalogue=str(facts["catalogue"]),
        attached=ItemCatalogue.of_arrays(attached) if attached else None,
        bytes=packet.size,
    )


def broadcast_of(request: Request, catalogue: ItemCatalogue) -> Broadcast:
    """The round's broadcast as the client function takes it; features are computed here, from what everybody knows."""
    V, config = request.V.astype(np.float64), request.config
    features = np.zeros((0, 0))
    if selects_by_features(config) or rates_by_features(config):
        features = unit_rows(part("encoders", config.pseudo_items.encoder).encode(V, catalogue.public))
    last_step, last_spread = request.last_step.astype(np.float64), request.last_spread.astype(np.float64)
    return Broadcast(request.round, V, last_step, last_spread, request.mean, features, catalogue.public)
