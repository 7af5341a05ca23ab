"""What honest rounds look like, learned from them: a bound for updates, and an alarm for odd steps of V.

A fixed bound must let the largest honest update of any data set pass, and is far above most. The median of a round's
uploads is moved by no minority.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.protocol import Upload

_REMEMBERED, _AT_LEAST = 5, 3
"""rounds that count, and rounds before the first alarm"""
_ODD, _ODD_IN_ROUND = 2.0, 4.0
"""a step is odd where it is so many times the largest of the rounds before, or the ninth decile of its own round"""
_MOST_NAMED = 20


def size_of(upload: Upload) -> float:
    """The greatest number of a client's update, before any weight of its own."""
    largest = float(np.abs(upload.delta).max(initial=0.0))
    return largest / upload.weight if upload.weight else largest


def median_size(uploads: Sequence[Upload]) -> float | None:
    """Of a round's uploads, for the journal."""
    return float(np.median([size_of(upload) for upload in uploads])) if uploads else None


def learned_bound(lines: Sequence[dict[str, Any]], factor: float) -> float:
    """The bound that the journal's recent rounds give; infinite where there are none or ``factor`` is 0."""
    sizes = [line["median_size"] for line in lines[-_REMEMBERED:] if line.get("median_size")]
    return factor * float(np.median(sizes)) if sizes and factor > 0 else np.inf


def scaled_down(uploads: Sequence[Upload], bound: float) -> tuple[list[Upload], list[int]]:
    """Uploads none of which is greater than a bound, and the clients whose uploads were.

    After: Sun et al. (2019), Can you really backdoor federated learning?, norm bounding.
    """
    scaled, clients = list[Upload](), list[int]()
    for upload in uploads:
        size = size_of(upload)
        if size > bound:
            clients.append(upload.client)
            upload = replace(upload, delta=upload.delta * (bound / size))
        scaled.append(upload)
    return scaled, clients


def step_sizes(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.float64]:
    """How far each item's row of V moved."""
    return np.asarray(np.linalg.norm(after - before, axis=1), dtype=np.float64)


def odd_steps(lines: Sequence[dict[str, Any]], steps: NDArray[np.float64]) -> list[int]:
    """Items that moved much farther than nine of ten others in this round, or than any did in the rounds before.

    Honest rounds of MovieLens-100K stay below 2.3 times the ninth decile; one liar of 102 comes to 12 times.
    """
    moved = steps[steps > 0]
    if not len(moved):
        return []
    bound = _ODD_IN_ROUND * float(np.quantile(moved, 0.9))
    recent = [line["largest_step"] for line in lines[-_REMEMBERED:] if line.get("largest_step")]
    if len(recent) >= _AT_LEAST:
        bound = min(bound, _ODD * max(recent))
    odd = np.flatnonzero(steps > bound)
    return [int(item) for item in odd[np.argsort(-steps[odd])][:_MOST_NAMED]]
