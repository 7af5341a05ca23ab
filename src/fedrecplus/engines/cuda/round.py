"""What the kernels of a round share."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
import triton.language as tl
from numpy.typing import NDArray

from fedrecplus.engines.cuda.card import DEVICE, Tensor, kernel, to_card
from fedrecplus.engines.cuda.ratings import CardRows, SizeClass, size_classes
from fedrecplus.engines.cuda.summing import CardSums
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState, RoundReport
from fedrecplus.protocol import Broadcast

_ROWS_AT_ONCE = 256


@dataclass
class Cohort:
    """The clients of a round in size classes, and what is the same in all rounds of these clients."""

    clients: NDArray[np.int64]
    classes: list[SizeClass]
    rated_counts: dict[int, Tensor] = field(default_factory=dict)
    """rows of a size class → how often each item is rated by its clients"""
    report: RoundReport | None = None
    """what a round of these clients costs"""

    @classmethod
    def of(cls, clients: NDArray[np.int64], counts: Tensor) -> Cohort:
        """Sort clients into size classes, by their numbers of rows."""
        return cls(clients, size_classes(clients, counts))


@dataclass(frozen=True)
class Round:
    """The clients' half of a round."""

    problem: Problem
    private: PrivateState
    message: Broadcast
    rows: CardRows
    cohort: Cohort
    weighing: Weighing = field(default_factory=Weighing)
    deterministic: bool = False

    @property
    def classes(self) -> list[SizeClass]:
        """The round's clients."""
        return self.cohort.classes

    def sums(self, statistic: int = 0) -> CardSums:
        """Sums with nothing in them."""
        return CardSums.start(self.message, self.weighing, self.deterministic, statistic)

    @functools.cached_property
    def told(self) -> Broadcast:
        """The broadcast on the card."""
        return on_card(self.message)

    def row_counts(self, classes: list[SizeClass]) -> Tensor:
        """How many clients of these size classes upload each item."""
        known = self.rows.ratings
        counts = torch.zeros(known.item_count, dtype=torch.int32, device=DEVICE)
        for size_class in classes:
            if size_class.rows not in self.cohort.rated_counts:
                self.cohort.rated_counts[size_class.rows] = _counted(
                    size_class, known.indptr, known.items, known.item_count
                )
            counts += self.cohort.rated_counts[size_class.rows]
            if self.rows.has_pseudo and not self.weighing.rated_rows_only:
                counts += _counted(size_class, known.pseudo_indptr, self.rows.pseudo_items, known.item_count)
        return counts


def on_card(message: Broadcast) -> Broadcast:
    """The broadcast with its arrays on the card."""
    arrays: Any = {name: to_card(getattr(message, name)) for name in ("V", "last_step", "features", "dense")}
    return replace(message, **arrays)


def _counted(size_class: SizeClass, indptr: Tensor, items: Tensor, item_count: int) -> Tensor:
    counts = torch.zeros(item_count, dtype=torch.int32, device=DEVICE)
    count_rows[(len(size_class.clients),)](
        size_class.clients, indptr, items, counts, BLOCK=min(size_class.rows, _ROWS_AT_ONCE)
    )
    return counts


@kernel
def count_rows(clients: tl.tensor, indptr: tl.tensor, items: tl.tensor, counts: tl.tensor, BLOCK: tl.constexpr) -> None:
    """Count each client's items."""
    client = tl.load(clients + tl.program_id(0))
    first, last = tl.load(indptr + client), tl.load(indptr + client + 1)
    for start in range(first, last, BLOCK):
        j = start + tl.arange(0, BLOCK)
        present = j < last
        row = tl.load(items + j, mask=present, other=0).to(tl.int64)
        tl.atomic_add(counts + row, tl.full((BLOCK,), 1, tl.int32), mask=present, sem="relaxed")
