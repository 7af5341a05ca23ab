"""Updates in whole steps, for channels that add up in a ring."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import DEVICE, Tensor, kernel, to_card
from fedrecplus.engines.fast.weighing import Weighing


@dataclass(frozen=True)
class Ring:
    """Whole steps instead of numbers, as ``parts/channel/_ring.py`` encodes updates."""

    scales: Tensor
    rounding_keys: Tensor

    @classmethod
    def of(cls, weighing: Weighing) -> Ring:
        """On the card."""
        return cls(to_card(weighing.scales), to_card(weighing.rounding_keys))

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
            draws = torch.empty_like(steps)
            draw_by_cell[(len(clients), rows)](
                clients, items, self.rounding_keys, draws, width, ROWS=rows, COLUMNS=moved.shape[2]
            )
            steps = torch.floor(steps + draws)
        else:
            steps = torch.round(steps)
        steps = torch.where((scale > 0)[:, :, None] & ~out[:, None, None], steps, 0.0)
        sent = within(weights, weighing.largest_weight).clamp(min=0.0)
        in_steps = torch.where(out, 0.0, torch.round(sent * weighing.weight_scale))
        return steps, in_steps, torch.where(out, 0.0, weights)


def within(values: Tensor, bound: float) -> Tensor:
    """Numbers clipped to a bound; what is no number is zero."""
    return torch.nan_to_num(values, nan=0.0, posinf=bound, neginf=-bound).clamp(-bound, bound)


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
