"""From clients' updates to a cohort's sums: weights by distance, then sums by atomic additions or in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import DEVICE, Tensor, kernel, padded, power_of_two, real_type, to_card
from fedrecplus.engines.cuda.ring import Ring, within
from fedrecplus.engines.cuda.weighing import weigh_clients
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.protocol import Broadcast, Sums

_ROWS_AT_ONCE = 32
_SORTED_AT_ONCE = 16


@dataclass
class CardSums:
    """The sums of a round, as they grow."""

    total: Tensor
    per_item: Tensor
    """Σ w of each item"""
    overall: Tensor
    """Σ w"""
    step: Tensor
    """the last step, which distances are measured to"""
    step_sizes: Tensor
    """Σ step² of each row"""
    weighing: Weighing
    width: int
    deterministic: bool
    clients: int = 0
    numbers: Tensor = field(default_factory=lambda: torch.zeros(0))
    """whole_step, temperature, bound, smallest, unit: kernels would take plain numbers in 32 bits"""
    left_out: Tensor = field(default_factory=lambda: torch.zeros(0))
    clipped: Tensor = field(default_factory=lambda: torch.zeros(0))
    statistic: Tensor = field(default_factory=lambda: torch.zeros(0))
    bounds: Ring | None = None

    @classmethod
    def start(cls, message: Broadcast, weighing: Weighing, deterministic: bool, statistic: int = 0) -> CardSums:
        """Nothing added yet."""
        real = real_type(message.V.dtype)
        step = padded(to_card(message.last_step))
        exact = torch.float64
        sizes = (step.to(exact) ** 2).sum(1)
        numbers = torch.tensor(
            [0.0, weighing.temperature, weighing.bound, weighing.smallest, weighing.unit], dtype=exact, device=DEVICE
        )
        numbers[0] = sizes.sum()
        sums = torch.zeros(step.shape, dtype=exact if weighing.in_steps else real, device=DEVICE)
        return cls(
            sums,
            torch.zeros(len(step), dtype=exact, device=DEVICE),
            torch.zeros(1, dtype=exact, device=DEVICE),
            step,
            sizes,
            weighing,
            message.V.shape[1],
            deterministic,
            numbers=numbers,
            left_out=to_card(weighing.left_out),
            clipped=to_card(weighing.clipped),
            statistic=torch.zeros(statistic, dtype=exact, device=DEVICE),
            bounds=Ring.of(weighing) if weighing.in_steps else None,
        )

    def add(
        self,
        clients: Tensor,
        numbers: Tensor,
        moved: Tensor,
        rated: Tensor,
        summed: Tensor,
        weights: Tensor | None = None,
    ) -> Tensor:
        """Weigh the updates of some clients, a table of rows each, and add them up; returns their weights.

        ``numbers`` are the rows' items, −1 for none; the first ``summed`` rows of each client count. Weights are 0 for
        clients that are left out of a ring's sums. Rules that say their weights in numbers need give none.
        """
        weights = self._weights(numbers, moved, summed) if weights is None else weights.to(torch.float64)
        if self.bounds is not None:
            summed = rated if self.weighing.marks else summed
            moved, row_weights, weights = self.bounds.steps(
                self.weighing, self.left_out, self.clipped, self.width, clients, numbers, moved, weights, summed
            )
        else:
            row_weights = weights
        self.clients += len(numbers)
        self.overall += row_weights.sum()
        self._add_rows(numbers, moved, row_weights, summed)
        return weights

    def _weights(self, numbers: Tensor, moved: Tensor, summed: Tensor) -> Tensor:
        """Each client's weight."""
        count, rows = numbers.shape
        weights = torch.ones(count, dtype=torch.float64, device=DEVICE)
        if self.weighing.distances:
            weigh_clients[(count,)](
                numbers, moved, summed, self.step, self.step_sizes, self.numbers, weights,
                ROWS=rows, BLOCK=min(power_of_two(rows), _ROWS_AT_ONCE), COLUMNS=moved.shape[2],
                WHICH=self.weighing.rows,
            )  # fmt: skip
        return weights

    def _add_rows(self, numbers: Tensor, moved: Tensor, weights: Tensor, summed: Tensor) -> None:
        count, rows = numbers.shape
        if not self.deterministic:
            block = min(power_of_two(rows), _ROWS_AT_ONCE)
            add_rows[(count, -(-rows // block))](
                numbers, moved, weights, summed, self.total, self.per_item,
                ROWS=rows, BLOCK=block, COLUMNS=moved.shape[2], STEPS=self.weighing.in_steps,
            )  # fmt: skip
            return
        places = torch.arange(rows, device=DEVICE)
        items = torch.where(places[None, :] < summed[:, None], numbers, -1).reshape(-1)
        items, order = torch.sort(items, stable=True)
        starts = torch.searchsorted(items, torch.arange(len(self.total) + 1, device=DEVICE, dtype=items.dtype))
        add_in_order[(len(self.total),)](
            starts, order, moved, weights, self.total, self.per_item,
            ROWS=rows, BLOCK=_SORTED_AT_ONCE, COLUMNS=moved.shape[2], STEPS=self.weighing.in_steps,
        )  # fmt: skip

    def add_statistic(self, clients: Tensor, weights: Tensor, statistic: Any) -> None:
        """Add clients' statistics times their weights; clipped and in whole steps where the sums are."""
        if len(self.statistic) == 0:
            return
        values = weights[:, None] * statistic.to(torch.float64)
        if self.weighing.in_steps:
            beyond = ~(values.abs() <= self.weighing.largest_statistic).all(1) & (weights != 0)
            self.clipped[clients] |= beyond.to(self.clipped.dtype)
            values = torch.where((weights != 0)[:, None], within(values, self.weighing.largest_statistic), 0.0)
            values = torch.round(values * self.weighing.statistic_scale)
        self.statistic += values.sum(0)

    def on_card(self) -> Sums:
        """The sums, for a server whose tables are on the card."""
        total: Any = self.total[:, : self.width]
        weights: Any = self.per_item
        statistic = self.statistic.cpu().numpy() if len(self.statistic) else np.zeros(0)
        return Sums(total, weights, float(self.overall.item()), self.clients, statistic=statistic)

    def on_host(self) -> Sums:
        """The sums, for the server."""
        if self.bounds is not None:
            self.weighing.clipped[:] = self.clipped.cpu().numpy()
        total = self.total[:, : self.width].cpu().numpy()
        return Sums(
            np.ascontiguousarray(total),
            self.per_item.cpu().numpy(),
            float(self.overall.item()),
            self.clients,
            statistic=self.statistic.cpu().numpy(),
        )


@kernel
def add_rows(
    items: tl.tensor,
    moved: tl.tensor,
    weights: tl.tensor,
    summed: tl.tensor,
    total: tl.tensor,
    per_item: tl.tensor,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    STEPS: tl.constexpr,
) -> None:
    """Add w·moved to the rows' sums and w to their weights, by atomic additions: in any order."""
    at = tl.program_id(0).to(tl.int64)
    n, weight = tl.load(summed + at), tl.load(weights + at)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    c = tl.arange(0, COLUMNS)
    present = (j < n) & (j < ROWS)
    row = tl.load(items + at * ROWS + j, mask=present, other=0).to(tl.int64)
    inside = present[:, None]
    move = tl.load(moved + (at * ROWS + j)[:, None] * COLUMNS + c[None, :], mask=inside, other=0.0)
    if not STEPS:  # steps have their weights in them
        move = (weight * move).to(move.dtype)
    tl.atomic_add(total + row[:, None] * COLUMNS + c[None, :], move, mask=inside, sem="relaxed")
    tl.atomic_add(per_item + row, weight + tl.zeros((BLOCK,), dtype=tl.float64), mask=present, sem="relaxed")


@kernel
def add_in_order(
    starts: tl.tensor,
    order: tl.tensor,
    moved: tl.tensor,
    weights: tl.tensor,
    total: tl.tensor,
    per_item: tl.tensor,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    STEPS: tl.constexpr,
) -> None:
    """The same, an item at a time: its rows in the order of clients."""
    item = tl.program_id(0).to(tl.int64)
    first, last = tl.load(starts + item), tl.load(starts + item + 1)
    c = tl.arange(0, COLUMNS)
    table = total + item * COLUMNS + c
    row_sum = tl.load(table)
    all_weights = tl.load(per_item + item)
    for start in range(first, last, BLOCK):
        j = start + tl.arange(0, BLOCK)
        present = j < last
        place = tl.load(order + j, mask=present, other=0)
        weight = tl.load(weights + place // ROWS, mask=present, other=0.0)
        inside = present[:, None]
        move = tl.load(moved + place[:, None] * COLUMNS + c[None, :], mask=inside, other=0.0)
        if not STEPS:
            move = (weight[:, None] * move).to(move.dtype)
        row_sum += tl.sum(move, axis=0)
        all_weights += tl.sum(weight, axis=0)
    tl.store(table, row_sum)
    tl.store(per_item + item, all_weights)
