"""Noticing that predictions blow up, and a smaller step for the next attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fedrecplus.config import Config
from fedrecplus.engines import Diverged
from fedrecplus.training.evaluation import Scores

MOST_RETRIES = 4
_TIMES_WORSE = 3.0


def refuse_blown_up(
    scores: Scores, round_number: int, of_mean: Scores, untrained: Callable[[], Scores], *, likes_alone: bool = False
) -> None:
    """Raise if predictions, before they are clipped to the scale, have left it for good.

    That is where their error is three times that of the global mean and three times that of the untrained model, which
    is far off if it starts at zero. The latter is asked for only where the former is not enough.
    """
    least = 1.0 if likes_alone else 1e-3  # of ratings that are all the same, the mean has no error at all
    limit = _TIMES_WORSE * max(of_mean.unclipped, least)
    if not scores.unclipped <= limit:
        limit = max(limit, _TIMES_WORSE * untrained().unclipped)
    if not scores.unclipped <= limit:
        raise Diverged(round_number, f"RMSE before clipping is {scores.unclipped:.3g}, more than {limit:.3g}")


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
