"""An engine of a study: another one's rounds, of which the study does something otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines import Engine, PrivateState, Problem, RoundReport
from fedrecplus.protocol import Broadcast, Sums

Clients = NDArray[np.int64]


class WrappedEngine(Engine):
    """Another engine's rounds, of which some things are done otherwise."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(np.dtype(engine.dtype).name)
        self.engine = engine

    def sums(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> tuple[Sums, PrivateState, RoundReport]:
        """Of single uploads, by ``join``: a study changes either."""
        uploads, private = self.uploads(problem, private, message, clients)
        sums, report = self.sums_of_uploads(problem, uploads, message)
        return sums, private, report

    def item_sets(
        self, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
    ) -> dict[int, NDArray[np.int64]]:
        """See ``Engine.item_sets``."""
        return self.engine.item_sets(problem, private, message, clients)

    def user_weights(self, problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
        """See ``Engine.user_weights``."""
        return self.engine.user_weights(problem, private, X)
