"""What rounding to a scale does to virtual ratings, and what single rules promise beyond their contract."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fedrecplus.data import Scale
from fedrecplus.parts.virtual_ratings import FillSettings, put_on_scale
from fedrecplus.rounds import predictions_of
from fedrecplus.testing import example_round
from fedrecplus.testing.rules import SCALES, unrated

values = st.lists(st.floats(-3.0, 9.0), min_size=1, max_size=30)
scales = st.sampled_from(SCALES)


def on_scale(raw: np.ndarray, step: float, rounding: str, secret: int = 7) -> np.ndarray:
    device = replace(example_round()[2][0], step=step, secret=secret)
    return put_on_scale(raw, np.arange(len(raw)), device, FillSettings(rounding=rounding), round_number=0)


@pytest.mark.parametrize("rule", ["user-average", "nearest", "weighted", "drawn"])
def test_a_client_that_always_gives_the_same_rating_gives_it_to_pseudo_items_too(rule: str) -> None:
    problem, message, devices = example_round(f"virtual_ratings.rule={rule}")
    for device in devices:
        same = replace(device, ratings=np.full(len(device.items), 4.0))
        predict = predictions_of(same, message, problem.config)
        found = problem.config.virtual_ratings.fill(unrated(device), same, message, predict)
        np.testing.assert_allclose(found, 4.0, rtol=0, atol=1e-12)


def test_the_nearest_rule_copies_the_rating_of_the_most_similar_rated_item() -> None:
    """By hand: each pseudo item points the way of one rated item, whatever its length; a tie goes to the lower one."""
    problem, message, devices = example_round("virtual_ratings.rule=nearest", "model.factors=2")
    device = replace(devices[0], items=np.array([0, 1, 2]), ratings=np.array([1.0, 5.0, 3.0]))
    features = np.zeros_like(message.features[:, :2])
    features[:7] = [[1, 0], [0, 1], [-1, 0], [0.6, 0.8], [0.8, 0.6], [-0.8, 0.6], [0.5**0.5, 0.5**0.5]]
    message = replace(message, features=features)
    predict = predictions_of(device, message, problem.config)
    found = problem.config.virtual_ratings.fill(np.array([3, 4, 5, 6]), device, message, predict)
    np.testing.assert_array_equal(found, [5.0, 1.0, 3.0, 1.0])


@settings(max_examples=50)
@given(values, scales, st.sampled_from(["nearest", "stochastic"]))
def test_rounding_moves_to_a_level_next_to_the_value(raw: list[float], scale: Scale, rounding: str) -> None:
    step = scale.standard_step
    rounded = on_scale(np.array(raw), step, rounding)
    limit = step if rounding == "stochastic" else step / 2
    assert (np.abs(rounded - np.clip(raw, 1.0, 5.0)) <= limit + 1e-9).all()
    levels = (rounded - 1.0) / step
    np.testing.assert_allclose(levels, np.rint(levels), rtol=0, atol=1e-9)


@settings(max_examples=50)
@given(scales, st.sampled_from(["none", "nearest", "stochastic"]), st.integers(0, 2**64 - 1))
def test_a_level_of_the_scale_stays_what_it_is(scale: Scale, rounding: str, secret: int) -> None:
    levels = scale.standardise(scale.values(np.arange(scale.levels)))
    np.testing.assert_allclose(on_scale(levels, scale.standard_step, rounding, secret), levels, rtol=0, atol=1e-9)


@settings(max_examples=20)
@given(st.floats(1.0, 5.0), scales, st.integers(0, 2**64 - 1))
def test_stochastic_rounding_is_right_on_average(value: float, scale: Scale, secret: int) -> None:
    draws = on_scale(np.full(20_000, value), scale.standard_step, "stochastic", secret)
    # six standard errors of a draw between two levels
    assert abs(draws.mean() - value) < 6 * 0.5 * scale.standard_step / np.sqrt(20_000) + 1e-9


def test_stochastic_rounding_is_kept_or_drawn_anew_as_ratings_are() -> None:
    device, items, raw = example_round()[2][0], np.arange(200), np.full(200, 3.5)
    for refresh in (True, False):
        options = FillSettings(rounding="stochastic", refresh=refresh)
        first, later = (put_on_scale(raw, items, device, options, number) for number in (0, 9))
        assert (first == later).all() == (not refresh)
