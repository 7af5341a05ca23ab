"""Random groups of a cohort, each with a secure sum of its own, joined so that few clients can't do much to all.

Nobody sees single uploads, so nobody can look for outliers among them. Sums of random groups are seen, and whoever
spoils is in one of them. Honest groups are alike: a group whose contributions are much larger than those of the median
group is left out, and of the others each row is bounded by what so many honest people could have moved it. Their sum is
bounded once more, row by row, by what it is of items that about as many rated: whoever pushes one film from many groups
keeps to the bounds in each.

Each group is a cohort: what a sum must have at least, and which rows are in it, goes by the group.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array
from fedrecplus.protocol import Sums

_ODD = 1.5
"""times the median group's size, beyond which a group is left out; or its persons or their mean weight, also where they
are so many times less. Honest groups of six and more have mean weights of .85 to 1.15 of the median's"""
_ROW = 2.5
"""times the size of a contribution and the root of how many are expected: the most that a row is moved"""

_BESIDE, _PEERS = 1.5, 401
"""times the median over so many rows of items with about as many raters: the most that a row is moved by all groups.
So many that whoever lifts the median with rows of its own gives its groups away as odd"""


@dataclass(frozen=True)
class Grouping:
    """How a cohort falls into groups: by hashes that everybody can compute, of a public name and of the cohort.

    Whoever chooses the cohort can try many, by leaving people out or inventing some, until it likes the groups. Of one
    cohort there is one way alone.
    """

    count: int
    name: bytes
    """what is drawn for: no two rounds of any task have one"""

    def of(self, clients: Sequence[int]) -> list[NDArray[np.int64]]:
        """Places of the clients, ascending, in so many groups of nearly the same size."""
        everybody = hashlib.sha256(self.name + cohort_bytes(sorted(clients))).digest()
        drawn = [hashlib.sha256(everybody + cohort_bytes([client])).digest() for client in clients]
        order = np.array(sorted(range(len(clients)), key=drawn.__getitem__), dtype=np.int64)
        return [np.sort(part) for part in np.array_split(order, self.count)]

    def group_of(self, client: int, clients: Sequence[int]) -> set[int]:
        """Who is in a client's group, itself included."""
        groups = ({clients[place] for place in places} for places in self.of(clients))
        return next(group for group in groups if client in group)

    def enough(self, groups: int) -> bool:
        """Whether so many groups' sums may stand for all: most of them."""
        return 2 * groups > self.count


def cohort_bytes(clients: Sequence[int]) -> bytes:
    """Clients' numbers, end to end."""
    return b"".join(client.to_bytes(8, "big") for client in clients)


def joined(groups: Sequence[Sums], expected: Array) -> tuple[Sums, list[int]]:
    """The groups' sums in one, and which groups were left out. ``expected`` is each row's share of people.

    A group that is left out takes its weights and clients with it. How many persons a group has, and what they weigh,
    is in its sum, so each member can say what it likes of both: bounds follow from the one, and a step is divided by
    the other. After: Sun et al. 2019 (norm bounding), by groups; Ours: the bounds of a row follow from how many people
    are expected to have rated it, and from its peers
    """
    if len(groups) < 3:  # two can't tell which of them is odd
        return functools.reduce(Sums.plus, groups), []
    clients = np.array([group.clients for group in groups], dtype=np.float64)
    weights = np.array([group.overall for group in groups]) / np.maximum(clients, 1.0)
    people = clients[:, None] * expected
    norms = np.array([np.linalg.norm(group.total, axis=1) for group in groups])
    sizes = np.sqrt((norms**2).sum(axis=1) / np.maximum(people.sum(axis=1), 1e-12))
    beside = np.array([np.linalg.norm(group.statistic) / max(group.clients, 1) for group in groups])
    alike = ~(_unlike(clients) | _unlike(weights)) & np.isfinite(sizes + beside)
    judges = alike if alike.any() else np.ones(len(groups), dtype=bool)  # who lies of persons has no say of sizes
    size, other = np.median(sizes[judges]), np.median(beside[judges])
    odd = ~(alike & (sizes <= _ODD * size) & (beside <= _ODD * other))
    if odd.all():
        odd[np.argmin(np.nan_to_num(sizes, nan=np.inf))] = False
    most = _ROW * size * np.sqrt(people)
    factors = np.minimum(1.0, most / np.maximum(norms, 1e-12))[..., None]
    kept = [
        replace(group, total=group.total * factor)
        for group, factor, is_odd in zip(groups, factors, odd, strict=True)
        if not is_odd
    ]
    sums = functools.reduce(Sums.plus, kept)
    return replace(sums, total=like_peers(sums.total, expected)), np.flatnonzero(odd).tolist()


def _unlike(figures: Array) -> NDArray[np.bool_]:
    """Which groups' figures are far above the median group's, or far below; what is no number is unlike any."""
    middle = np.median(figures)
    return np.asarray(~((figures <= _ODD * middle) & (middle <= _ODD * figures)))


def like_peers(total: Array, expected: Array) -> Array:
    """Each row no longer than ``_BESIDE`` times the median of the ``_PEERS`` rows nearest in how many are expected.

    Per n^¾ of these: of n contributions with something in common the sum grows faster than √n, and slower than n. Rows
    that are left out count for nothing.
    """
    root = np.sqrt(np.maximum(expected, 1e-12))
    norms = np.linalg.norm(total, axis=1) / (root * np.sqrt(root))
    summed = np.flatnonzero(norms)
    order = summed[np.argsort(expected[summed], kind="stable")]
    width = min(_PEERS, len(order))
    if width == 0:
        return total
    medians = np.median(np.lib.stride_tricks.sliding_window_view(norms[order], width), axis=1)
    nearest = np.clip(np.arange(len(order)) - width // 2, 0, len(order) - width)
    factors = np.ones(len(total))
    factors[order] = np.minimum(1.0, _BESIDE * medians[nearest] / norms[order])
    return np.asarray(total * factors[:, None])
