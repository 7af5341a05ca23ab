"""Seconds of rounds don't contain compiling: by a clock that compiling and running move by what each takes."""

from __future__ import annotations

import time
from typing import Any

import numba
import pytest
from numba.core import event
from numba.extending import overload

from fedrecplus.config import assign, preset
from fedrecplus.engines import SimulationState
from fedrecplus.engines.fast.engine import FastEngine
from fedrecplus.training import train
from tests.small_data import small_ratings


class Clock:
    """A clock that nothing else moves, however busy the machine is."""

    def __init__(self) -> None:
        self.now = 0.0

    def kernel_that_takes(self, seconds: float) -> Any:
        """One that is not compiled yet, and takes so long to be."""

        def slowly(x: Any) -> Any:
            raise NotImplementedError

        @overload(slowly)
        def compiled(x: Any) -> Any:
            def same(x: Any) -> Any:
                return x

            self.now += seconds
            return same

        return numba.njit(lambda x: slowly(x))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: found.now)
    monkeypatch.setattr(event, "timer", lambda: found.now)  # numba's own
    return found


def test_a_round_that_compiles_is_not_slower_by_it(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = FastEngine.round

    def round_that_compiles(self: FastEngine, problem: Any, state: SimulationState) -> Any:
        clock.kernel_that_takes(5.0)(3.0)
        clock.now += 1.0
        return plain(self, problem, state)

    monkeypatch.setattr(FastEngine, "round", round_that_compiles)
    run = train(small_ratings(clients=20), None, assign(preset("fedmf"), ["server.rounds=2"]))
    assert clock.now >= 12.0
    assert run.result["seconds"] == 2.0
