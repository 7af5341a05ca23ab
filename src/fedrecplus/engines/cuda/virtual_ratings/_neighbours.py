"""Ratings of similar items: see ``parts/virtual_ratings/nearest.py``, ``weighted.py`` and ``drawn.py``."""

from __future__ import annotations

import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import DEVICE, Tensor, kernel, padded, power_of_two, to_card
from fedrecplus.engines.cuda.drawing import client_key, key_parts, mix, to_unit
from fedrecplus.engines.cuda.likeness import likeness
from fedrecplus.engines.cuda.round import Round
from fedrecplus.parts.similarity import DECIMALS

NEAREST, WEIGHTED, DRAWN = 0, 1, 2
_NUMBERS_AT_ONCE = 1 << 10


def from_similar(some: Round, which: int, key: int, out: Tensor, temperature: float = 1.0, width: float = 1.0) -> bool:
    """Fill by the likeness of pseudo items and rated ones."""
    known, features = some.rows.ratings, padded(to_card(some.message.features))
    averages = to_card(some.message.public.averages())
    numbers = torch.tensor([10.0**DECIMALS, temperature, width], dtype=torch.float64, device=DEVICE)
    block = max(4, _NUMBERS_AT_ONCE // features.shape[1])
    for each in some.classes:
        from_neighbours[(len(each.clients), -(-each.rows // block))](
            each.clients, known.indptr, known.items, known.codes, known.levels, known.pseudo_indptr,
            some.rows.pseudo_items, known.secrets, features, averages, numbers, key_parts("drawn", key), out,
            BLOCK=power_of_two(block), COLUMNS=features.shape[1], WHICH=which,
        )  # fmt: skip
    return True


@kernel
def from_neighbours(
    clients: tl.tensor,
    indptr: tl.tensor,
    items: tl.tensor,
    codes: tl.tensor,
    levels: tl.tensor,
    pseudo_indptr: tl.tensor,
    pseudo_items: tl.tensor,
    secrets: tl.tensor,
    features: tl.tensor,
    averages: tl.tensor,
    numbers: tl.tensor,
    parts: tl.tensor,
    out: tl.tensor,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    WHICH: tl.constexpr,
) -> None:
    """Some places of one client: its rated items in turn, each compared with all of these places."""
    client = tl.load(clients + tl.program_id(0))
    first, last = tl.load(indptr + client), tl.load(indptr + client + 1)
    scale, temperature, width = tl.load(numbers), tl.load(numbers + 1), tl.load(numbers + 2)
    place = tl.load(pseudo_indptr + client) + tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    there = place < tl.load(pseudo_indptr + client + 1)
    c = tl.arange(0, COLUMNS)
    item = tl.load(pseudo_items + place, mask=there, other=0).to(tl.int64)
    rows = tl.load(features + item[:, None] * COLUMNS + c[None, :], mask=there[:, None], other=0.0)
    total = tl.zeros((BLOCK,), dtype=tl.float64)
    if WHICH == 0:
        best = tl.full((BLOCK,), -2.0, tl.float64)
        for at in range(first, last):
            like = likeness(rows, tl.load(features + tl.load(items + at).to(tl.int64) * COLUMNS + c), scale)
            rating = tl.load(levels + tl.load(codes + at).to(tl.int64)).to(tl.float64)
            total = tl.where(like > best, rating, total)
            best = tl.maximum(best, like)
    elif WHICH == 1:
        weights = tl.zeros((BLOCK,), dtype=tl.float64)
        sum_of_ratings = tl.zeros((BLOCK,), dtype=tl.float64)
        for at in range(first, last):
            like = likeness(rows, tl.load(features + tl.load(items + at).to(tl.int64) * COLUMNS + c), scale)
            rating = tl.load(levels + tl.load(codes + at).to(tl.int64)).to(tl.float64)
            like = tl.maximum(like, 0.0)
            total += like * rating
            weights += like
            sum_of_ratings += rating
        some = weights > 0.0
        total = tl.where(some, total / tl.where(some, weights, 1.0), sum_of_ratings / (last - first))
    else:
        average = tl.load(averages + item)
        for at in range(first, last):
            other = tl.load(items + at).to(tl.int64)
            like = likeness(rows, tl.load(features + other * COLUMNS + c), scale)
            apart = (average - tl.load(averages + other)) / width
            total += tl.exp((like - 1.0) / temperature - 0.5 * apart * apart)
        key = client_key(secrets, client, parts)
        threshold = to_unit(mix(key, item.to(tl.uint64))) * total
        share = tl.zeros((BLOCK,), dtype=tl.float64)
        chosen = tl.zeros((BLOCK,), dtype=tl.float64)
        waiting = share >= 0.0
        for at in range(first, last):
            other = tl.load(items + at).to(tl.int64)
            like = likeness(rows, tl.load(features + other * COLUMNS + c), scale)
            apart = (average - tl.load(averages + other)) / width
            share += tl.exp((like - 1.0) / temperature - 0.5 * apart * apart)
            rating = tl.load(levels + tl.load(codes + at).to(tl.int64)).to(tl.float64)
            chosen = tl.where(waiting, rating, chosen)  # the last one, where rounding leaves none
            waiting = waiting & (share <= threshold)
        total = chosen
    tl.store(out + place, total, mask=there)
