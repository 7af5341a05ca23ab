"""Noticing that predictions blow up, and a smaller step for the next attempt."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.engines import Diverged
from fedrecplus.training.evaluation import Fallback, Predictor, Scores, score

MOST_RETRIES = 4
_TIMES_WORSE = 3.0


@dataclass(frozen=True)
class Watch:
    """How bad an error before clipping may get. A model that starts at zero begins far off, so its start counts too."""

    limit: float

    @classmethod
    def of(cls, judged: Ratings, start: Predictor, fallback: Fallback) -> Watch:
        """Three times the error of the global mean or of the untrained model, whichever is worse."""
        trivial = score(judged, lambda clients, _: np.full(len(clients), fallback.mean), fallback)
        return cls.between(trivial, score(judged, start.predict, fallback), judged.likes_alone)

    @classmethod
    def between(cls, trivial: Scores, untrained: Scores, likes_alone: bool) -> Watch:
        """The same of scores: those of the global mean, and those of the untrained model."""
        least = 1.0 if likes_alone else 1e-3  # of ratings that are all the same, the mean has no error at all
        return cls(_TIMES_WORSE * max(trivial.unclipped, untrained.unclipped, least))

    def look_at(self, scores: Scores, round_number: int) -> None:
        """Raise if predictions, before they are clipped to the scale, have left it for good."""
        if not scores.unclipped <= self.limit:
            raise Diverged(round_number, f"RMSE before clipping is {scores.unclipped:.3g}, more than {self.limit:.3g}")


def step_size(config: Config) -> tuple[str, float]:
    """The setting that decides how far a round goes, and its value: the local step or, without one, the server's."""
    for section in (config.model, config.server_optimizer):
        if "learning_rate" in section.values:
            return f"{section.kind}.learning_rate", float(section.settings.learning_rate)
    return "", 0.0


def with_smaller_step(config: Config, retries: int) -> Config:
    """The config for a repeated attempt: the step halved each time.

    >>> step_size(with_smaller_step(Config(), 2))
    ('model.learning_rate', 0.125)
    """
    name, size = step_size(config)
    if retries == 0 or not name:
        return config
    kind = name.partition(".")[0]
    return replace(config, **{kind: getattr(config, kind).with_settings(learning_rate=size * 0.5**retries)})
