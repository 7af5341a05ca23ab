"""Run in a process of its own, with TRITON_INTERPRET=1: parts from outside on a card and in a cluster.

The names of engines in; out, for each part, how far its tables are from those of the fast engine.
"""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace

import numpy as np

from fedrecplus.config import Config
from fedrecplus.engines import SimulationState, prepare
from fedrecplus.testing import small_ratings
from fedrecplus.testing.example import state_after
from tests.outside.everywhere import PARTS, config_of


def after(config: Config, engine: str) -> SimulationState:
    """The state after two rounds."""
    problem = prepare(small_ratings(clients=12, items=20), replace(config, engine=engine))
    return state_after(problem, 2, engine)


def distances(engine: str) -> dict[str, float]:
    """The largest difference in any of the server's numbers, for each part."""
    found = {}
    for part in PARTS:
        config = config_of(part, "cluster.shards=3")
        one, other = (after(config, name).server for name in ("fast", engine))
        tables = ((one.V, other.V), (one.dense, other.dense))
        found[part] = max(float(np.abs(mine - its).max(initial=0.0)) for mine, its in tables)
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps({name: distances(name) for name in sys.argv[1:]}))
