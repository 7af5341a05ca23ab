"""What a deployed run must have come to, computed anew by the reference functions from its own records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from fedrecplus.rounds.refit import prediction_table
from fedrecplus.simulation import Problem, SimulationState
from fedrecplus.simulation.reference import device_of, message_of, remember

from fedrecplus import simulation
from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.process import NodeHome
from fedrecplus.deploy.server import catalogue_of
from fedrecplus.rounds import client_round, server_round


def simulated(ratings: Ratings, config: Config) -> np.ndarray[Any, Any]:
    """The model's table after all rounds with everybody."""
    problem = simulation.prepare(ratings, config)
    state = simulation.start(problem)
    for _ in range(config.server.rounds):
        state, _report = simulation.simulate_round(problem, state)
    return _table(problem, state)


def replayed(
    ratings: Ratings, config: Config, homes: list[NodeHome], lines: list[dict[str, Any]]
) -> np.ndarray[Any, Any]:
    """The model's table after the rounds as they were.

    Who computed, by the devices' logs; whose upload arrived, by the journal.
    """
    problem = simulation.prepare(ratings, config)
    state = simulation.start(problem)
    computed = [_rounds_of(home) for home in homes]
    for line in lines:
        number = state.server.round
        assert line["round"] == number + 1
        message = message_of(problem, state)
        uploads = []
        for client in problem.taking_part(number):
            if number in computed[int(client) % len(homes)]:
                upload, device = client_round(message, device_of(problem, state, int(client)), problem.config)
                remember(problem, state, device)
                if int(client) in line["clients"]:
                    uploads.append(upload)
        assert len(uploads) == len(line["clients"]), "an upload that no device made"
        state = replace(state, server=server_round(state.server, uploads, problem.config))
    return _table(problem, state)


def _table(problem: Problem, state: SimulationState) -> np.ndarray[Any, Any]:
    """What predictions come from, with a catalogue's mean rating: a simulation's may differ in the last bits."""
    mean = catalogue_of(problem.ratings).mean
    return prediction_table(state.server.V, problem.public, mean, problem.mean, problem.config)


def _rounds_of(home: NodeHome) -> set[int]:
    with Store.open(home.store) as store:
        return {line["round"] for line in store.sent() if not line["again"]}
