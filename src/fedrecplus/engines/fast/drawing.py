"""What every kernel of pseudo items and of virtual ratings gets: the rows, the keys of draws, the round's message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Rated(NamedTuple):
    """Everybody's ratings, and the places of everybody's pseudo items."""

    indptr: Any
    items: Any
    codes: Any
    levels: Any
    """code → rating on the standard scale"""
    pseudo_indptr: Any


class Keys(NamedTuple):
    """What draws are keyed by."""

    secrets: Any
    purpose: Any
    round: Any


@dataclass(frozen=True)
class Drawing:
    """The choice of pseudo items, or of their ratings, in a round."""

    problem: Problem
    private: PrivateState
    message: Broadcast
    round_key: int

    @property
    def rated(self) -> Rated:
        """Everybody's ratings, in the engine's precision."""
        ratings, levels = self.problem.ratings, self.problem.levels.astype(self.message.V.dtype)
        return Rated(ratings.indptr, ratings.items, ratings.codes, levels, self.problem.pseudo_indptr)

    def keys(self, what: str) -> Keys:
        """The keys of draws for a purpose."""
        return Keys(self.problem.secrets, np.uint64(purpose(what)), np.uint64(self.round_key))

    def most_rated(self, clients: Clients) -> int:
        """Ratings of the client that has most."""
        indptr = self.problem.ratings.indptr
        return int((indptr[clients + 1] - indptr[clients]).max())
