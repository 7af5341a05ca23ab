"""A trained model's public tables as small whole numbers: value = low + scale × code, column by column.

Both languages compute a value by the same two operations on 64-bit numbers, so the page and Python have the same tables
to the last bit, and may be compared over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.randomness import subkey, uniform
from fedrecplus.training import SharedModel, list_or_rating_weights, ranking

Array = NDArray[np.float64]
_ALIGNED = 4
_MOST_PEOPLE, _FEWEST_PEOPLE, _RATED, _LISTED = 40, 5, 20, 10
"""made-up people that the cost of quantising is measured on, their ratings, and the length of their lists"""
_PREDICTIONS = 200_000
"""of all these people together, where they are more than the fewest"""


@dataclass(frozen=True)
class Quantised:
    """One table in codes."""

    codes: NDArray[Any]
    """rows × columns, unsigned"""
    low: Array
    """the value of code 0, by column"""
    scale: Array
    """from one code to the next, by column"""

    def values(self) -> Array:
        """The table that everybody computes with who has the codes."""
        return np.asarray(self.low + self.scale * self.codes.astype(np.float64))


def quantise(table: NDArray[Any], bits: int) -> Quantised:
    """The nearest of 2^bits values between each column's least and greatest.

    >>> quantise(np.array([[0.0], [1.0], [2.55]]), 8).codes.ravel().tolist()
    [0, 100, 255]
    """
    table = table.astype(np.float64)
    low = table.min(axis=0, initial=0.0) if len(table) == 0 else table.min(axis=0)
    high = table.max(axis=0, initial=0.0) if len(table) == 0 else table.max(axis=0)
    scale = (high - low) / (2**bits - 1)
    steps = np.divide(table - low, scale, out=np.zeros_like(table), where=scale > 0)
    return Quantised(np.rint(steps).astype(f"uint{bits}"), low, scale)


def exact(values: NDArray[Any], bits: int) -> Quantised:
    """Whole numbers as they are, cut off where they don't fit."""
    codes = np.clip(np.rint(values), 0, 2**bits - 1).astype(f"uint{bits}")[:, None]
    return Quantised(codes, np.zeros(1), np.ones(1))


def tables_of(model: SharedModel, bits: int) -> dict[str, Quantised]:
    """What the page needs of a model, the widest numbers first."""
    public = model.public
    return {
        "popularity": exact(public.popularity, 32),
        "years": exact(public.years, 16),
        "average": quantise(public.average[:, None], 16),
        "content": quantise(public.content, 8),
        "V": quantise(model.V, bits),
    }


def with_tables(model: SharedModel, tables: Mapping[str, Quantised]) -> SharedModel:
    """The model as the page has it."""
    public = replace(
        model.public,
        popularity=tables["popularity"].codes[:, 0].astype(np.int64),
        average=tables["average"].values()[:, 0],
        content=tables["content"].values(),
        years=tables["years"].codes[:, 0].astype(np.int64),
    )
    return replace(model, V=tables["V"].values(), public=public)


def packed(tables: Mapping[str, Quantised]) -> tuple[bytes, list[dict[str, Any]]]:
    """All codes one after the other, and where each table begins."""
    parts, facts, offset = [], [], 0
    for name, table in tables.items():
        data = table.codes.tobytes()
        rows, columns = table.codes.shape
        type_name = str(table.codes.dtype)
        place = {"name": name, "type": type_name, "offset": offset, "rows": rows, "columns": columns}
        facts.append({**place, "low": table.low.tolist(), "scale": table.scale.tolist()})
        parts.append(data + bytes(-len(data) % _ALIGNED))
        offset += len(parts[-1])
    return b"".join(parts), facts


def cost_of(model: SharedModel, rounded: SharedModel) -> dict[str, float]:
    """What quantising changes for made-up people, who rate what is popular about as everybody does.

    Real people's ratings are none of the page's business, so they have no part in a figure that it shows.
    """
    changes, shared = [], []
    people = int(np.clip(_PREDICTIONS // max(len(model.item_ids), 1), _FEWEST_PEOPLE, _MOST_PEOPLE))
    for person in range(people):
        items, ratings = _made_up(model, person)
        weights = [list_or_rating_weights(one, items, ratings, "rating") for one in (model, rounded)]
        predicted = [one.scale.restore(one.X @ w) for one, w in zip((model, rounded), weights, strict=True)]
        changes.append(np.abs(predicted[1] - predicted[0]))
        first, second = (_list(one, items, ratings) for one in (model, rounded))
        shared.append(len(np.intersect1d(first, second)) / max(len(first), 1))
    errors = np.concatenate(changes)
    measured = {"mean_change": errors.mean(), "largest_change": errors.max(), "same_top_ten": np.mean(shared)}
    return {name: round(float(value), 4) for name, value in measured.items()}


def _made_up(model: SharedModel, person: int) -> tuple[NDArray[np.int64], Array]:
    """Items drawn in proportion to popularity, and ratings around their averages, on the scale."""
    public, count = model.public, len(model.item_ids)
    draws = uniform(subkey(person, "made-up-items"), np.arange(count))
    order = np.argsort(draws ** (1.0 / np.maximum(public.popularity, 1e-3)), kind="stable")
    items = np.sort(order[-min(_RATED, count) :])
    noise = 2.0 * uniform(subkey(person, "made-up-ratings"), items) - 1.0
    step = model.scale.standard_step
    ratings = 1.0 + step * np.rint((public.averages()[items] + 1.5 * noise - 1.0) / step)
    return items, np.clip(ratings, 1.0, 5.0)


def _list(model: SharedModel, items: NDArray[np.int64], ratings: Array) -> NDArray[np.int64]:
    scores = model.X @ list_or_rating_weights(model, items, ratings, "list")
    scores[items] = -np.inf
    return ranking.top(scores, model.public.popularity, _LISTED)
