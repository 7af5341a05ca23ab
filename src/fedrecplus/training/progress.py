"""How a training tells what it does while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Step:
    """One thing worth telling: a finished round, perhaps with its error, or a message for the user."""

    round: int
    rounds: int
    rmse: float | None = None
    """on the test ratings, where this round was evaluated"""
    message: str | None = None
    """something the user should read, such as a restart after divergence"""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """what each worker of a cluster took for this round; nothing where there is none"""


Progress = Callable[[Step], None]


def silent(_: Step) -> None:
    """Tell nobody."""
