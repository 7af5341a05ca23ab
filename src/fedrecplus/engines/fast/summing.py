"""From the chunks of a cohort to its sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.rows import PseudoRows
from fedrecplus.engines.problem import Problem
from fedrecplus.protocol import Sums


def add_up(parts: Sequence[tuple[Any, Any, float]], V: NDArray[Any], clients: int, in_steps: bool = False) -> Sums:
    """The sums of all chunks, in order."""
    total, per_item, overall = empty_sums(V, in_steps), np.zeros(len(V)), 0.0
    for part_total, part_per_item, part_overall in parts:
        total += part_total
        per_item += part_per_item
        overall += part_overall
    return Sums(total, per_item, overall, clients)


def empty_sums(V: NDArray[Any], in_steps: bool) -> NDArray[Any]:
    """A table to add updates to: steps are whole numbers that 32 bits can't hold, and 64 can."""
    return np.zeros(V.shape) if in_steps else np.zeros_like(V)


def items_of(problem: Problem, pseudo: PseudoRows, client: int) -> NDArray[np.int64]:
    """A client's rated and pseudo items together, ascending; all items, where the model uploads all."""
    if problem.config.model.ALL_ITEMS:
        return np.arange(problem.ratings.item_count)
    rated = problem.ratings.items[problem.ratings.indptr[client] : problem.ratings.indptr[client + 1]]
    unrated = pseudo.items[pseudo.indptr[client] : pseudo.indptr[client + 1]]
    return np.sort(np.concatenate([rated.astype(np.int64), unrated.astype(np.int64)]))
