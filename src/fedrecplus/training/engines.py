"""Which engine runs the rounds: three triples of functions over the same state."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus import simulation
from fedrecplus.config import Config
from fedrecplus.simulation import Problem, RoundReport, SimulationState


@dataclass(frozen=True)
class Engine:
    """A way to run rounds. All have the same state, so that everything after a round is the same for all."""

    dtype: Any
    """of the tables"""
    simulate_round: Callable[[Problem, SimulationState], tuple[SimulationState, RoundReport]]
    prediction_factors: Callable[[Problem, SimulationState], NDArray[Any]]

    def start(self, problem: Problem) -> SimulationState:
        """The state before the first round."""
        return simulation.start(problem, self.dtype)


def engine_of(config: Config) -> Engine:
    """The engine that a config asks for.

    >>> engine_of(Config(engine="reference")).dtype.__name__
    'float64'
    """
    if config.trainer == "central":
        central = importlib.import_module("fedrecplus.training.central")
        return Engine(np.float64, central.epoch, simulation.prediction_factors)
    if config.engine == "reference":
        return Engine(np.float64, simulation.simulate_round, simulation.prediction_factors)
    # imported when asked for: compiling kernels takes seconds that a reference run or a --help need not wait for
    fast = importlib.import_module("fedrecplus.fast")
    return Engine(np.dtype(config.precision).type, fast.simulate_round, fast.prediction_factors)
