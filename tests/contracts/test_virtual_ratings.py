"""What every rule for virtual ratings promises, and what rounding does. A new file is enrolled by being there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrecplus.config import assign
from fedrecplus.data.scale import Scale
from fedrecplus.device import Device
from fedrecplus.parts import choices, part
from fedrecplus.virtual_ratings._rounding import put_on_scale
from tests.contracts.one_round import START, broadcast_of, devices_of, problem_of
from tests.small_data import small_ratings

RULES = choices("virtual_ratings")
ROUNDINGS = ["none", "nearest", "stochastic"]
SCALES = [Scale(1.0, 5.0, 1.0), Scale(0.5, 5.0, 0.5), Scale(0.0, 100.0, 1.0)]
PROBLEM = problem_of("virtual_ratings.predict_after=1")
MESSAGE = broadcast_of(PROBLEM)
DEVICES = devices_of(PROBLEM)


def unrated(device: Device) -> np.ndarray:
    return np.setdiff1d(np.arange(len(MESSAGE.V)), device.items)


def fill(rule: str, items: np.ndarray, device: Device) -> np.ndarray:
    return part("virtual_ratings", rule).fill(items, device, MESSAGE, PROBLEM.config)


@pytest.mark.parametrize("rule", RULES)
def test_every_item_gets_one_finite_rating(rule: str) -> None:
    for device in DEVICES:
        ratings = fill(rule, unrated(device), device)
        assert ratings.shape == unrated(device).shape
        assert np.isfinite(ratings).all()


@pytest.mark.parametrize("rule", RULES)
def test_the_same_question_has_the_same_answer(rule: str) -> None:
    for device in DEVICES:
        assert (fill(rule, unrated(device), device) == fill(rule, unrated(device), device)).all()


@pytest.mark.parametrize("rule", RULES)
def test_a_rating_does_not_depend_on_which_other_items_are_rated_with_it(rule: str) -> None:
    for device in DEVICES:
        items = unrated(device)
        np.testing.assert_allclose(fill(rule, items[::2], device), fill(rule, items, device)[::2], rtol=0, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_what_is_uploaded_is_on_the_scale(rule: str, rounding: str, scale: Scale) -> None:
    changes = [
        f"virtual_ratings.rule={rule}",
        f"virtual_ratings.rounding={rounding}",
        "virtual_ratings.predict_after=1",
    ]
    problem = problem_of(*changes, ratings=small_ratings(scale=scale))
    message = broadcast_of(problem)
    for device in devices_of(problem)[:8]:
        items = unrated(device)
        raw = part("virtual_ratings", rule).fill(items, device, message, problem.config)
        ratings = put_on_scale(raw, items, device, problem.config, message.round)
        assert ((ratings >= 1.0) & (ratings <= 5.0)).all()
        if rounding != "none":
            assert scale.holds(scale.restore(ratings)).all()


@pytest.mark.parametrize("rule", ["user-average", "nearest", "weighted"])
def test_a_client_that_always_gives_the_same_rating_gives_it_to_pseudo_items_too(rule: str) -> None:
    for device in DEVICES:
        same = replace(device, ratings=np.full(len(device.items), 4.0))
        np.testing.assert_allclose(fill(rule, unrated(device), same), 4.0, rtol=0, atol=1e-12)


values = st.lists(st.floats(-3.0, 9.0), min_size=1, max_size=30)
scales = st.sampled_from(SCALES)


def on_scale(raw: np.ndarray, step: float, rounding: str, secret: int = 7) -> np.ndarray:
    device = replace(DEVICES[0], step=step, secret=secret)
    config = assign(START, [f"virtual_ratings.rounding={rounding}"])
    return put_on_scale(raw, np.arange(len(raw)), device, config, round_number=0)


@settings(max_examples=50)
@given(values, scales, st.sampled_from(["nearest", "stochastic"]))
def test_rounding_moves_to_a_level_next_to_the_value(raw: list[float], scale: Scale, rounding: str) -> None:
    step = scale.standard_step
    clipped = np.clip(raw, 1.0, 5.0)
    rounded = on_scale(np.array(raw), step, rounding)
    limit = step if rounding == "stochastic" else step / 2
    assert (np.abs(rounded - clipped) <= limit + 1e-9).all()
    levels = (rounded - 1.0) / step
    np.testing.assert_allclose(levels, np.rint(levels), rtol=0, atol=1e-9)


@settings(max_examples=50)
@given(scales, st.sampled_from(ROUNDINGS), st.integers(0, 2**64 - 1))
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
    items = np.arange(200)
    raw = np.full(200, 3.5)
    for refresh in ("true", "false"):
        config = assign(START, ["virtual_ratings.rounding=stochastic", f"virtual_ratings.refresh={refresh}"])
        first, later = (put_on_scale(raw, items, DEVICES[0], config, number) for number in (0, 9))
        assert (first == later).all() == (refresh == "false")


@settings(max_examples=60)
@given(st.floats(-1e3, 1e3), st.integers(1, 500), st.floats(0.01, 50.0), st.lists(st.floats(0, 1), min_size=1))
def test_standard_units_and_back_is_the_rating(low: float, steps: int, step: float, shares: list[float]) -> None:
    scale = Scale(low, low + steps * step, step)
    ratings = low + np.array(shares) * (scale.high - low)
    standard = scale.standardise(ratings)
    assert ((standard >= 1.0 - 1e-9) & (standard <= 5.0 + 1e-9)).all()
    np.testing.assert_allclose(scale.restore(standard), ratings, rtol=1e-9, atol=1e-6)
