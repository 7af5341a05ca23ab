"""Rounds in either engine."""

from __future__ import annotations

from dataclasses import replace

from fedrecplus.config import Config
from fedrecplus.data import Ratings
from fedrecplus.engines import SimulationState, engine_of, prepare

ENGINES = ("reference", "fast")


def run_rounds(ratings: Ratings, config: Config, engine: str, rounds: int) -> list[SimulationState]:
    """The states after each round."""
    problem, runs = prepare(ratings, config), engine_of(replace(config, engine=engine))
    state, states = runs.start(problem), []
    for _ in range(rounds):
        state, _ = runs.round(problem, state)
        states.append(state)
    return states
