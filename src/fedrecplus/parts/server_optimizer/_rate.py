"""What all server optimizers share: a step size and its decay."""

from __future__ import annotations

from fedrecplus.settings import Annotated, number
from fedrecplus.settings import Settings as _Settings


class RateSettings(_Settings):
    """Options of every server optimizer."""

    learning_rate: Annotated[float, number(1e-12, 1e9, "η, global step size")] = 1.0
    learning_rate_decay: Annotated[float, number(1e-6, 10, "factor on the global step size after each round")] = 1.0


def rate(settings: RateSettings, round_number: int) -> float:
    """The step size of a round."""
    return settings.learning_rate * settings.learning_rate_decay**round_number
