"""How many functions of the package a rating passes on its way from a CSV file to an RMSE.

    python -m benchmarks.hops

On its way it is in a table, ``Ratings``, a ``Problem``, the broadcast, sums and state of a round, predictions, and sums
of errors. The script notes which function made each of these and from which others, and goes back from the RMSE to the
file. A function is a hop if it made something on this line, or stood between ``train`` and such a function when it did:
whoever reads the path from end to end passes these functions and no others. Each counts once, however often it is
called. Not counted are functions of other libraries, comprehensions, and what a hop calls that is off the line.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, MethodType
from typing import Any

import fedrecplus as fr

PACKAGE = str(Path(fr.__file__).parent)
CARRIERS = (
    *("DataFrame", "Table", "Ratings", "PublicItems", "Problem", "ServerState", "SimulationState", "Broadcast", "Sums"),
    *("Predictor", "ErrorSums", "Scores", "Errors", "Evaluation", "Run"),
)
"""what a rating is in on its way, by the names of the classes"""
ENDS = ("Evaluation", "Run")
"""what holds the RMSE when it is there"""
MOST_HOPS = 25


@dataclass
class Made:
    """A carrier: who made it, called by whom, and what of."""

    value: Any
    stack: list[str]
    parents: list[int] = field(default_factory=list)


class Trace:
    """Listens to calls and returns of the package's functions."""

    def __init__(self) -> None:
        self.stack: list[tuple[FrameType, str]] = []
        self.made: dict[int, Made] = {}

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        """For ``sys.setprofile``."""
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE) and frame.f_code.co_name[0] != "<":
            self.stack.append((frame, name_of(frame)))
        elif event == "return" and self.stack and self.stack[-1][0] is frame:
            held = [id(one) for local in list(frame.f_locals.values()) for one in carriers(local)]
            for new in [one for one in carriers(value) if id(one) not in self.made]:
                names = [name for _, name in self.stack]
                self.made[id(new)] = Made(new, names, [one for one in held if one in self.made])
            self.stack.pop()

    def hops(self, rmse: float) -> list[str]:
        """The functions on the line that ends in this RMSE, in the order in which they were first passed."""
        left = [key for key, made in self.made.items() if rmse_of(made.value) == rmse]
        line = set(left)
        while left:
            made = self.made[left.pop()]
            new = set() if type(made.value).__name__ in ENDS else set(made.parents) - line
            line |= new
            left += new
        return list(dict.fromkeys(name for key, made in self.made.items() if key in line for name in made.stack))


def rmse_of(value: Any) -> float | None:
    """The RMSE that a carrier holds, if it does."""
    return getattr(getattr(value, "total", value), "rmse", None)


def carriers(value: Any) -> list[Any]:
    """The carriers in a value: itself, those of a tuple or list, or whom a method is of."""
    value = value.__self__ if isinstance(value, MethodType) else value
    values = value if isinstance(value, tuple | list) else (value,)
    return [one for one in values if type(one).__name__ in CARRIERS]


def name_of(frame: FrameType) -> str:
    """``training/loop.py: train``."""
    return f"{Path(frame.f_code.co_filename).relative_to(PACKAGE).as_posix()}: {frame.f_code.co_qualname}"


def hops(algorithm: str = "fedmf") -> list[str]:
    """The path of a small training on two files."""
    config = fr.change(fr.preset(algorithm), "server.rounds", 2)
    training, test = fr.split(fr.load("synthetic:clients=60,items=40,ratings_per_client=10"), fold=0)
    with tempfile.TemporaryDirectory() as folder:
        paths = f"{folder}/training.csv", f"{folder}/test.csv"
        for path, ratings in zip(paths, (training, test), strict=True):
            ratings.to_frame().write_csv(path)
        fr.train(*paths, config)  # imports and kernels are there from now on
        trace = Trace()
        sys.setprofile(trace)
        try:
            run = fr.train(*paths, config)
        finally:
            sys.setprofile(None)
    return trace.hops(run.rmse)


def main() -> None:
    """Print the path."""
    path = hops()
    for number, name in enumerate(path, 1):
        print(f"{number:3} {name}")
    print(f"{len(path)} hops, at most {MOST_HOPS}")


if __name__ == "__main__":
    main()
