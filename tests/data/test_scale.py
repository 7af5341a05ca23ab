from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from fedrecplus.data import Scale
from fedrecplus.data.files.scale_inference import infer_scale
from fedrecplus.errors import UserError

SCALES = [Scale(1, 5, 1), Scale(0.5, 5, 0.5), Scale(0, 100, 1), Scale(-10, 10, 0.01), Scale(0, 1, 0.1)]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_every_level_is_held_and_comes_back_from_its_code(scale: Scale) -> None:
    codes = np.arange(scale.levels)
    values = scale.values(codes)
    assert scale.holds(values).all()
    assert (scale.codes(values) == codes).all()
    assert not scale.holds(values + scale.step / 2).any()
    assert not scale.holds(np.array([scale.low - scale.step, scale.high + scale.step])).any()


@given(st.sampled_from(SCALES), st.lists(st.floats(-20, 120), min_size=1))
def test_standard_units_and_back_is_the_rating_clipped_to_the_scale(scale: Scale, values: list[float]) -> None:
    there_and_back = scale.restore(scale.standardise(np.array(values)))
    assert np.allclose(there_and_back, np.clip(values, scale.low, scale.high), atol=1e-9)


@pytest.mark.parametrize("text", ["", "1:5", "a:b:c", "5:1:1", "1:5:0", "1:5:nan", "1:5:0.3", "0:1:1e-6", "1:5:9"])
def test_what_is_no_scale_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        Scale.parse(text)


@pytest.mark.parametrize(
    ("ratings", "scale"),
    [
        ([1, 2, 3, 4, 5], "1:5:1"),
        ([4, 5], "1:5:1"),
        ([0.5, 3.5, 5], "0.5:5:0.5"),
        ([2.5, 4], "0.5:5:0.5"),
        ([0, 3, 5], "0:5:1"),
        ([1, 8, 10], "1:10:1"),
        ([0, 37, 100], "0:100:1"),
        ([12, 57, 88], "0:100:1"),
        ([-9.95, 3.2, 10], "-10:10:0.01"),
        ([-10, 0, 10], "-10:10:1"),
        ([0, 1], "0:1:1"),
        ([1, 2, 3], "1:3:1"),
        ([1, 4, 7], "1:7:1"),
        ([10, 20, 50], "10:50:10"),
        ([0, 0.25, 1], "0:1:0.25"),
        ([3.7, 4.9], "3.7:4.9:0.1"),
        ([-1, 1], "-1:1:2"),
        ([-1, 0, 1], "-1:1:1"),
        ([0.000001, 0.000003], "1e-06:3e-06:1e-06"),
    ],
)
def test_the_scale_is_inferred_from_the_ratings(ratings: list[float], scale: str) -> None:
    assert str(infer_scale(np.array(ratings, dtype=float), "ratings.csv")) == scale


@given(st.lists(st.integers(-2000, 2000), min_size=2, unique=True), st.sampled_from([1.0, 2.0, 4.0, 10.0, 100.0]))
def test_an_inferred_scale_holds_what_it_was_inferred_from(numbers: list[int], divisor: float) -> None:
    ratings = np.array(numbers) / divisor
    scale = infer_scale(ratings, "ratings.csv")
    assert scale.holds(ratings).all()
    assert np.allclose(scale.values(scale.codes(ratings)), ratings)


@pytest.mark.parametrize("ratings", [[7.3, 7.3], [0.1234567, 0.7654321], [1.0, 1e300], [0.0, 0.000001, 5.0]])
def test_a_scale_that_cannot_be_seen_must_be_given(ratings: list[float]) -> None:
    with pytest.raises(UserError, match="scale=") as refusal:
        infer_scale(np.array(ratings), "ratings.csv")
    assert "ratings.csv" in refusal.value.problem
