"""Kernels for virtual ratings. Each gives what the file of its name in ``virtual_ratings/`` gives, for many clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.fast import columns
from fedrecplus.fast.compiling import inner, kernel, mix, section, to_unit
from fedrecplus.fast.sorting import above

_gather = columns.gather
_stride = columns.stride
_whole = columns.whole
_silence = columns.silence
_products = columns.products
_pull = columns.pull_on_user
_move_user = columns.move_user
_steady = columns.steady


@kernel
def user_average(clients: Any, indptr: Any, codes: Any, levels: Any, pseudo_indptr: Any, out: Any) -> None:
    """The client's mean rating."""
    for client in clients:
        mean = _mean(codes, indptr[client], indptr[client + 1], levels)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            out[place] = mean


@inner
def _mean(codes: Any, first: int, last: int, levels: Any) -> Any:
    total = 0.0
    for at in range(first, last):
        total += levels[codes[at]]
    return total / max(last - first, 1)


@kernel
def predicted(clients: Any, pseudo_indptr: Any, pseudo_items: Any, U: Any, V: Any, mean: Any, out: Any) -> None:
    """The model's own prediction."""
    for client in clients:
        _predict(pseudo_indptr[client], pseudo_indptr[client + 1], pseudo_items, U[client], V, mean, out)


@inner
def _predict(first: int, last: int, pseudo_items: Any, U: Any, V: Any, mean: Any, out: Any) -> None:
    width = V.shape[1]
    for place in range(first, last):
        row = V[pseudo_items[place]]
        total = mean + U[width]
        for c in range(width):
            total += U[c] * row[c]
        out[place] = total


@kernel
def hybrid(
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    U: Any,
    V: Any,
    mean: Any,
    steps: int,
    rate: Any,
    decay: Any,
    contrast: Any,
    uneven: Any,
    trained: Any,
    prior: Any,
    largest: int,
    out: Any,
) -> None:
    """Predictions from a U that was stepped on over the rated rows with V fixed."""
    width = V.shape[1]
    padded = (width + 3) // 4 * 4
    table = np.zeros((padded, _stride(largest)), V.dtype)
    targets = np.zeros(_whole(largest), V.dtype)
    e = np.zeros(_whole(largest), V.dtype)
    pull = np.zeros(padded, V.dtype)
    own = np.zeros(padded, V.dtype)
    longer = np.empty(width + 1, V.dtype)
    numbers = np.empty(largest, np.int64)
    start = np.int64(0)  # a plain 0 is a type of its own, for which all would be compiled again
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        for j in range(n):
            numbers[j] = items[first + j]
            targets[j] = levels[codes[first + j]] - mean
        _gather(V, numbers, n, table)
        for c in range(width):
            own[c] = U[client, c]
        bias = U[client, width]
        padded_n = _whole(n)
        own_contrast = V.dtype.type(_steady(contrast, uneven, numbers, n, rate, decay))
        for _ in range(steps):
            _products(own, table, start, padded_n, e)
            for j in range(np.uint64(padded_n)):
                e[j] = targets[j] - bias - e[j]
            _silence(e, n, padded_n)
            pull_bias = _pull(e, table, start, padded_n, pull)
            bias = _move_user(own, bias, trained, prior, pull, pull_bias, n, rate, decay, own_contrast)
        for c in range(width):
            longer[c] = own[c]
        longer[width] = bias
        _predict(pseudo_indptr[client], pseudo_indptr[client + 1], pseudo_items, longer, V, mean, out)


@kernel
def plausible(
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    averages: Any,
    share: float,
    secrets_key: Any,
    purpose: Any,
    round_number: Any,
    out: Any,
) -> None:
    """The item's public average and one of the client's own surprises."""
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        key = mix(mix(mix(secrets_key, np.uint64(client)), purpose), round_number)
        leaning = 0.0
        for at in range(first, first + n):
            leaning += (levels[codes[at]] - averages[items[at]]) / n
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            at = first + np.int64(to_unit(mix(key, np.uint64(pseudo_items[place]))) * n)
            surprise = levels[codes[at]] - averages[items[at]]
            out[place] = averages[pseudo_items[place]] + leaning + share * (surprise - leaning)


@section
def alike(first: int, second: int, table: Any, features: Any) -> float:
    """The rounded cosine of two items: looked up where there is a table, computed where there is none."""
    if table.shape[0] > 0:
        return float(table[first, second])
    return float(cosine(first, second, features))


@inner
def cosine(first: int, second: int, features: Any) -> float:
    """The rounded cosine of two unit rows. See ``similarity.py``."""
    total = 0.0
    for c in range(features.shape[1]):
        total += features[first, c] * features[second, c]
    return float(np.rint(total * 1e10) / 1e10)


@kernel
def from_neighbours(
    weighted: bool,
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    table: Any,
    features: Any,
    out: Any,
) -> None:
    """The rating of the most similar rated item, or the mean of all weighted by similarity."""
    for client in clients:
        first, last = indptr[client], indptr[client + 1]
        mean = _mean(codes, first, last, levels)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            best, nearest = -2.0, 0.0
            total, weights = 0.0, 0.0
            for at in range(first, last):
                like = alike(np.int64(pseudo_items[place]), np.int64(items[at]), table, features)
                rating = levels[codes[at]]
                if like > best:
                    best, nearest = like, rating
                if like > 0.0:
                    total += like * rating
                    weights += like
            if weighted:
                out[place] = total / weights if weights > 0.0 else mean
            else:
                out[place] = nearest


@kernel
def drawn(
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    table: Any,
    features: Any,
    averages: Any,
    temperature: float,
    width: float,
    secrets_key: Any,
    purpose: Any,
    round_number: Any,
    largest: int,
    out: Any,
) -> None:
    """One of the client's own ratings, drawn by weight: looked up where there is a table, computed where not."""
    shares = np.empty(largest)
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        key = mix(mix(mix(secrets_key, np.uint64(client)), purpose), round_number)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            item = pseudo_items[place]
            total = 0.0
            if table.shape[0] > 0:
                for at in range(n):
                    total += table[item, items[first + at]]
                    shares[at] = total
            else:
                for at in range(n):
                    rated = items[first + at]
                    apart = (averages[item] - averages[rated]) / width
                    like = cosine(np.int64(item), np.int64(rated), features)
                    total += np.exp((like - 1.0) / temperature - 0.5 * apart * apart)
                    shares[at] = total
            drawn_at = above(shares, n, to_unit(mix(key, np.uint64(item))) * total)
            out[place] = levels[codes[first + min(drawn_at, n - 1)]]


@kernel
def put_on_scale(
    clients: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    stochastic: bool,
    rounded: bool,
    step: float,
    secrets_key: Any,
    purpose: Any,
    round_number: Any,
    low: float,
    high: float,
    out: Any,
) -> None:
    """Clip to the scale's ends and, if asked, round to its levels. See ``virtual_ratings/_rounding.py``."""
    for client in clients:
        key = mix(mix(mix(secrets_key, np.uint64(client)), purpose), round_number)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            value = float(out[place])
            value = low if value < low else high if value > high else value
            if rounded:
                level = (value - low) / step
                threshold = to_unit(mix(key, np.uint64(pseudo_items[place]))) if stochastic else 0.5
                floor = np.floor(level)
                value = low + step * (floor + (level - floor > threshold))
                value = low if value < low else high if value > high else value
            out[place] = value
