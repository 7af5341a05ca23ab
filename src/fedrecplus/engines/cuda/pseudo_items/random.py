"""CUDA kernel of ``parts/pseudo_items/random.py``."""

from __future__ import annotations

import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import DEVICE, RESIDENT, Tensor, kernel
from fedrecplus.engines.cuda.drawing import client_key, key_parts, mix, to_unit
from fedrecplus.engines.cuda.pseudo_items._order import put_in_order
from fedrecplus.engines.cuda.round import Round
from fedrecplus.parts.pseudo_items import SetSettings

_STAMP = 1 << 40
"""draws of one client are fewer than this"""


def fits(some: Round) -> bool:
    """It always does."""
    return True


def select(some: Round, options: SetSettings, key: int, out: Tensor) -> None:
    """Unrated items in a keyed sequence of draws, for the round's clients."""
    known = some.rows.ratings
    for each in some.classes:
        programs = min(RESIDENT, len(each.clients))
        taken = torch.zeros((programs, known.item_count), dtype=torch.int64, device=DEVICE)
        draw[(programs,)](
            each.clients, len(each.clients), known.indptr, known.items, known.pseudo_indptr, known.secrets, taken, out,
            key_parts("pseudo-items", key), known.item_count, STAMP=_STAMP, BLOCK=min(each.rows, 1024),
        )  # fmt: skip
        if not options.redraw:
            put_in_order(each, known.pseudo_indptr, out)


@kernel
def draw(
    clients: tl.tensor,
    client_count: tl.tensor,
    indptr: tl.tensor,
    items: tl.tensor,
    pseudo_indptr: tl.tensor,
    secrets: tl.tensor,
    taken: tl.tensor,
    out: tl.tensor,
    parts: tl.tensor,
    item_count: tl.tensor,
    STAMP: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:
    """Every program takes one client after the other; ``taken`` says who took an item, and with which draw.

    A block of draws is made at once. Of two draws of the same item the earlier one counts: each puts the client's stamp
    less its number into ``taken``, and the greatest stays. Rated items have a stamp before all draws.
    """
    own_taken = taken + tl.program_id(0).to(tl.int64) * item_count
    block = tl.arange(0, BLOCK)
    for at in range(tl.program_id(0), client_count, tl.num_programs(0)):
        client = tl.load(clients + at)
        stamp = (client * 0 + at + 2) * STAMP
        first, last = tl.load(indptr + client), tl.load(indptr + client + 1)
        for start in range(first, last, BLOCK):
            there = start + block < last
            item = tl.load(items + start + block, mask=there, other=0).to(tl.int64)
            tl.store(own_taken + item, tl.full((BLOCK,), 0, tl.int64) + stamp, mask=there)
        to = tl.load(pseudo_indptr + client)
        wanted = tl.load(pseudo_indptr + client + 1) - to
        key = client_key(secrets, client, parts)
        found = wanted * 0
        drawn = wanted * 0
        tl.debug_barrier()
        while found < wanted:
            draws = drawn + block
            item = (to_unit(mix(key, draws.to(tl.uint64))) * item_count).to(tl.int64)
            own = stamp - 1 - draws
            tl.atomic_max(own_taken + item, own, sem="relaxed")
            tl.debug_barrier()
            is_new = tl.load(own_taken + item) == own
            place = found + tl.cumsum(is_new.to(tl.int64), axis=0) - 1
            tl.store(out + to + place, item.to(tl.int32), mask=is_new & (place < wanted))
            found += tl.sum(is_new.to(tl.int64), axis=0)
            drawn += BLOCK
            tl.debug_barrier()
