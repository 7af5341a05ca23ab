"""CUDA kernel of ``parts/virtual_ratings/user_average.py``."""

from __future__ import annotations

from typing import Any

import triton.language as tl

from fedrecplus.engines.cuda.card import Tensor, kernel
from fedrecplus.engines.cuda.round import Round


def fill(some: Round, options: Any, key: int, out: Tensor) -> bool:
    """The mean rating of the round's clients."""
    known = some.rows.ratings
    for each in some.classes:
        user_average[(len(each.clients),)](
            each.clients, known.indptr, known.codes, known.levels, known.pseudo_indptr, out, BLOCK=min(each.rows, 256)
        )
    return True


@kernel
def user_average(
    clients: tl.tensor,
    indptr: tl.tensor,
    codes: tl.tensor,
    levels: tl.tensor,
    pseudo_indptr: tl.tensor,
    out: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """The client's mean rating, for each of its pseudo items."""
    client = tl.load(clients + tl.program_id(0))
    first, last = tl.load(indptr + client), tl.load(indptr + client + 1)
    total = tl.zeros((BLOCK,), dtype=tl.float64)
    for start in range(first, last, BLOCK):
        there = start + tl.arange(0, BLOCK) < last
        code = tl.load(codes + start + tl.arange(0, BLOCK), mask=there, other=0).to(tl.int64)
        total += tl.where(there, tl.load(levels + code).to(tl.float64), 0.0)
    mean = tl.sum(total, axis=0) / (last - first)
    first, last = tl.load(pseudo_indptr + client), tl.load(pseudo_indptr + client + 1)
    for start in range(first, last, BLOCK):
        place = start + tl.arange(0, BLOCK)
        tl.store(out + place, mean + tl.zeros((BLOCK,), dtype=tl.float64), mask=place < last)
