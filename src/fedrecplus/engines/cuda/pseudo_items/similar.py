"""CUDA kernel of ``parts/pseudo_items/similar.py``."""

from __future__ import annotations

import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import DEVICE, NUMBERS_AT_ONCE, Tensor, kernel, to_card
from fedrecplus.engines.cuda.pseudo_items._order import copy_sets, put_in_order
from fedrecplus.engines.cuda.round import Round
from fedrecplus.engines.fast.likeness import LARGEST_TABLE
from fedrecplus.parts.pseudo_items import SetSettings
from fedrecplus.parts.similarity import DECIMALS

_RATED = -(1 << 62)
_ITEMS_AT_ONCE = 256


def fits(some: Round) -> bool:
    """While the table of all similarities is small; long neighbour lists are merged on the processor."""
    return some.rows.ratings.item_count <= LARGEST_TABLE


def select(some: Round, options: SetSettings, key: int, out: Tensor) -> None:
    """The top k unrated items by their greatest cosine with a rated one; ties go to the lower item number."""
    known, features = some.rows.ratings, to_card(some.message.features)
    ranks = torch.round(features @ features.T * 10.0**DECIMALS).to(torch.int64)
    items, wanted = known.item_count, known.pseudo_indptr.diff()
    for each in some.classes:
        for part in each.parts(NUMBERS_AT_ONCE // (4 * items)):
            scores = torch.empty((len(part.clients), items), dtype=torch.int64, device=DEVICE)
            best_likeness[(len(part.clients), -(-items // _ITEMS_AT_ONCE))](
                part.clients, known.indptr, known.items, ranks, scores, items, BLOCK=_ITEMS_AT_ONCE
            )
            scores.scatter_(1, _rated(part.clients, known.indptr, known.items, items), _RATED)
            most = int(wanted[part.clients].max())
            best = torch.topk(scores, min(most, items), dim=1).values
            chosen = (items - 1 - torch.remainder(best, items)).to(torch.int32).contiguous()
            copy_sets[(len(part.clients),)](part.clients, known.pseudo_indptr, out, chosen, chosen.shape[1], 256, False)
        if not options.redraw:
            put_in_order(each, known.pseudo_indptr, out)


def _rated(clients: Tensor, indptr: Tensor, items: Tensor, item_count: int) -> Tensor:
    """The rated items of some clients, a row each; the first again where there are fewer."""
    first, counts = indptr[clients], indptr.diff()[clients]
    places = torch.arange(int(counts.max()), device=DEVICE)[None, :]
    places = first[:, None] + torch.where(places < counts[:, None], places, 0)
    return items.to(torch.int32)[places].to(torch.int64)


@kernel
def best_likeness(
    clients: tl.tensor,
    indptr: tl.tensor,
    items: tl.tensor,
    ranks: tl.tensor,
    scores: tl.tensor,
    item_count: tl.tensor,
    BLOCK: tl.constexpr,
) -> None:
    """The greatest likeness of some items with a client's rated ones, and the item: one number to rank by."""
    at = tl.program_id(0).to(tl.int64)
    client = tl.load(clients + at)
    other = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = other < item_count
    best = tl.full((BLOCK,), -(1 << 40), tl.int64)
    for place in range(tl.load(indptr + client), tl.load(indptr + client + 1)):
        row = tl.load(items + place).to(tl.int64) * item_count
        best = tl.maximum(best, tl.load(ranks + row + other, mask=there, other=0))
    tl.store(scores + at * item_count + other, best * item_count + (item_count - 1 - other), mask=there)
