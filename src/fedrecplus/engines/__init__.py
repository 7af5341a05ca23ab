"""Ways to run the rounds of all clients: one interface, one state, one loop."""

from fedrecplus.engines.compile_time import compile_seconds
from fedrecplus.engines.interface import (
    ENGINES,
    Engine,
    engine_of,
    item_columns,
)
from fedrecplus.engines.loop import Diverged, look_for_divergence, rounds
from fedrecplus.engines.problem import Problem, prepare
from fedrecplus.engines.state import (
    PrivateState,
    RoundReport,
    SimulationState,
    device_of,
    message_of,
    remember,
    start_private,
)
from fedrecplus.engines.statistics import (
    StatisticsBudget,
    noisy_statistics,
    public_items,
    statistics_budget,
    statistics_total,
)

__all__ = [
    "ENGINES",
    "Diverged",
    "Engine",
    "PrivateState",
    "Problem",
    "RoundReport",
    "SimulationState",
    "StatisticsBudget",
    "compile_seconds",
    "device_of",
    "engine_of",
    "item_columns",
    "look_for_divergence",
    "message_of",
    "noisy_statistics",
    "prepare",
    "public_items",
    "remember",
    "rounds",
    "start_private",
    "statistics_budget",
    "statistics_total",
]
