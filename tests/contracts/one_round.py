"""A problem, its broadcast and its devices, for tests that call a part by itself. Arrays are read-only."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from fedrecplus import simulation
from fedrecplus.config import Config, assign
from fedrecplus.data.ratings import Ratings
from fedrecplus.device import Device
from fedrecplus.protocol import Broadcast
from fedrecplus.simulation.reference import device_of, message_of
from tests.small_data import small_ratings

RATINGS = small_ratings()
START = assign(
    Config(),
    ["precision=float64", "engine=reference", "model.factors=4", "client.learning_rate=0.2", "seed=5",
     "pseudo_items.rule=random"],
)  # fmt: skip


def problem_of(*changes: str, ratings: Ratings = RATINGS) -> simulation.Problem:
    return simulation.prepare(ratings, assign(START, changes))


def broadcast_of(problem: simulation.Problem, rounds: int = 1) -> Broadcast:
    """What is told after some rounds, so that V, the last step and U are more than start values."""
    return read_only(message_of(problem, state_after(problem, rounds)))


def state_after(problem: simulation.Problem, rounds: int) -> simulation.SimulationState:
    state = simulation.start(problem)
    for _ in range(rounds):
        state, _ = simulation.simulate_round(problem, state)
    return state


def devices_of(problem: simulation.Problem, rounds: int = 1) -> list[Device]:
    state = state_after(problem, rounds)
    clients = range(problem.ratings.clients)
    return [read_only(replace(device_of(problem, state, client), kept=None)) for client in clients]


def read_only(value: Any) -> Any:
    """The same dataclass with arrays that can't be written: a part that changes its arguments fails."""
    for field in fields(value):
        inner = getattr(value, field.name)
        if isinstance(inner, np.ndarray):
            inner.flags.writeable = False
    return value
