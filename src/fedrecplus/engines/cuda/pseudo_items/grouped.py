"""CUDA kernel of ``parts/pseudo_items/grouped.py``."""

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
from fedrecplus.engines.cuda.likeness import likeness, rounded
from fedrecplus.engines.cuda.pseudo_items._order import by_draw, put_in_order
from fedrecplus.engines.cuda.ratings import no_pseudo_rows, table_of_rows
from fedrecplus.engines.cuda.round import Round
from fedrecplus.parts.pseudo_items import grouped
from fedrecplus.parts.similarity import DECIMALS, unit_rows
from fedrecplus.randomness import purpose

_LARGEST_WINDOW = 64
_NOBODY = 2**31 - 1


def handles(options: grouped.Settings) -> bool:
    """Windows that a program looks at at once."""
    return options.decoy_window <= _LARGEST_WINDOW


def fits(some: Round) -> bool:
    """It always does."""
    return True


def select(some: Round, options: grouped.Settings, key: int, out: Tensor) -> None:
    """Whole groups for the round's clients; the first item of a group stands for it where groups are compared."""
    public, known = some.message.public, some.rows.ratings
    of_item = grouped.groups(public, options)
    members, starts = grouped.members(of_item)
    leaders = members[starts[:-1]]
    years = public.years[leaders] if len(public.years) else np.zeros(len(leaders), dtype=np.int64)
    content = padded(to_card(unit_rows(public.content[leaders])))
    window = grouped.decoy_window(public, options)
    numbers = [10.0**DECIMALS, options.year_weight, options.noise]
    facts = torch.tensor(numbers, dtype=torch.float64, device=DEVICE)
    names = torch.tensor([purpose(name) for name in ("few", "groups", "alike")], dtype=torch.int64, device=DEVICE)
    tables = (to_card(of_item), to_card(members), to_card(starts), content, to_card(years.astype(np.int64)))
    keys, larger = key_parts("pseudo-items", key), len(of_item) % grouped.group_size(options) > 0
    few = torch.cat([keys, names[:1]])
    widest = int(np.diff(starts).max())
    for each in some.classes:
        for part in each.parts(NUMBERS_AT_ONCE // (each.rows * 8 * widest)):
            rated, _ = table_of_rows(no_pseudo_rows(known), part, pseudo=False)
            touched = _touched(rated, tables[0])
            mates, found = _mates(rated, touched, tables[1], tables[2], widest)
            programs = min(RESIDENT, len(part.clients))
            taker = torch.full((programs, len(leaders)), -1, dtype=torch.int64, device=DEVICE)
            whole_groups[(programs,)](
                part.clients, len(part.clients), known.pseudo_indptr, known.secrets, keys, names, touched,
                (touched < _NOBODY).sum(1), by_draw(part.clients, mates, known.secrets, few), found, *tables[1:], facts,
                taker, out, len(leaders), window, mates.shape[1],
                ROWS=part.rows, BLOCK=power_of_two(window, 16), COLUMNS=content.shape[1],
                YEARS=len(public.years) > 0, LAST_IS_LARGER=larger, num_warps=1,
            )  # fmt: skip
        if not options.redraw:
            put_in_order(each, known.pseudo_indptr, out)


def _touched(rated: Tensor, of_item: Tensor) -> Tensor:
    """The groups that each client has rated something in, ascending, and then nobody's."""
    groups = torch.where(rated >= 0, of_item[rated.clamp(min=0).to(torch.int64)], _NOBODY)
    groups = torch.sort(groups, dim=1).values
    again = torch.zeros_like(groups, dtype=torch.bool)
    again[:, 1:] = groups[:, 1:] == groups[:, :-1]
    return torch.sort(torch.where(again, _NOBODY, groups), dim=1).values.contiguous()


def _mates(rated: Tensor, touched: Tensor, members: Tensor, starts: Tensor, widest: int) -> tuple[Tensor, Tensor]:
    """The unrated items of all touched groups of each client (−1: none), and how many they are."""
    is_group = touched < _NOBODY
    group = torch.where(is_group, touched, 0)
    place = starts[group][:, :, None] + torch.arange(widest, device=DEVICE)
    inside = is_group[:, :, None] & (place < starts[group + 1][:, :, None])
    items = torch.where(inside, members[place.clamp(max=len(members) - 1)], -1).flatten(1)
    known = torch.sort(torch.where(rated >= 0, rated, _NOBODY).to(torch.int64), dim=1).values
    at = torch.searchsorted(known, items.contiguous()).clamp(max=known.shape[1] - 1)
    items = torch.where(torch.gather(known, 1, at) == items, -1, items)
    return items.contiguous(), (items >= 0).sum(1)


@kernel
def whole_groups(
    clients: tl.tensor,
    client_count: tl.tensor,
    pseudo_indptr: tl.tensor,
    secrets: tl.tensor,
    parts: tl.tensor,
    names: tl.tensor,
    touched: tl.tensor,
    touched_counts: tl.tensor,
    mates: tl.tensor,
    mate_counts: tl.tensor,
    members: tl.tensor,
    starts: tl.tensor,
    content: tl.tensor,
    years: tl.tensor,
    facts: tl.tensor,
    taker: tl.tensor,
    out: tl.tensor,
    group_count: tl.tensor,
    window: tl.tensor,
    mate_width: tl.tensor,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
    YEARS: tl.constexpr,
    LAST_IS_LARGER: tl.constexpr,
) -> None:
    """Every program takes one client after the other: its mates first, then free groups like touched ones.

    Groups are looked at by distance from a touched one, lower and upper in turn; the first ``window`` free ones count.
    """
    own_taker = taker + tl.program_id(0).to(tl.int64) * group_count
    scale, year_weight, noise = tl.load(facts), tl.load(facts + 1), tl.load(facts + 2)
    block = tl.arange(0, BLOCK)
    c = tl.arange(0, COLUMNS)
    for at in range(tl.program_id(0), client_count, tl.num_programs(0)):
        client = tl.load(clients + at)
        n, found = tl.load(touched_counts + at), tl.load(mate_counts + at)
        to = tl.load(pseudo_indptr + client)
        wanted = tl.load(pseudo_indptr + client + 1) - to
        own_touched = touched + (client * 0 + at) * ROWS
        found = tl.minimum(found, wanted)
        for start in range(0, found, BLOCK):
            there = start + block < found
            mate = tl.load(mates + (client * 0 + at) * mate_width + start + block, mask=there, other=0)
            tl.store(out + to + start + block, mate.to(tl.int32), mask=there)
        for start in range(0, n, BLOCK):
            there = start + block < n
            group = tl.load(own_touched + start + block, mask=there, other=0)
            tl.store(own_taker + group, client + tl.zeros((BLOCK,), dtype=tl.int64), mask=there)
        if LAST_IS_LARGER:  # no decoy while there are others
            tl.store(own_taker + group_count - 1, client)
        key = client_key(secrets, client, parts)
        of_groups = mix(key, tl.load(names + 1).to(tl.uint64))
        of_alike = mix(key, tl.load(names + 2).to(tl.uint64))
        number = client * 0
        tl.debug_barrier()
        while found < wanted:
            anchor = to_unit(mix(of_groups, (2 * number).to(tl.uint64)))
            lower_first = to_unit(mix(of_groups, (2 * number + 1).to(tl.uint64))) < 0.5
            drawn = mix(of_alike, number.to(tl.uint64))
            middle = tl.load(own_touched + (anchor * n).to(tl.int64))
            own = tl.load(content + middle * COLUMNS + c)
            own_year = tl.load(years + middle)
            best = client * 0 + group_count - 1
            best_score = noise * 0.0 - 10.0
            seen = client * 0
            far = client * 0
            while (seen < window) & ((middle - far > 0) | (middle + far + 1 < group_count)):
                distance = far + 1 + block // 2
                is_lower = (block % 2 == 0) == lower_first
                other = tl.where(is_lower, middle - distance, middle + distance)
                there = (other >= 0) & (other < group_count)
                free = there & (tl.load(own_taker + other, mask=there, other=0) != client)
                near = free & (seen + tl.cumsum(free.to(tl.int64), axis=0) - 1 < window)
                rows = tl.load(content + other[:, None] * COLUMNS + c[None, :], mask=near[:, None], other=0.0)
                score = likeness(rows, own, scale)
                if YEARS:
                    year = tl.load(years + other, mask=near, other=0)
                    apart = (own_year - year).to(tl.float64)
                    same = year_weight * tl.exp(-0.25 * apart * apart)
                    score = rounded(score + tl.where((own_year > 0) & (year > 0), same, 0.0), scale)
                score += noise * to_unit(mix(drawn, other.to(tl.uint64)))
                score = tl.where(near, score, -20.0)
                highest = tl.max(score, axis=0)
                first = tl.min(tl.where(near & (score == highest), block, BLOCK), axis=0)
                nearest = tl.sum(tl.where(block == first, other, 0), axis=0)
                best = tl.where(highest > best_score, nearest, best)
                best_score = tl.maximum(best_score, highest)
                seen += tl.sum(free.to(tl.int64), axis=0)
                far += BLOCK // 2
            start, end = tl.load(starts + best), tl.load(starts + best + 1)
            count = tl.minimum(end - start, wanted - found)
            for first_place in range(0, count, BLOCK):
                there = first_place + block < count
                item = tl.load(members + start + first_place + block, mask=there, other=0)
                tl.store(out + to + found + first_place + block, item.to(tl.int32), mask=there)
            tl.store(own_taker + best, client)
            found += count
            number += 1
            tl.debug_barrier()
