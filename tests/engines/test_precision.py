"""What the narrow types cost: nothing in accuracy, and little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedrecplus import data
from fedrecplus.config import assign, preset
from fedrecplus.data.splits import split
from fedrecplus.engines import prepare
from fedrecplus.parts import KINDS, built_in
from fedrecplus.testing import example_config, small_ratings
from fedrecplus.testing.example import state_after
from fedrecplus.training import train

ROOT = Path(__file__).parents[2]
BUILD = """
import json
from benchmarks.rounds import peak
from fedrecplus import data
ratings = data.load("synthetic:clients=1000000,items=4000,ratings_per_client=50")
held = sum(array.nbytes for array in (ratings.items, ratings.codes, ratings.indptr, ratings.client_ids))
print(json.dumps({"ratings": len(ratings), "held": held / 1e9, "peak": peak()}))
"""


def test_32_bit_tables_stay_32_bit() -> None:
    for kind in ("model", "aggregation", "server_optimizer"):
        for rule in built_in(KINDS[kind]):
            config = example_config(f"{kind}.rule={rule}", "server_optimizer.learning_rate=0.05", "precision=float32")
            state = state_after(prepare(small_ratings(), config), 2, config.engine)
            kinds = {name: table.dtype for name, table in state.arrays().items() if table.dtype.kind == "f"}
            assert set(kinds.values()) == {np.dtype(np.float32)}, (rule, kinds)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fedmf", "fedrec+"])
def test_single_precision_ends_within_half_a_thousandth_of_double(name: str) -> None:
    training, test = split(data.load("ml-100k"), 0)
    config = assign(preset(name), ["server.rounds=40", "evaluation.every=40"])
    ends = [train(training, test, assign(config, [f"precision={kind}"])).rmse for kind in ("float32", "float64")]
    assert abs(ends[0] - ends[1]) <= 0.0005


@pytest.mark.slow
def test_a_million_clients_are_built_as_a_stream() -> None:
    done = subprocess.run([sys.executable, "-c", BUILD], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["ratings"] > 45_000_000
    assert figures["peak"] <= figures["held"] + 0.5  # the interpreter, and one chunk in wide numbers
