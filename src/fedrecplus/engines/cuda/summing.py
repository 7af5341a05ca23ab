"""From clients' updates to a cohort's sums, by atomic additions or in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import DEVICE, Tensor, kernel, padded, power_of_two, real_type, to_card
from fedrecplus.engines.cuda.fused_steps import weight_at
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.protocol import Broadcast, Sums

_ROWS_AT_ONCE = 32
_SORTED_AT_ONCE = 16


def within(values: Tensor, bound: float) -> Tensor:
    """Numbers clipped to a bound; what is no number is zero."""
    return torch.nan_to_num(values, nan=0.0, posinf=bound, neginf=-bound).clamp(-bound, bound)


class KernelTarget(NamedTuple):
    """What distances are measured to."""

    step: Tensor
    step_sizes: Tensor
    numbers: Tensor


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
    scales: Tensor = field(default_factory=lambda: torch.zeros(0))
    rounding_keys: Tensor = field(default_factory=lambda: torch.zeros(0))
    """where sums are of whole steps, as ``parts/channel/_ring.py`` encodes updates"""

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
            scales=to_card(weighing.scales),
            rounding_keys=to_card(weighing.rounding_keys),
        )

    @property
    def target(self) -> KernelTarget:
        """What distances are measured to."""
        return KernelTarget(self.step, self.step_sizes, self.numbers)

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
        row_weights = weights
        if self.weighing.in_steps:
            summed = rated if self.weighing.marks else summed
            moved, row_weights, weights = self._in_steps(clients, numbers, moved, weights, summed)
        self.clients += len(numbers)
        self.overall += row_weights.sum()
        self._add_rows(numbers, moved, row_weights, summed)
        return weights

    def _weights(self, numbers: Tensor, moved: Tensor, summed: Tensor) -> Tensor:
        """Each client's weight.

        Measured on an H200: by the rule's own file in torch a round of ``mf`` in a fixed order takes 180 ms more than
        without distances, and 5 with this kernel.
        """
        count, rows = numbers.shape
        weights = torch.ones(count, dtype=torch.float64, device=DEVICE)
        if self.weighing.distances:
            weigh_clients[(count,)](
                numbers, moved, summed, self.target, weights, ROWS=rows,
                BLOCK=min(power_of_two(rows), _ROWS_AT_ONCE), COLUMNS=moved.shape[2], WHICH=self.weighing.rows,
            )  # fmt: skip
        return weights

    def _in_steps(
        self, clients: Tensor, numbers: Tensor, moved: Tensor, weights: Tensor, summed: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Updates and weights in whole steps, and the weights; zero for clients that are ``left_out``.

        Numbers beyond the bounds are clipped. See ``add_in_steps`` in ``engines/fast/weighing.py``.
        """
        rows = numbers.shape[1]
        present = torch.arange(rows, device=DEVICE)[None, :] < summed[:, None]
        items = torch.where(present, numbers, 0).to(torch.int64)
        updates = torch.where(present[:, :, None], weights[:, None, None] * moved.to(torch.float64), 0.0)
        largest = updates.abs().flatten(1).amax(1)
        fits = (largest <= self.weighing.largest_move) & (weights >= 0) & (weights <= self.weighing.largest_weight)
        out = self.left_out[clients] != 0
        self.clipped[clients] |= (~fits & ~out).to(self.clipped.dtype)
        scale = torch.where(present, self.scales[items], 0.0)
        steps = within(updates, self.weighing.largest_move) * scale[:, :, None]
        if self.weighing.by_chance:
            draws = torch.empty_like(steps)
            draw_by_cell[(len(clients), rows)](
                clients, items, self.rounding_keys, draws, self.width, ROWS=rows, COLUMNS=moved.shape[2]
            )
            steps = torch.floor(steps + draws)
        else:
            steps = torch.round(steps)
        steps = torch.where((scale > 0)[:, :, None] & ~out[:, None, None], steps, 0.0)
        sent = within(weights, self.weighing.largest_weight).clamp(min=0.0)
        in_steps = torch.where(out, 0.0, torch.round(sent * self.weighing.weight_scale))
        return steps, in_steps, torch.where(out, 0.0, weights)

    def _add_rows(self, numbers: Tensor, moved: Tensor, weights: Tensor, summed: Tensor) -> None:
        """Atomic additions in any order, or each item's rows in the order of clients.

        Measured on an H200 beside torch's ``index_add_``, clients × rows as in ``benchmarks.cuda speed``: a round of
        ``mf`` in a fixed order takes 32 ms, with that 140. Rounds of ``joint`` took 235 with that on a busy processor,
        131 without on an idle one.
        """
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
        if self.weighing.in_steps:
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
def weigh_clients(
    items: tl.tensor,
    moved: tl.tensor,
    summed: tl.tensor,
    target: tl.tuple,
    weights: tl.tensor,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    WHICH: tl.constexpr,
) -> None:
    """Each client's weight, by the distance of its rows from the last step."""
    at = tl.program_id(0).to(tl.int64)
    n = tl.load(summed + at)
    c = tl.arange(0, COLUMNS)
    distance = tl.zeros((BLOCK,), dtype=tl.float64)
    own_step = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(0, ROWS, BLOCK):
        j = start + tl.arange(0, BLOCK)
        present = (j < n) & (j < ROWS)
        row = tl.load(items + at * ROWS + j, mask=present, other=0).to(tl.int64)
        inside = present[:, None]
        move = tl.load(moved + (at * ROWS + j)[:, None] * COLUMNS + c[None, :], mask=inside, other=0.0)
        gap = move - tl.load(target.step + row[:, None] * COLUMNS + c[None, :], mask=inside, other=0.0)
        distance += tl.sum(gap * gap, axis=1).to(tl.float64)
        own_step += tl.load(target.step_sizes + row, mask=present, other=0.0)
    tl.store(weights + at, weight_at(tl.sum(distance, axis=0), tl.sum(own_step, axis=0), n, target, WHICH))


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


@kernel
def draw_by_cell(
    clients: tl.tensor,
    items: tl.tensor,
    keys: tl.tensor,
    draws: tl.tensor,
    width: tl.tensor,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    """The draws that round moves up or down, one per number of a row."""
    at, j = tl.program_id(0).to(tl.int64), tl.program_id(1)
    key = tl.load(keys + tl.load(clients + at))
    item = tl.load(items + at * ROWS + j)
    c = tl.arange(0, COLUMNS)
    drawn = to_unit(mix(key, (item * width + c).to(tl.uint64)))
    tl.store(draws + (at * ROWS + j) * COLUMNS + c, drawn)


@kernel
def mix(key: tl.tensor, index: tl.tensor) -> tl.tensor:
    """Hash a key with one index into a new key. See ``randomness.mix``."""
    z = key + (index + 1) * 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@kernel
def to_unit(key: tl.tensor) -> tl.tensor:
    """A key as a float64, uniform on [0, 1). See ``randomness.to_unit``."""
    return (key >> 11).to(tl.float64) * (1.0 / 9007199254740992.0)
