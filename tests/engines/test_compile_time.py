"""Seconds of rounds don't contain compiling."""

from __future__ import annotations

import time
from typing import Any

import numba
import numpy as np
import pytest

from fedrecplus.config import assign, preset
from fedrecplus.engines import SimulationState, compile_seconds
from fedrecplus.engines.fast.engine import FastEngine
from fedrecplus.training import train
from tests.small_data import small_ratings


def slow_to_compile() -> Any:
    """A kernel that no cache has."""

    @numba.njit
    def kernel(x: Any) -> Any:
        return np.sort(x) + np.cumsum(x) * np.median(x)

    return kernel


def test_the_time_of_compiling_is_counted_once_and_not_that_of_running() -> None:
    before, began = compile_seconds(), time.perf_counter()
    kernel = slow_to_compile()
    kernel(np.ones(3))
    whole, compiled = time.perf_counter() - began, compile_seconds() - before
    assert 0.5 * whole < compiled <= whole
    kernel(np.ones(3))
    assert compile_seconds() - before == compiled


def test_a_round_that_compiles_is_not_slower_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, compiled = FastEngine.round, []

    def round_that_compiles(self: FastEngine, problem: Any, state: SimulationState) -> Any:
        before = compile_seconds()
        slow_to_compile()(np.ones(3))
        compiled.append(compile_seconds() - before)
        return plain(self, problem, state)

    monkeypatch.setattr(FastEngine, "round", round_that_compiles)
    run = train(small_ratings(clients=20), None, assign(preset("fedmf"), ["server.rounds=2"]))
    assert run.result["seconds"] < 0.5 * sum(compiled)
