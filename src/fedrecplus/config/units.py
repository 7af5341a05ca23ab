"""Weight decay in the unit that the rating scale asks for."""

from __future__ import annotations

from dataclasses import replace

from fedrecplus.config.settings import Config
from fedrecplus.data.scale import Scale

_FIVE_STARS = Scale(1.0, 5.0, 1.0)


def on_scale(config: Config, scale: Scale) -> Config:
    """The config with all its weight decay in standard units; one that has it so already is left as it is.

    Weight decay is a variance of errors over a variance of factors. Levels far apart bring more of the first: what is
    between a like and a dislike can't be said. The unit is the variance of evenly used levels, which the scale alone
    tells, and no less than that of five stars, since finer levels were not found to need less decay.
    Ours: on likes and dislikes all weight decay was too small by half.
    """
    times = max(scale.level_variance / _FIVE_STARS.level_variance, 1.0)
    if config.model.decay_unit == "standard" or times == 1.0:
        return config
    model, prediction = config.model, config.prediction
    return replace(
        config,
        model=replace(
            model,
            regularisation=times * model.regularisation,
            user_regularisation=times * model.user_regularisation,
            floor=times * model.floor,
            decay_unit="standard",
        ),
        prediction=replace(
            prediction, regularisation=times * prediction.regularisation, floor=times * prediction.floor
        ),
    )
