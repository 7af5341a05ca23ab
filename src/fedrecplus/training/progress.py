"""How a training tells what it does while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One thing worth telling: a finished round, perhaps with its error, or a message for the user."""

    round: int
    rounds: int
    rmse: float | None = None
    """on the test ratings, where this round was evaluated"""
    message: str | None = None
    """something the user should read, such as a restart after divergence"""


Progress = Callable[[Step], None]


def silent(_: Step) -> None:
    """Tell nobody."""
