"""The first round, in which devices choose and rate their pseudo items, beside a later one, in processor time."""

from __future__ import annotations

import time
from unittest.mock import patch

from benchmarks.line import Line
from benchmarks.rounds import fold, settings
from fedrecplus.config import Config
from fedrecplus.engines import engine_of, prepare

_TIMES = 5


def measure() -> list[Line]:
    """What choosing adds to a round over what a later round takes."""
    return [_line(name, settings(name)) for name in ("fedrec+", "fedrec+private")]


def _line(name: str, config: Config) -> Line:
    problem, engine = prepare(fold()[0], config), engine_of(config)
    engine.round(problem, engine.start(problem))  # compiles
    first, later = [], []
    with patch.dict("os.environ", {"FEDRECPLUS_THREADS": "1"}):
        for _ in range(_TIMES):
            state, taken = engine.start(problem), [time.thread_time()]
            for _ in range(2):
                state, _ = engine.round(problem, state)
                taken.append(time.thread_time())
            first.append(taken[1] - taken[0])
            later.append(taken[2] - taken[1])
    parts = {"first round, ms": 1e3 * min(first), "later round, ms": 1e3 * min(later)}
    return Line(f"choosing pseudo items over a later round, {name}", min(first) / min(later) - 1.0, "×", "≤ 1", parts)
