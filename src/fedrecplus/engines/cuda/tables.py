"""The server's tables on the card, so that its half of a round runs there: the same functions, over other arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.engines.cuda.arrays import CardArray
from fedrecplus.engines.cuda.card import DEVICE, Tensor, to_card
from fedrecplus.engines.fast.registry import kernel_of as fast_kernel_of
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import ServerState

_ON_CARD: dict[Any, Any] = {
    np.add: torch.add,
    np.subtract: torch.subtract,
    np.multiply: torch.multiply,
    np.divide: torch.true_divide,
    np.power: torch.pow,
    np.square: torch.square,
    np.sqrt: torch.sqrt,
    np.absolute: torch.abs,
    np.negative: torch.neg,
    np.greater: torch.gt,
}
"""NumPy's functions of numbers that the server's half of a round is made of; any other runs on the processor"""


class CardTable(CardArray, NDArrayOperatorsMixin):
    """A table of the server: what NumPy computes with it is computed on the card, and stays there.

    It lives within a round alone. What a round gives back are NumPy arrays.
    """

    def __init__(self, tensor: Tensor, host: NDArray[Any] | None = None) -> None:
        super().__init__(tensor)
        self._host = host
        """the same numbers, where they are on the processor already"""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if self._host is None:
            return super().__array__(dtype, copy)
        return np.array(self._host, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **how: Any) -> Any:
        run, plain = _ON_CARD.get(ufunc), set(how) <= {"out", "where"}
        if run is None or method != "__call__" or not plain or any(isinstance(each, np.generic) for each in inputs):
            if "out" in how:
                return NotImplemented
            return getattr(ufunc, method)(*_in_numpy(inputs), **{name: _in_numpy(each) for name, each in how.items()})
        found = run(*(each if isinstance(each, int | float) else to_card(each) for each in inputs))
        (out,), where = how.get("out", (None,)), how.get("where", True)
        if out is None:
            return CardTable(found)
        found = found.to(out.tensor.dtype)
        out.tensor = found if where is True else torch.where(to_card(where), found, out.tensor)
        out._host = None
        return out

    def __array_function__(self, function: Any, types: Any, inputs: Any, how: Any) -> Any:
        if function is np.zeros_like and not how:
            return CardTable(torch.zeros_like(self.tensor))
        return function(*_in_numpy(inputs), **{name: _in_numpy(each) for name, each in how.items()})

    def __getitem__(self, index: Any) -> Any:
        """Slices and new axes of the table; anything else as NumPy arrays."""
        places = index if isinstance(index, tuple) else (index,)
        if all(place is None or isinstance(place, slice) for place in places):
            return CardTable(self.tensor[index])
        return super().__getitem__(index)

    def astype(self, dtype: Any, copy: bool = True) -> Any:
        """The table in another type."""
        return self if self.dtype == dtype else CardTable(to_card(self, getattr(torch, np.dtype(dtype).name)))

    def sum(self, axis: int | None = None) -> Any:
        """A number, or a table of sums."""
        return float(self.tensor.sum()) if axis is None else CardTable(self.tensor.sum(axis))

    def mean(self) -> float:
        """Of all numbers."""
        return float(self.tensor.mean())

    def max(self) -> float:
        """The greatest number."""
        return float(self.tensor.max())


def _in_numpy(value: Any) -> Any:
    """NumPy arrays in place of what is on the card, in lists and tuples too."""
    if isinstance(value, list | tuple):
        return type(value)(_in_numpy(each) for each in value)
    return np.asarray(value) if isinstance(value, CardArray) else value


def server_on_card(config: Config) -> bool:
    """Whether the server's half is a few sums and products of tables: no solver of a model's own, and no noise.

    Parts from outside get the NumPy arrays that they were written for.
    """
    chosen = (config.server_optimizer, config.aggregation, config.channel)
    ours = all(part.is_built_in for part in chosen)
    by_ring = hasattr(fast_kernel_of(config.channel), "ring_sums")
    own_step = config.model.updates_items or isinstance(config.privacy, BudgetMechanism)
    return ours and not own_step and not by_ring and config.aggregation.covariance_kind == "none"


def in_numpy(message: Broadcast) -> Broadcast:
    """The broadcast in NumPy arrays, for what has no kernel."""
    return replace(message, V=np.asarray(message.V), last_step=np.asarray(message.last_step))


class ServerTables:
    """The server's tables of the last round, in both places: those of the next round are there already."""

    def __init__(self) -> None:
        self._known: list[tuple[NDArray[Any], Tensor]] = []

    def to_card(self, server: ServerState) -> ServerState:
        """The server's state with tables on the card; copied only where somebody else made them."""
        return _with_tables(server, self._table)

    def from_card(self, server: ServerState) -> ServerState:
        """The state in NumPy arrays, which are not to be written to; the card keeps what they were copied from."""
        self._known = []
        server = _with_tables(server, self._fetched)
        if DEVICE.type == "cuda":
            torch.cuda.synchronize()
        return server

    def _table(self, array: NDArray[Any]) -> Any:
        found = next((tensor for known, tensor in self._known if known is array), None)
        return CardTable(to_card(array) if found is None else found, array)

    def _fetched(self, table: Any) -> NDArray[Any]:
        tensor = to_card(table)
        # memory that the card can write to by itself, and that is used again: new pages would take longer than the copy
        fetched = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=DEVICE.type == "cuda")
        array = fetched.copy_(tensor, non_blocking=True).numpy()
        self._known.append((array, tensor))
        return array


def _with_tables(server: ServerState, changed: Any) -> ServerState:
    moments = [changed(table) for table in server.moments]
    return replace(server, V=changed(server.V), last_step=changed(server.last_step), moments=moments)
