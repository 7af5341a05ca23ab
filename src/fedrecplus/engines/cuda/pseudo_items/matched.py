"""CUDA kernel of ``parts/pseudo_items/matched.py``."""

from __future__ import annotations

import numpy as np
import torch
import triton.language as tl

from fedrecplus.engines.cuda.card import (
    DEVICE,
    NUMBERS_AT_ONCE,
    RESIDENT,
    Tensor,
    kernel,
    padded,
    power_of_two,
    to_card,
)
from fedrecplus.engines.cuda.drawing import client_key, key_parts, mix, to_unit
from fedrecplus.engines.cuda.likeness import likeness
from fedrecplus.engines.cuda.pseudo_items._order import by_draw, put_in_order
from fedrecplus.engines.cuda.ratings import no_pseudo_rows, table_of_rows
from fedrecplus.engines.cuda.round import Round
from fedrecplus.parts.pseudo_items.matched import Settings, by_popularity
from fedrecplus.parts.similarity import DECIMALS

_LARGEST_WINDOW = 64


def handles(options: Settings) -> bool:
    """Windows that a program looks at at once."""
    return options.window <= _LARGEST_WINDOW


def fits(some: Round) -> bool:
    """It always does."""
    return True


def select(some: Round, options: Settings, key: int, out: Tensor) -> None:
    """Match the rated items of the round's clients with items not taken yet."""
    known, features = some.rows.ratings, padded(to_card(some.message.features))
    ranking = by_popularity(some.message.public.popularity)
    ranks, place = to_card(ranking), to_card(np.argsort(ranking, kind="stable"))
    numbers = torch.tensor([10.0**DECIMALS, options.noise], dtype=torch.float64, device=DEVICE)
    keys = key_parts("pseudo-items", key)
    for each in some.classes:
        for part in each.parts(NUMBERS_AT_ONCE // (each.rows * 8)):
            items, _ = table_of_rows(no_pseudo_rows(known), part, pseudo=False)
            order = by_draw(part.clients, items, known.secrets, keys)
            programs = min(RESIDENT, len(part.clients))
            taken = torch.full((programs, known.item_count), -1, dtype=torch.int64, device=DEVICE)
            match[(programs,)](
                part.clients, len(part.clients), known.indptr, known.pseudo_indptr, known.secrets, keys, order, ranks,
                place, features, numbers, taken, out, known.item_count, options.window,
                ROWS=part.rows, BLOCK=power_of_two(options.window, 16), COLUMNS=features.shape[1], num_warps=1,
            )  # fmt: skip
        if not options.redraw:
            put_in_order(each, known.pseudo_indptr, out)


@kernel
def match(
    clients: tl.tensor,
    client_count: tl.tensor,
    indptr: tl.tensor,
    pseudo_indptr: tl.tensor,
    secrets: tl.tensor,
    parts: tl.tensor,
    order: tl.tensor,
    ranks: tl.tensor,
    place: tl.tensor,
    features: tl.tensor,
    numbers: tl.tensor,
    taken: tl.tensor,
    out: tl.tensor,
    item_count: tl.tensor,
    window: tl.tensor,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    """Every program takes one client after the other, and for each of its rated items in turn the best match.

    Free items above and below in rank are counted: in turns, the k-th above is number k + min(k, b) of the window where
    there are b below, and the k-th below number k + min(k + 1, a).
    """
    own_taken = taken + tl.program_id(0).to(tl.int64) * item_count
    scale, noise = tl.load(numbers), tl.load(numbers + 1)
    block = tl.arange(0, BLOCK)
    both = tl.arange(0, 2 * BLOCK)
    c = tl.arange(0, COLUMNS)
    for at in range(tl.program_id(0), client_count, tl.num_programs(0)):
        client = tl.load(clients + at)
        rated = tl.load(indptr + client + 1) - tl.load(indptr + client)
        to = tl.load(pseudo_indptr + client)
        wanted = tl.load(pseudo_indptr + client + 1) - to
        key = client_key(secrets, client, parts)
        own_order = order + (client * 0 + at) * ROWS
        for start in range(0, rated, BLOCK):
            there = start + block < rated
            item = tl.load(own_order + start + block, mask=there, other=0).to(tl.int64)
            tl.store(own_taken + item, client + tl.zeros((BLOCK,), dtype=tl.int64), mask=there)
        tl.debug_barrier()
        for number in range(0, wanted):
            item = tl.load(own_order + number % rated).to(tl.int64)
            middle = tl.load(place + item)
            own_key = mix(key, item.to(tl.uint64))
            own = tl.load(features + item * COLUMNS + c)
            above = client * 0
            below = client * 0
            candidates = tl.full((2 * BLOCK,), -1, tl.int64)
            far = client * 0
            # the nearest free items of either side, up to a window of each, gathered by number
            while ((above < window) & (middle - far > 0)) | ((below < window) & (middle + far + 1 < item_count)):
                up = middle - 1 - far - block
                there = up >= 0
                other = tl.load(ranks + up, mask=there, other=0)
                free = there & (tl.load(own_taken + other, mask=there, other=0) != client)
                count = above + tl.cumsum(free.to(tl.int64), axis=0) - 1
                hit = (count[:, None] == both[None, :]) & free[:, None] & (count < window)[:, None]
                candidates = tl.maximum(candidates, tl.max(tl.where(hit, other[:, None], -1), axis=0))
                above += tl.sum(free.to(tl.int64), axis=0)
                down = middle + 1 + far + block
                there = down < item_count
                other = tl.load(ranks + down, mask=there, other=0)
                free = there & (tl.load(own_taken + other, mask=there, other=0) != client)
                count = below + tl.cumsum(free.to(tl.int64), axis=0) - 1
                hit = (count[:, None] + BLOCK == both[None, :]) & free[:, None] & (count < window)[:, None]
                candidates = tl.maximum(candidates, tl.max(tl.where(hit, other[:, None], -1), axis=0))
                below += tl.sum(free.to(tl.int64), axis=0)
                far += BLOCK
            side = both % BLOCK
            turn = tl.where(both < BLOCK, side + tl.minimum(side, below), side + tl.minimum(side + 1, above))
            there = (candidates >= 0) & (turn < window)
            rows = tl.load(features + candidates[:, None] * COLUMNS + c[None, :], mask=there[:, None], other=0.0)
            score = likeness(rows, own, scale) + noise * to_unit(mix(own_key, candidates.to(tl.uint64)))
            score = tl.where(there, score, -10.0)
            best = tl.max(score, axis=0)
            chosen = tl.min(tl.where(there & (score == best), candidates, 0x7FFFFFFF), axis=0)
            tl.store(out + to + number, chosen.to(tl.int32))
            tl.store(own_taken + chosen, client)
            tl.debug_barrier()
