"""How many functions of the package a rating passes on its way from a CSV file to an RMSE.

    python -m benchmarks.hops

Ratings become a table, ``Ratings``, a ``Problem``, a state, predictions, sums of errors, and figures. A function is a
hop if it makes one of these anew, or if it stands between ``train`` and such a function when that happens: whoever
reads the path from its beginning to its end passes these functions and no others. A function counts once, however often
it is called. Not counted are functions of other libraries, comprehensions, and what a hop calls that makes none of
these.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import fedrecplus as fr

PACKAGE = str(Path(fr.__file__).parent)
CARRIERS = (
    *("DataFrame", "Table", "Ratings", "PublicItems", "Problem", "ServerState", "SimulationState", "Broadcast", "Sums"),
    *("Predictor", "ErrorSums", "Scores", "Errors", "Lists", "Evaluation", "Recommender", "Run"),
)
"""what ratings become, by the names of the classes"""
MOST_HOPS = 25


class Trace:
    """Listens to calls and returns of the package's functions."""

    def __init__(self) -> None:
        self.stack: list[tuple[FrameType, str]] = []
        self.seen: dict[int, Any] = {}
        self.hops: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """For ``sys.setprofile``."""
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE) and frame.f_code.co_name[0] != "<":
            self.stack.append((frame, name_of(frame)))
        elif event == "return" and self.stack and self.stack[-1][0] is frame:
            if self._is_new(value):
                self.hops |= dict.fromkeys(name for _, name in self.stack)
            self.stack.pop()

    def _is_new(self, value: Any) -> bool:
        carriers = [one for one in (value if isinstance(value, tuple) else (value,)) if type(one).__name__ in CARRIERS]
        new = [one for one in carriers if id(one) not in self.seen]
        self.seen |= {id(one): one for one in new}
        return bool(new)


def name_of(frame: FrameType) -> str:
    """``training/loop.py: train``."""
    return f"{Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()}: {frame.f_code.co_qualname}"


def hops(algorithm: str = "fedmf") -> list[str]:
    """The functions on the way, in the order in which they were first passed."""
    config = fr.change(fr.preset(algorithm), "server.rounds", 2)
    training, test = fr.split(fr.load("synthetic:clients=60,items=40,ratings_per_client=10"), fold=0)
    with tempfile.TemporaryDirectory() as folder:
        for name, ratings in (("training", training), ("test", test)):
            ratings.to_frame().write_csv(f"{folder}/{name}.csv")
        paths = f"{folder}/training.csv", f"{folder}/test.csv"
        fr.train(*paths, config)  # imports and kernels are there from now on
        trace = Trace()
        sys.setprofile(trace)
        try:
            fr.train(*paths, config)
        finally:
            sys.setprofile(None)
    return list(trace.hops)


def main() -> None:
    """Print the path."""
    path = hops()
    for number, name in enumerate(path, 1):
        print(f"{number:3} {name}")
    print(f"{len(path)} hops, at most {MOST_HOPS}")


if __name__ == "__main__":
    main()
