"""How much a choice counts in the list of what comes next: the latest most.

A device knows in which order its owner chose, and weighs its own solve by it. Nothing of that enters a training.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.settings import Annotated, number

VALIDATED = -1.0
"""the decay that a training chooses by validation at its end; devices that have no such training take none"""
RecencyDecay = Annotated[
    float, number(-1, 1e6, "choices over which a choice's weight in lists falls to 1/e; 0: never; -1: by validation")
]
DECAYS = (2.0, 3.0, 5.0, 10.0, 30.0)
"""choices over which the weight falls to 1/e: what validation chooses from, beside none"""
MOMENT = 3.0
"""the decay of a session, where the model has none"""
LONG_AGO = 1 << 20
"""the age of what was chosen nobody knows when"""
_LEAST = 0.03
"""weight of what was chosen long ago, which still says who a person is"""


def nearness_of(recency: NDArray[Any]) -> NDArray[Any]:
    """exp(−age/decay), from such weights: what was chosen long ago says nothing of what comes next."""
    nearness: NDArray[Any] = (recency - _LEAST) / (1.0 - _LEAST)
    return nearness * (nearness > 0)


def recency_weights(ages: NDArray[Any] | None, decay: float) -> Array | None:
    """.03 + .97 exp(−age/decay), where age is how many choices ago; None, for all alike, without order or decay."""
    if ages is None or decay <= 0:
        return None
    return np.asarray(_LEAST + (1.0 - _LEAST) * np.exp(-ages / decay))
