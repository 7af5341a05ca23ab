"""The one loop over rounds, and the one test for divergence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedrecplus.engines.interface import Engine
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import RoundReport, SimulationState

LARGEST = 1e4
"""numbers of V beyond this have left the rating scale for good"""


class Diverged(Exception):
    """The training blew up in a round."""

    def __init__(self, round_number: int, why: str) -> None:
        super().__init__(f"diverged in round {round_number}: {why}")


def rounds(
    engine: Engine, problem: Problem, state: SimulationState | None = None
) -> Iterator[tuple[SimulationState, RoundReport]]:
    """The state after each round that is left, from the start or from a given state. Raises ``Diverged``."""
    state = engine.start(problem) if state is None else state
    while state.server.round < problem.config.server.rounds:
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for afterwards, and said in words
            state, report = engine.round(problem, state)
        look_for_divergence(state)
        yield state, report


def look_for_divergence(state: SimulationState) -> None:
    """Raise unless all numbers that the server has are finite and of a sane size."""
    for name, array in (("V", state.server.V), ("a dense array", state.server.dense)):
        with np.errstate(invalid="ignore"):
            largest = max(-array.min(initial=0.0), array.max(initial=0.0))  # no copy of a large table; NaN stays NaN
        if not np.isfinite(largest):
            raise Diverged(state.server.round, f"{name} is not finite any more")
        if largest > LARGEST:
            raise Diverged(state.server.round, f"{name} has numbers beyond {LARGEST:g}")
