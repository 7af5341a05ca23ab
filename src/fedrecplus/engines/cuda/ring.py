"""Updates in whole steps, for channels that add up in a ring."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from fedrecplus.arrays import uniform
from fedrecplus.engines.cuda.card import DEVICE, Tensor, to_card
from fedrecplus.engines.fast.weighing import Weighing


@dataclass(frozen=True)
class Ring:
    """Whole steps instead of numbers, as ``parts/channel/_ring.py`` encodes updates."""

    scales: Tensor
    rounding_keys: Tensor
    """with a sign, as torch shifts them"""

    @classmethod
    def of(cls, weighing: Weighing) -> Ring:
        """On the card."""
        return cls(to_card(weighing.scales), to_card(weighing.rounding_keys.view(np.int64)))

    def steps(
        self,
        weighing: Weighing,
        left_out: Tensor,
        clipped: Tensor,
        width: int,
        clients: Tensor,
        numbers: Tensor,
        moved: Tensor,
        weights: Tensor,
        summed: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Updates and weights in whole steps, and the weights; zero for clients that are ``left_out``.

        Numbers beyond the bounds are clipped. See ``add_in_steps`` in ``engines/fast/weighing.py``.
        """
        rows = numbers.shape[1]
        present = torch.arange(rows, device=DEVICE)[None, :] < summed[:, None]
        items = torch.where(present, numbers, 0).to(torch.int64)
        updates = torch.where(present[:, :, None], weights[:, None, None] * moved.to(torch.float64), 0.0)
        largest = updates.abs().flatten(1).amax(1)
        fits = (largest <= weighing.largest_move) & (weights >= 0) & (weights <= weighing.largest_weight)
        out = left_out[clients] != 0
        clipped[clients] |= (~fits & ~out).to(clipped.dtype)
        scale = torch.where(present, self.scales[items], 0.0)
        steps = within(updates, weighing.largest_move) * scale[:, :, None]
        if weighing.by_chance:
            cells = items[:, :, None] * width + torch.arange(moved.shape[2], device=DEVICE)
            steps = torch.floor(steps + uniform(self.rounding_keys[clients][:, None], cells))
        else:
            steps = torch.round(steps)
        steps = torch.where((scale > 0)[:, :, None] & ~out[:, None, None], steps, 0.0)
        sent = within(weights, weighing.largest_weight).clamp(min=0.0)
        in_steps = torch.where(out, 0.0, torch.round(sent * weighing.weight_scale))
        return steps, in_steps, torch.where(out, 0.0, weights)


def within(values: Tensor, bound: float) -> Tensor:
    """Numbers clipped to a bound; what is no number is zero."""
    return torch.nan_to_num(values, nan=0.0, posinf=bound, neginf=-bound).clamp(-bound, bound)
