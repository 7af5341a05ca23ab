"""Noticing that a training blows up instead of learning, and a smaller step for the next attempt."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.simulation import SimulationState
from fedrecplus.training.evaluation import Factors, Fallback, Scores, score

MOST_RETRIES = 4
_TIMES_WORSE = 3.0


class Diverged(Exception):
    """The training blew up in a round."""

    def __init__(self, round_number: int, why: str) -> None:
        super().__init__(f"diverged in round {round_number}: {why}")


@dataclass(frozen=True)
class Watch:
    """How bad an error before clipping may get. A model that starts at zero begins far off, so its start counts too."""

    limit: float

    @classmethod
    def of(cls, judged: Ratings, start: Factors, fallback: Fallback) -> Watch:
        """Three times the error of the global mean or of the untrained model, whichever is worse."""
        trivial = score(judged, lambda clients, _: np.full(len(clients), fallback.mean), fallback)
        untrained = score(judged, start.predict, fallback)
        return cls(_TIMES_WORSE * max(trivial.unclipped, untrained.unclipped, 1e-3))

    def look_at_state(self, state: SimulationState) -> None:
        """Raise unless all numbers that the server has are finite."""
        if not np.isfinite(state.server.V).all():
            raise Diverged(state.server.round, "V is not finite any more")

    def look_at_scores(self, scores: Scores, round_number: int) -> None:
        """Raise if predictions, before they are clipped to the scale, have left it for good."""
        if not scores.unclipped <= self.limit:
            raise Diverged(round_number, f"RMSE before clipping is {scores.unclipped:.3g}, more than {self.limit:.3g}")


def with_smaller_step(config: Config, retries: int) -> Config:
    """The config for a repeated attempt: the local step halved each time.

    >>> with_smaller_step(Config(), 2).client.learning_rate
    0.125
    """
    return replace(config, client=replace(config.client, learning_rate=config.client.learning_rate * 0.5**retries))
