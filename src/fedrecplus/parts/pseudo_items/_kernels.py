"""Choosing pseudo items for batches of clients in NumPy, by numba; the rules' own files have the readable form.

Each stays since without it a training takes over a tenth longer: see docs/performance-log.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.arrays import inner, kernel, mix, section, to_unit
from fedrecplus.randomness import purpose

_GROUPS, _ALIKE = (np.uint64(purpose(name)) for name in ("groups", "alike"))


@kernel
def draw_unrated(wanted: Any, rated: Any, items: int, keys: Any, shares: Any, patience: int, chosen: Any) -> None:
    """Unrated items in a keyed sequence of draws, for lines of clients. See ``draw_unrated`` of the kind."""
    for line in range(len(rated)):
        taken, unrated = _unrated(rated, line, items)
        count, number = np.int64(0), 0
        if wanted[line] == unrated:
            count = _take_all(taken, line, chosen)
        while count < wanted[line]:
            unit = to_unit(mix(keys[line], np.uint64(number)))
            by_shares = len(shares) > 0 and number < patience * items
            item = _above(shares, unit) if by_shares else np.int64(unit * items)
            number += 1
            if not taken[item]:
                taken[item] = True
                chosen[line, count] = item
                count += 1


@kernel
def match(
    wanted: Any, order: Any, items: int, keys: Any, ranking: Any, features: Any, window: int, noise: float, chosen: Any
) -> None:
    """For each item in order, again and again, the best of the free ones nearest in rank. See ``matched.py``."""
    place = np.empty(items, np.int64)
    for rank in range(items):
        place[ranking[rank]] = rank
    for line in range(len(order)):
        taken, unrated = _unrated(order, line, items)
        if wanted[line] == unrated:
            _take_all(taken, line, chosen)
            continue
        for number in range(wanted[line]):
            item = order[line, number % (items - unrated)]
            key = mix(keys[line], np.uint64(item))
            best = _best_match(place[item], key, taken, ranking, features, window, noise)
            taken[best] = True
            chosen[line, number] = best


@section
def _best_match(at: int, key: Any, taken: Any, ranking: Any, features: Any, window: int, noise: float) -> Any:
    """The most alike, by cosine and a secret draw, of the free items nearest to a rank: from above, from below, …"""
    up, down, seen, from_above = at - 1, at + 1, 0, True
    best, best_score = np.int64(-1), -10.0
    while seen < window:
        while up >= 0 and taken[ranking[up]]:
            up -= 1
        while down < len(ranking) and taken[ranking[down]]:
            down += 1
        if up < 0 and down >= len(ranking):
            break
        if (from_above and up >= 0) or down >= len(ranking):
            item = ranking[up]
            up -= 1
        else:
            item = ranking[down]
            down += 1
        from_above = not from_above
        seen += 1
        score = _cosine(features, item, ranking[at]) + noise * to_unit(mix(key, np.uint64(item)))
        if score > best_score or (score == best_score and item < best):
            best, best_score = item, score
    return best


@kernel
def add_decoys(
    touched: Any, wanted: Any, keys: Any, partition: Any, year_weight: float, noise: float, chosen: Any
) -> None:
    """Whole groups like those touched, until enough items are chosen. See ``parts/pseudo_items/grouped.py``."""
    order, starts, content, years = partition.order, partition.starts, partition.content, partition.years
    last = touched.shape[1] - 1
    for line in range(len(touched)):
        missing, anchors = wanted[line], np.empty(last + 1, np.int64)
        for item in range(chosen.shape[1]):
            missing -= chosen[line, item]
        left, n = np.ones(last + 1, np.bool_), np.int64(0)
        for number in range(last + 1):
            if touched[line, number]:
                anchors[n], left[number] = number, False
                n += 1
        if partition.last_is_larger:
            left[last] = False  # no decoy while there are others
        step = 0
        while missing > 0:
            draws = mix(keys[line], _GROUPS)
            middle = anchors[np.int64(to_unit(mix(draws, np.uint64(2 * step))) * n)]
            lower_first = to_unit(mix(draws, np.uint64(2 * step + 1))) < 0.5
            key = mix(mix(keys[line], _ALIKE), np.uint64(step))
            decoy = _decoy(middle, lower_first, left, content, years, partition.window, year_weight, noise, key)
            decoy = last if decoy < 0 else decoy
            left[decoy] = False
            for place in range(starts[decoy], min(starts[decoy + 1], starts[decoy] + missing)):
                chosen[line, order[place]] = True
            missing -= starts[decoy + 1] - starts[decoy]
            step += 1


@section
def _decoy(
    middle: int,
    lower_first: bool,
    left: Any,
    content: Any,
    years: Any,
    window: int,
    year_weight: float,
    noise: float,
    key: Any,
) -> Any:
    """The most alike, by the catalogue and a secret draw, of the groups left that are nearest in number; −1: none."""
    lower, upper = middle - 1, middle + 1
    best, best_score = np.int64(-1), -10.0
    for _ in range(window):
        while lower >= 0 and not left[lower]:
            lower -= 1
        while upper < len(left) and not left[upper]:
            upper += 1
        if lower < 0 and upper >= len(left):
            break
        ahead = upper - middle - (middle - lower)  # how much farther the upper one is
        if lower >= 0 and (upper >= len(left) or ahead > 0 or (ahead == 0 and lower_first)):
            candidate = lower
            lower -= 1
        else:
            candidate = upper
            upper += 1
        alike = _cosine(content, middle, candidate)
        if years[middle] > 0 and years[candidate] > 0:
            apart = float(years[middle] - years[candidate])
            alike += year_weight * np.exp(-0.25 * apart * apart)
        score = np.rint(alike * 1e10) / 1e10 + noise * to_unit(mix(key, np.uint64(candidate)))
        if score > best_score:
            best, best_score = np.int64(candidate), score
    return best


@inner
def _unrated(rated: Any, line: int, items: int) -> Any:
    """Which items a client has rated, and how many it has not."""
    taken, unrated = np.zeros(items, np.bool_), np.int64(items)
    for place in range(rated.shape[1]):
        if rated[line, place] >= 0:
            taken[rated[line, place]] = True
            unrated -= 1
    return taken, unrated


@inner
def _take_all(taken: Any, line: int, chosen: Any) -> Any:
    """Choose every item that isn't taken; returns how many there are."""
    count = np.int64(0)
    for item in range(len(taken)):
        if not taken[item]:
            chosen[line, count] = item
            count += 1
    return count


@inner
def _above(rising: Any, value: float) -> int:
    """The place of the first of some rising numbers that is greater than the value."""
    low, high = 0, len(rising)
    while low < high:
        middle = (low + high) // 2
        if rising[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _cosine(features: Any, first: int, second: int) -> float:
    """The rounded cosine of two unit rows. See ``parts/similarity.py``."""
    total = 0.0
    for column in range(features.shape[1]):
        total += features[first, column] * features[second, column]
    return float(np.rint(total * 1e10) / 1e10)
