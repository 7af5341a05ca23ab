"""What every kernel of pseudo items and of virtual ratings gets: the rows, the keys of draws, the round's message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.protocol import Broadcast
from fedrecplus.randomness import purpose

Clients = NDArray[np.int64]
Select = Callable[[Clients, NDArray[Any]], NDArray[np.int64] | None]
"""clients, where their items go → clients that it could not do, if any: their own file does them"""
Fill = Callable[[Clients, NDArray[Any], NDArray[Any]], None]
"""clients, pseudo items, where their ratings go"""


@dataclass(frozen=True)
class Selecting:
    """The choice of pseudo items in a round."""

    problem: Problem
    message: Broadcast
    round_key: int

    @property
    def rows(self) -> tuple[Any, Any, Any]:
        """Where each client's rated items are, and the places of its pseudo items."""
        ratings = self.problem.ratings
        return ratings.indptr, ratings.items, self.problem.pseudo_indptr

    @property
    def keys(self) -> tuple[Any, Any, Any]:
        """The clients' secrets, the purpose and the round that draws are keyed by."""
        return self.problem.secrets, np.uint64(purpose("pseudo-items")), np.uint64(self.round_key)

    @property
    def items(self) -> int:
        """How many items there are."""
        return self.problem.ratings.item_count


@dataclass(frozen=True)
class Filling:
    """The virtual ratings of a round."""

    problem: Problem
    private: PrivateState
    message: Broadcast
    round_key: int
    levels: NDArray[Any]
    """level number → rating on the standard scale, in the engine's precision"""
    solved: dict[str, NDArray[Any]]
    """where a model may keep what it solves on the way"""

    @property
    def rated(self) -> tuple[Any, Any, Any, Any]:
        """Where each client's ratings are, and what their codes mean."""
        ratings = self.problem.ratings
        return ratings.indptr, ratings.items, ratings.codes, self.levels

    @property
    def indptr(self) -> NDArray[np.int64]:
        """The places of each client's pseudo items."""
        return self.problem.pseudo_indptr

    def keys(self, what: str) -> tuple[Any, Any, Any]:
        """The clients' secrets, the purpose and the round that draws are keyed by."""
        return self.problem.secrets, np.uint64(purpose(what)), np.uint64(self.round_key)

    def most_rated(self, clients: Clients) -> int:
        """Ratings of the client that has most."""
        return int(np.diff(self.problem.ratings.indptr)[clients].max())
