"""The server's tables on the card, so that its half of a round runs there: the same functions, over other arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.engines.cuda.card import DEVICE, Tensor, to_card
from fedrecplus.engines.fast import ring
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.rounds import ServerState


def server_on_card(config: Config) -> bool:
    """Whether the server's half is a few sums and products of tables: no solver of a model's own, and no noise.

    Parts from outside get the NumPy arrays that they were written for.
    """
    chosen = (config.server_optimizer, config.aggregation, config.channel)
    ours = all(part.is_built_in for part in chosen)
    own_step = config.model.updates_items or isinstance(config.privacy, BudgetMechanism)
    return ours and not own_step and not ring.adds_up(config.channel) and config.aggregation.covariance_kind == "none"


class ServerTables:
    """The server's tables of the last round, in both places: those of the next round are there already."""

    def __init__(self) -> None:
        self._known: list[tuple[NDArray[Any], Tensor]] = []

    def to_card(self, server: ServerState) -> ServerState:
        """The server's state as tensors; copied only where somebody else made the tables."""
        return _with_tables(server, self._table)

    def from_card(self, server: ServerState) -> ServerState:
        """The state in NumPy arrays, which are not to be written to; the card keeps what they were copied from."""
        self._known = []
        server = _with_tables(server, self._fetched)
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
        return server

    def _table(self, array: NDArray[Any]) -> Any:
        on_card = next((tensor for known, tensor in self._known if known is array), None)
        return to_card(array) if on_card is None else on_card

    def _fetched(self, tensor: Tensor) -> NDArray[Any]:
        # memory that the card can write to by itself, and that is used again: new pages would take longer than the copy
        fetched = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=DEVICE.type == "cuda")
        array = fetched.copy_(tensor, non_blocking=True).numpy()
        self._known.append((array, tensor))
        return array


def _with_tables(server: ServerState, changed: Any) -> ServerState:
    moments = [changed(table) for table in server.moments]
    return replace(server, V=changed(server.V), last_step=changed(server.last_step), moments=moments)
