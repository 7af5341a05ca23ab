"""Weight decay in the unit that a rating scale asks for."""

from __future__ import annotations

import pytest

from fedrecplus.config import Config, assign, on_scale, preset
from fedrecplus.data import Scale
from fedrecplus.simulation import prepare
from tests.small_data import small_ratings

LIKES, STARS = Scale(0.0, 1.0, 1.0), Scale(1.0, 5.0, 1.0)
OURS = ("fedmf", "fedrec+", "fedrec+private")


def decays(config: Config) -> list[float]:
    model, prediction = config.model, config.prediction
    return [model.regularisation, model.user_regularisation, model.floor, prediction.regularisation, prediction.floor]


@pytest.mark.parametrize("name", OURS)
def test_on_likes_all_weight_decay_is_twice_that_of_stars_and_only_once(name: str) -> None:
    config = preset(name)
    once = on_scale(config, LIKES)
    assert decays(once) == pytest.approx([2.0 * decay for decay in decays(config)])
    assert on_scale(once, LIKES) == once
    assert prepare(small_ratings(scale=LIKES), config).config == once


@pytest.mark.parametrize("scale", [STARS, Scale(0.5, 5.0, 0.5), Scale(0.0, 100.0, 1.0)], ids=str)
def test_five_levels_and_more_leave_it_as_it_is(scale: Scale) -> None:
    assert on_scale(preset("fedmf"), scale) == preset("fedmf")


def test_a_user_decay_that_follows_the_other_goes_on_doing_so() -> None:
    config = assign(preset("fedmf"), ["model.user_regularisation=-1"])
    assert on_scale(config, LIKES).model.user_regularisation < 0


def test_standard_units_mean_the_same_on_every_scale() -> None:
    config = assign(preset("fedmf"), ["model.decay_unit=standard"])
    assert on_scale(config, LIKES) == config
