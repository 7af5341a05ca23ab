"""Kept sets ascend: they are compared, and their order must tell nothing."""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import DEVICE, NUMBERS_AT_ONCE, Tensor, kernel
from fedrecplus.engines.cuda.ratings import SizeClass


def put_in_order(some: SizeClass, pseudo_indptr: Tensor, out: Tensor) -> None:
    """Each client's pseudo items ascending."""
    widest = int(pseudo_indptr.diff()[some.clients].max())
    for part in some.parts(NUMBERS_AT_ONCE // max(widest, 1)):
        table = torch.full((len(part.clients), max(widest, 1)), 2**31 - 1, dtype=torch.int32, device=DEVICE)
        copy_sets[(len(part.clients),)](part.clients, pseudo_indptr, out, table, table.shape[1], 256, True)
        table = torch.sort(table, dim=1).values
        copy_sets[(len(part.clients),)](part.clients, pseudo_indptr, out, table, table.shape[1], 256, False)


@kernel
def copy_sets(
    clients: tl.tensor,
    pseudo_indptr: tl.tensor,
    items: tl.tensor,
    table: tl.tensor,
    width: tl.tensor,
    BLOCK: tl.constexpr,
    TO_TABLE: tl.constexpr,
) -> None:
    """Each client's pseudo items to a row of a table, or back."""
    at = tl.program_id(0).to(tl.int64)
    client = tl.load(clients + at)
    first, last = tl.load(pseudo_indptr + client), tl.load(pseudo_indptr + client + 1)
    for start in range(0, last - first, BLOCK):
        j = start + tl.arange(0, BLOCK)
        there = j < last - first
        if TO_TABLE:
            tl.store(table + at * width + j, tl.load(items + first + j, mask=there), mask=there)
        else:
            tl.store(items + first + j, tl.load(table + at * width + j, mask=there), mask=there)
