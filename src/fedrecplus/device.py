"""What a device knows and keeps to itself.

A simulation holds many clients at once in the same types: arrays then have a leading axis of clients, and item −1 is no
row (``fedrecplus.arrays``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, marked, namespace, numbers, put_rows, zeros
from fedrecplus.randomness import Key


@dataclass(frozen=True)
class Decoys:
    """A client's pseudo items and their virtual ratings, items ascending."""

    items: NDArray[np.int64]
    ratings: Array
    """on the standard scale"""


@dataclass(frozen=True)
class Device:
    """One client: its ratings, its factors, its secret. No field of it leaves the device."""

    client: int
    items: NDArray[np.int64]
    """rated items, ascending"""
    ratings: Array
    """their ratings, on the standard scale"""
    step: float
    """distance between two ratings of the scale, in standard units"""
    U: Array
    """what the model keeps on the device between rounds; empty where it keeps nothing"""
    secret: Key
    """key of every draw of this client: from the operating system on a real device, from the seed in simulation"""
    kept: Decoys | None = None
    """pseudo items of the first round, where they are kept"""
    ages: NDArray[np.int64] | None = None
    """how many choices came after each; None where no order is known, or the model looks at none"""
    tested: NDArray[np.int64] = field(default_factory=lambda: np.full(0, -1))
    """items that it is tested on: only a simulation with ``leaky_negatives`` has any"""


class Rows(NamedTuple):
    """A client's rated and pseudo items together, ascending by item, so that their order tells nothing."""

    items: NDArray[np.int64]
    ratings: Array
    rated: NDArray[np.bool_]


def merge(device: Device, pseudo: Decoys) -> Rows:
    """The rows that a client trains on and uploads."""
    items = np.concatenate([device.items, pseudo.items])
    order = np.argsort(items, kind="stable")
    ratings = np.concatenate([device.ratings, pseudo.ratings])
    return Rows(items[order], ratings[order], (np.arange(len(items)) < len(device.items))[order])


def every_item(device: Device, count: int) -> Rows:
    """A row of every item, for models that upload all of them; those that are not rated have the rating 0."""
    clients, rated = device.items.shape[:-1], marked(device.items, count)
    ratings = put_rows(zeros((*clients, count, 1), device.ratings), device.items, device.ratings[..., None])[..., 0]
    items = namespace(rated).broadcast_to(numbers(np.arange(count), device.items), (*clients, count))
    return Rows(items, ratings, rated)
