"""Where the time of a round goes: processor time per kernel, on one thread, so that other work on the machine counts
little."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from benchmarks.every_kernel import kernels, modules
from benchmarks.line import Line
from benchmarks.rounds import MF, fold, settings
from fedrecplus.config import Config
from fedrecplus.engines import engine_of, item_columns, prepare

PLAIN = ("neighbour_lists", "likeness_table", "weight_table")
"""functions in NumPy that take their time too"""


def measure() -> list[Line]:
    """A line per training: the least processor time of a round, and what its kernels took.

    Solving for the weights of predictions comes with an evaluation, not with a round, and is timed apart.
    """
    return [
        _line("fedmf by mf, K=5, d=20", settings("fedmf", *MF), 20),
        _line("fedrec+ by mf, K=5, d=20", settings("fedrec+", *MF), 20),
        _line("fedmf", settings("fedmf"), 10),
        _line("fedrec+", settings("fedrec+"), 10),
        _line("fedrec+private", settings("fedrec+private"), 10),
        _line("fedrec-hf", settings("fedrec-hf", "virtual_ratings.predict_after=0"), 20),
        _line("fedrec+paper", settings("fedrec+paper"), 5),
    ]


def _line(name: str, config: Config, rounds: int) -> Line:
    problem, engine = prepare(fold()[0], config), engine_of(config)
    state, least, predicting = engine.start(problem), float("inf"), float("inf")
    of_kernels: dict[str, float] = {}
    with patch.dict("os.environ", {"FEDRECPLUS_THREADS": "1"}):
        for number in range(2 + rounds):
            taken: dict[str, float] = {}
            with _timed(taken):
                started = time.thread_time()
                state, _ = engine.round(problem, state)
                whole = time.thread_time() - started
            started = time.thread_time()
            engine.user_weights(problem, state.private, item_columns(problem, state.server.V))
            if number >= 2:  # the first two compile, and choose pseudo items
                predicting = min(predicting, time.thread_time() - started)
                least, of_kernels = min((least, of_kernels), (whole, taken), key=lambda pair: pair[0])
    parts = {kernel: 1e3 * seconds for kernel, seconds in of_kernels.items()}
    return Line(
        f"processor ms per round, {name}", 1e3 * least, "ms", "", {**parts, "for predictions": 1e3 * predicting}
    )


@contextlib.contextmanager
def _timed(taken: dict[str, float]) -> Iterator[None]:
    """While it lasts, kernels add what they take to a dictionary, by whatever module they are called."""
    watched = {name: _watch(kernel, name, taken) for name, kernel in kernels().items()}
    with contextlib.ExitStack() as stack:
        for module in modules():
            for name, value in list(vars(module).items()):
                if name in watched and hasattr(value, "signatures"):
                    stack.enter_context(patch.object(module, name, watched[name]))
                elif name in PLAIN and callable(value):
                    stack.enter_context(patch.object(module, name, _watch(value, name, taken)))
        yield


def _watch(function: Callable[..., Any], name: str, taken: dict[str, float]) -> Callable[..., Any]:
    def watched(*arguments: Any) -> Any:
        started = time.thread_time()
        result = function(*arguments)
        taken[name] = taken.get(name, 0.0) + time.thread_time() - started
        return result

    return watched
