"""Private states of clients in shards: they stay where they are, and are fetched when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.ray.worker import Look, Place, ShardView
from fedrecplus.engines.state import PRIVATE_ARRAYS, PrivateState

Ask = Callable[[PrivateState, Look, Any], list[Any]]
"""private states, a function, what all shards are told → what it says of each"""


class ShardedPrivate(PrivateState):
    """Private states of all shards, where they are; an array is fetched and put together when somebody asks for it."""

    places: tuple[Place, ...]
    _ask: Ask

    def __init__(self, places: Sequence[Place], drawn: NDArray[np.bool_], ask: Ask) -> None:
        for name, value in {"places": tuple(places), "drawn": drawn, "_ask": ask}.items():
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in PRIVATE_ARRAYS:  # ``drawn`` is here
            raise AttributeError(name)
        parts = self._ask(self, _array, name)
        object.__setattr__(self, name, np.concatenate(parts))
        return vars(self)[name]

    def finite(self) -> bool:
        """Whether all numbers that clients keep are finite."""
        return all(self._ask(self, _is_finite, None))


def _array(view: ShardView, shared: str, own: Any) -> NDArray[Any]:
    array: NDArray[Any] = getattr(view.private, shared)
    return array


def _is_finite(view: ShardView, shared: Any, own: Any) -> bool:
    return view.private.finite()


def kept_places(view: ShardView, shared: Any, own: Any) -> tuple[int, int]:
    """How many pseudo items and virtual ratings a shard's clients keep."""
    return len(view.private.pseudo_items), len(view.private.virtual_ratings)
