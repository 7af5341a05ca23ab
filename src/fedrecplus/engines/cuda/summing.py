"""From clients' updates to a cohort's sums, by atomic additions or in a fixed order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from fedrecplus.arrays import uniform
from fedrecplus.engines.cuda.card import DEVICE, Tensor, padded, real_type, to_card
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.protocol import Broadcast, Sums


def within(values: Tensor, bound: float) -> Tensor:
    """Numbers clipped to a bound; what is no number is zero."""
    return torch.nan_to_num(values, nan=0.0, posinf=bound, neginf=-bound).clamp(-bound, bound)


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
    """where sums are of whole steps, as ``parts/channel/_ring.py`` encodes updates; keys have a sign here"""

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
            rounding_keys=to_card(weighing.rounding_keys.view(np.int64)),
        )

    def add(
        self, clients: Tensor, numbers: Tensor, moved: Tensor, weights: Tensor, rated: Tensor, summed: Tensor
    ) -> Tensor:
        """Add up the updates of some clients, a table of rows each, by their weights; returns the weights.

        ``numbers`` are the rows' items, −1 for none; the first ``summed`` rows of each client count. Weights are 0 for
        clients that are left out of a ring's sums.
        """
        row_weights = weights = weights.to(torch.float64)
        if self.weighing.in_steps:
            summed = rated if self.weighing.marks else summed
            moved, row_weights, weights = self._in_steps(clients, numbers, moved, weights, summed)
        self.clients += len(numbers)
        self.overall += row_weights.sum()
        present = torch.arange(numbers.shape[1], device=DEVICE) < summed[:, None]
        rows, of_rows = moved[present], row_weights[:, None].expand(present.shape)[present]
        if not self.weighing.in_steps:  # steps have their weights in them
            rows *= of_rows[:, None].to(rows.dtype)
        self._add_rows(numbers[present], rows, of_rows)
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
            cells: Any = items[:, :, None] * self.width + torch.arange(moved.shape[2], device=DEVICE)
            draws: Any = uniform(self.rounding_keys[clients][:, None], cells)
            steps = torch.floor(steps + draws)
        else:
            steps = torch.round(steps)
        steps = torch.where((scale > 0)[:, :, None] & ~out[:, None, None], steps, 0.0)
        sent = within(weights, self.weighing.largest_weight).clamp(min=0.0)
        in_steps = torch.where(out, 0.0, torch.round(sent * self.weighing.weight_scale))
        return steps, in_steps, torch.where(out, 0.0, weights)

    def _add_rows(self, items: Tensor, moved: Tensor, weights: Tensor) -> None:
        """Add rows to their items' sums: in any order or, where bits count, in that of the rows."""
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(before or self.deterministic)
        try:
            self.total[:, : moved.shape[1]].index_add_(0, items, moved.to(self.total.dtype))
            self.per_item.index_add_(0, items, weights)
        finally:
            torch.use_deterministic_algorithms(before)

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
