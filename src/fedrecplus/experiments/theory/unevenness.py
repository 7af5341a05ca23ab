"""How uneven a run's weights were over its rounds, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

EVEN = 0.01
"""χ² below this: nobody weighs a tenth more or less than others, in the quadratic mean"""


def weights_in_words(content: dict[str, Any]) -> str:
    """From the JSON of ``theory``: in which rounds weights were even, and when they were not.

    >>> weights_in_words({"rounds": [1, 2, 5, 20, 60], "chi_wp": [0.3, 0.001, 0.004, 0.7, 0.2]})
    'Weights, by χ² against uniform ones: even in rounds 2 to 5, most uneven in round 20 (0.70), 0.20 in round 60.'
    >>> weights_in_words({"rounds": [1, 2], "chi_wp": [0.0, 0.0]})
    'Weights, by χ² against uniform ones: even in every round that was looked at.'
    """
    rounds, chi = content["rounds"], content["chi_wp"]
    even = [number for number, each in zip(rounds, chi, strict=True) if each < EVEN]
    said = "Weights, by χ² against uniform ones: "
    if len(even) == len(rounds):
        return f"{said}even in every round that was looked at."
    top = max(range(len(chi)), key=chi.__getitem__)
    parts = [
        f"even in {_rounds(even)}" if even else "even in no round that was looked at",
        f"most uneven in round {rounds[top]} ({chi[top]:.2f})",
        f"{chi[-1]:.2f} in round {rounds[-1]}",
    ]
    return f"{said}{', '.join(parts[: 2 + (top != len(chi) - 1)])}."


def _rounds(numbers: Sequence[int]) -> str:
    return f"round {numbers[0]}" if len(numbers) == 1 else f"rounds {numbers[0]} to {numbers[-1]}"
