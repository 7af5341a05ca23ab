"""What a deployed run must have come to, computed anew by the reference functions from its own records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store
from fedrecplus.deploy.node import NodeHome
from fedrecplus.engines import device_of, engine_of, message_of, prepare, rounds
from fedrecplus.engines.state import remember
from fedrecplus.rounds import client_round, released, server_round, sums_of


def simulated(ratings: Ratings, config: Config) -> np.ndarray[Any, Any]:
    """V after all rounds with everybody."""
    problem = prepare(ratings, config)
    *_, (state, _report) = rounds(engine_of(config), problem)
    return state.server.V


def replayed(
    ratings: Ratings, config: Config, homes: list[NodeHome], lines: list[dict[str, Any]]
) -> np.ndarray[Any, Any]:
    """V after the rounds as they were.

    Who computed, by the devices' logs; whose upload arrived, by the journal.
    """
    problem = prepare(ratings, config)
    state = engine_of(config).start(problem)
    computed = [_rounds_of(home) for home in homes]
    for line in lines:
        number, private = state.server.round, state.private
        assert line["round"] == number + 1
        message = message_of(problem, state)
        uploads = []
        for client in problem.cohort(number).tolist():
            if number in computed[client % len(homes)]:
                upload, device = client_round(message, device_of(problem, private, client), problem.config)
                remember(problem, private, device)
                if client in line["clients"]:
                    uploads.append(upload)
        assert len(uploads) == len(line["clients"]), "an upload that no device made"
        sums = sums_of(uploads, message, config)
        state = replace(
            state,
            server=server_round(
                state.server, released(sums, state.server.round, problem.public, config), problem.public, config
            ),
        )
    return state.server.V


def _rounds_of(home: NodeHome) -> set[int]:
    with Store.open(home.store) as store:
        return {line["round"] for line in store.sent() if not line["again"]}
