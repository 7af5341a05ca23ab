"""Items in the order of secret draws, and kept sets ascending: their order must tell nothing."""

from __future__ import annotations

import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import DEVICE, NUMBERS_AT_ONCE, Tensor, kernel
from fedrecplus.engines.cuda.drawing import client_key, mix
from fedrecplus.engines.cuda.ratings import SizeClass


def put_in_order(some: SizeClass, pseudo_indptr: Tensor, out: Tensor) -> None:
    """Each client's pseudo items ascending."""
    widest = int(pseudo_indptr.diff()[some.clients].max())
    for part in some.parts(NUMBERS_AT_ONCE // max(widest, 1)):
        table = torch.full((len(part.clients), max(widest, 1)), 2**31 - 1, dtype=torch.int32, device=DEVICE)
        copy_sets[(len(part.clients),)](part.clients, pseudo_indptr, out, table, table.shape[1], 256, True)
        table = torch.sort(table, dim=1).values
        copy_sets[(len(part.clients),)](part.clients, pseudo_indptr, out, table, table.shape[1], 256, False)


def by_draw(clients: Tensor, items: Tensor, secrets: Tensor, parts: Tensor) -> Tensor:
    """Each client's items (−1: none), a row per client, in the order of secret draws."""
    draws = torch.empty(items.shape, dtype=torch.int64, device=DEVICE)
    width = items.shape[1]
    draw_items[(len(clients), -(-width // 256))](clients, items, secrets, parts, draws, len(parts), width, BLOCK=256)
    return torch.gather(items, 1, torch.sort(draws, dim=1, stable=True).indices).contiguous()


@kernel
def draw_items(
    clients: tl.tensor,
    items: tl.tensor,
    secrets: tl.tensor,
    parts: tl.tensor,
    draws: tl.tensor,
    part_count: tl.tensor,
    width: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """A secret draw for each item, in the order of unsigned numbers; the greatest where there is none."""
    at = tl.program_id(0).to(tl.int64)
    key = client_key(secrets, tl.load(clients + at), parts)
    for number in range(2, part_count):
        key = mix(key, tl.load(parts + number).to(tl.uint64))
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = j < width
    item = tl.load(items + at * width + j, mask=there, other=-1)
    drawn = mix(key, item.to(tl.uint64)) ^ 0x8000000000000000
    drawn = tl.where(item >= 0, drawn.to(tl.int64, bitcast=True), 0x7FFFFFFFFFFFFFFF)
    tl.store(draws + at * width + j, drawn, mask=there)


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
