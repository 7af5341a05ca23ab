"""Ways to run the rounds of all clients: one interface, one state, one loop."""

from fedrecplus.engines.compile_time import compile_seconds as compile_seconds
from fedrecplus.engines.interface import Engine as Engine, engine_of as engine_of, item_columns as item_columns
from fedrecplus.engines.loop import Diverged as Diverged, look_for_divergence as look_for_divergence, rounds as rounds
from fedrecplus.engines.problem import Problem as Problem, prepare as prepare
from fedrecplus.engines.state import (
    PrivateState as PrivateState,
    RoundReport as RoundReport,
    SimulationState as SimulationState,
    device_of as device_of,
    message_of as message_of,
    remember as remember,
    start_private as start_private,
)
from fedrecplus.engines.statistics import (
    StatisticsBudget as StatisticsBudget,
    noisy_statistics as noisy_statistics,
    public_items as public_items,
    statistics_budget as statistics_budget,
    statistics_total as statistics_total,
)
