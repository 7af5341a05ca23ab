"""The scale that ratings are on, guessed from the ratings.

1. The first usual scale that holds every rating and whose top quarter is reached: a file in which nobody gave one star
   is still on 1 to 5, one with nothing above 3 is not. A scale that starts below zero asks for a negative rating.
2. Where every rating is 1, the scale of likes, 0 to 1; where they are −1 and 1, two thumbs without anything between.
3. Otherwise from the lowest to the highest rating, with the greatest step (1, 2.5 or 5 times a power of ten) that fits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.scale import LIKES, MOST_LEVELS, Scale
from fedrecplus.errors import UserError

USUAL = tuple(
    Scale.parse(text)
    for text in (
        *("1:5:1", "0:5:1", "0.5:5:0.5", "0:5:0.5"),
        *("1:10:1", "0:10:1", "0:10:0.5", "0:10:0.1", "0:100:1"),
        *("-10:10:1", "-10:10:0.01"),
    )
)
THUMBS = "-1:1:2"
_TOP_QUARTER = 0.75
_MILLION = 10**6
_ROUND_STEPS = [digits * 10**zeros for zeros in range(13) for digits in (1, 5, 25)]  # in millionths
_GIVE_IT = "give the scale: --scale LOW:HIGH:STEP"


def infer_scale(ratings: NDArray[np.float64], source: str) -> Scale:
    """The scale of some finite ratings; ``source`` is named in errors.

    >>> str(infer_scale(np.array([2.0, 5.0, 4.0]), "ratings.csv"))
    '1:5:1'
    >>> str(infer_scale(np.array([0.0, 0.25, 1.0]), "ratings.csv"))
    '0:1:0.25'
    """
    levels = np.unique(ratings)
    usual = next((scale for scale in USUAL if _fits(scale, levels)), None)
    if usual is None and levels.tolist() == [1.0]:
        return Scale.parse(LIKES)
    if levels.tolist() == [-1.0, 1.0]:
        return Scale.parse(THUMBS)
    return usual or _observed_scale(levels, source)


def _fits(scale: Scale, levels: NDArray[np.float64]) -> bool:
    exact = np.allclose(scale.values(scale.codes(levels)), levels, rtol=0, atol=1e-9)
    reaches_top = levels[-1] >= scale.low + _TOP_QUARTER * (scale.high - scale.low)
    same_sign = (scale.low < 0) == (levels[0] < 0)
    return bool(reaches_top and same_sign and exact)


def _observed_scale(levels: NDArray[np.float64], source: str) -> Scale:
    if len(levels) == 1:
        raise UserError(f"{source}: every rating is {levels[0]:g}, which doesn't show the scale", _GIVE_IT)
    step = _greatest_step(levels)
    if step is None or round((levels[-1] - levels[0]) / step) >= MOST_LEVELS:
        raise UserError(
            f"{source}: ratings such as {levels[0]} and {levels[1]} need a scale of more than {MOST_LEVELS:,} levels",
            f"round the ratings, and {_GIVE_IT}",
        )
    return Scale(float(levels[0]), float(levels[-1]), step)


def _greatest_step(levels: NDArray[np.float64]) -> float | None:
    """The greatest round number that divides the gaps between levels, with at most six decimals."""
    gaps = (levels - levels[0]) * _MILLION
    if gaps[-1] > 2**53 or not np.allclose(gaps, np.rint(gaps), rtol=1e-12, atol=1e-3):
        return None
    divisor = int(np.gcd.reduce(np.rint(gaps).astype(np.int64)))
    greatest = max(step for step in _ROUND_STEPS if divisor % step == 0)
    return float(greatest / _MILLION)
