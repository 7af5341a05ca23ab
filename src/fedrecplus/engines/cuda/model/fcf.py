"""CUDA kernels of ``parts/model/fcf.py``: solve for clients' factors, weigh their rows of all items, add them up."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from fedrecplus.engines.cuda.card import DEVICE, NUMBERS_AT_ONCE, to_card
from fedrecplus.engines.cuda.model._solving import gathered, inverse_root, solved, wide
from fedrecplus.engines.cuda.ratings import SizeClass, table_of_rows
from fedrecplus.engines.cuda.round import Round
from fedrecplus.engines.cuda.summing import CardSums
from fedrecplus.parts.model.fcf import Settings


def train(some: Round) -> tuple[CardSums, Any]:
    """Train these clients and add up their weighted updates, rows of all items; nothing is kept on devices."""
    options: Settings = some.problem.config.model.settings
    table = some.message.V.astype(np.float64)
    gram = to_card((table.T @ table + options.regularisation * np.eye(table.shape[1])).astype(some.message.V.dtype))
    Y, sums = to_card(some.message.V), some.sums()
    every = torch.arange(len(Y), dtype=torch.int32, device=DEVICE)
    for each in some.classes:
        for part in each.parts(NUMBERS_AT_ONCE // (sums.total.numel() + each.rows * Y.shape[1])):
            numbers, _ = table_of_rows(some.rows, part, pseudo=False)
            rows, alpha = gathered(Y, numbers), options.confidence
            own = gram + alpha * torch.bmm(rows.transpose(1, 2), rows)
            x = solved(inverse_root(own), (1.0 + alpha) * rows.sum(1)[:, :, None])
            factor = -(x @ Y.T)
            place, there = numbers.clamp(min=0).to(torch.int64), numbers >= 0
            chosen = torch.zeros_like(factor).scatter_add_(1, place, there.to(factor.dtype))
            factor = torch.where(chosen > 0, (1.0 + alpha) * (1.0 + factor), factor)
            _add(sums, part, every, wide(factor[:, :, None] * x[:, None, :], sums.total.shape[1]))
    return sums, some.private.U


def _add(sums: CardSums, part: SizeClass, every: torch.Tensor, moved: torch.Tensor) -> None:
    numbers = every.expand(len(part.clients), len(every)).contiguous()
    count = torch.full((len(part.clients),), len(every), device=DEVICE)
    sums.add(part.clients, numbers, moved, count, count)
