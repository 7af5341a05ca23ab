"""Ratings of all clients."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.scale import STANDARD_HIGH, STANDARD_LOW, Scale
from fedrecplus.markdown import html_table

Progress = Callable[[str, int, int], None]
"""called with what is being fetched or made, how much of it is there, and how much there will be (0: unknown)"""
_ERAS = 6
_YEAR_WEIGHT = 0.7
_YEAR = re.compile(r"\s*\((\d{4})\s*[-–]?\s*(?:\d{4})?\s*\)\s*(?:\(V\))?\s*$")  # (V): straight to video


@dataclass(frozen=True)
class Catalogue:
    """Row i describes item i. Empty strings, zeros and no genres are unknown."""

    titles: tuple[str, ...]
    years: NDArray[np.int16]
    genres: NDArray[np.bool_]
    """items × genre names"""
    genre_names: tuple[str, ...]

    def features(self) -> NDArray[np.float64]:
        """Content features, items × columns: genres by inverse document frequency, and soft memberships in eras.

        After: Salton and Buckley 1988, tf-idf, since half of all films are dramas.
        """
        genres = self.genres.astype(np.float64)
        idf = np.log((len(genres) + 1.0) / (genres.sum(axis=0) + 1.0))
        return np.hstack([genres * idf, _YEAR_WEIGHT * _eras(self.years.astype(np.float64))])


def _eras(years: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussian bumps at quantiles of the known years; no columns where all items are of one year."""
    known = years > 0
    if len(np.unique(years[known])) < 2:
        return np.zeros((len(years), 0))
    centres = np.quantile(years[known], np.linspace(0.0, 1.0, _ERAS))
    width = max((centres[-1] - centres[0]) / _ERAS, 1.0)
    near = np.exp(-0.5 * ((years[:, None] - centres) / width) ** 2)
    return np.where(known[:, None], near, 0.0)


def title_and_year(text: str) -> tuple[str, int]:
    """Split the year off a title; 0 where there is none.

    >>> title_and_year("Toy Story (1995)"), title_and_year("Babylon 5")
    (('Toy Story', 1995), ('Babylon 5', 0))
    """
    year = _YEAR.search(text)
    return (text[: year.start()].strip(), int(year[1])) if year else (text.strip(), 0)


NEVER_TESTED = 255
"""the number of no fold: such a rating is for training whatever is tested"""


def narrowest(item_count: int) -> type[np.uint16] | type[np.int32]:
    """The type of item numbers: two bytes where they do."""
    return np.uint16 if item_count <= 65536 else np.int32


def damped_means(
    sums: NDArray[Any], counts: NDArray[np.int64], mean: float, prior_strength: float
) -> NDArray[np.float64]:
    """Means of sums over counts, with ``prior_strength`` pseudo-ratings at the mean."""
    return np.asarray((sums + prior_strength * mean) / (counts + prior_strength))


@dataclass(frozen=True)
class Ratings:
    """A sparse matrix client × item of levels on a scale, by client, items ascending within a client (CSR).

    Types are the narrowest that hold the values: 10⁸ ratings take 300 MB.
    """

    name: str
    scale: Scale
    indptr: NDArray[np.int64]
    """client u's ratings are at ``indptr[u]:indptr[u + 1]``"""
    items: NDArray[Any]
    """item numbers, uint16 or int32"""
    codes: NDArray[Any]
    """level numbers, uint8 or uint16: the rating is ``scale.low + code * scale.step``"""
    client_ids: NDArray[Any]
    """the ids in the source, integers or strings, by client number"""
    item_ids: NDArray[Any]
    """the ids in the source, integers or strings, by item number"""
    catalogue: Catalogue | None = field(default=None, repr=False)
    timestamps: NDArray[Any] | None = field(default=None, repr=False)
    """when each rating was given, in the source's units (seconds, where the source has dates); None if nothing tells"""
    folds: NDArray[np.uint8] | None = field(default=None, repr=False)
    """the fold that the source puts each rating into; ``NEVER_TESTED`` for training ratings of every fold"""
    order: NDArray[np.int64] | None = field(default=None, repr=False)
    """the place of each rating in the source, which tells which came first of two at the same time; None: not known"""
    listed: bool = False
    """whether the items are those of a list that was public before, whoever rated them; else those with a rating"""
    scale_inferred: bool = False
    """whether the scale was read off the ratings, so that one person's may have changed it"""
    rated: bool = True
    """whether the source has a rating of each pair; else it says who chose what, and all are the scale's highest"""

    def to_frame(self, backend: str = "polars") -> Any:
        """A frame with columns user, item, rating and, where it is known, timestamp, in the ids of the source.

        ``backend`` is ``pandas``, ``polars`` or ``pyarrow``.
        """
        from fedrecplus.data.frames import frame_of  # here: it brings polars

        names = {"user": self.client_ids[self.client_of_rating], "item": self.item_ids[self.items]}
        times = {} if self.timestamps is None else {"timestamp": self.timestamps}
        return frame_of({**names, "rating": self.values, **times}, backend)

    def __repr__(self) -> str:
        size = f"{self.clients:,} clients × {self.item_count:,} items, {len(self):,} ratings"
        return f"Ratings({self.name!r}, {size}, scale {self.scale})"

    def _repr_html_(self) -> str:
        pairs = [
            ["clients", f"{self.clients:,}"],
            ["items", f"{self.item_count:,}"],
            ["ratings", f"{len(self):,}"],
            ["scale", str(self.scale)],
            ["times", "yes" if self.timestamps is not None else "no"],
            ["titles and genres", "yes" if self.catalogue is not None else "no"],
        ]
        return html_table([self.name, ""], pairs)

    @property
    def clients(self) -> int:
        """How many clients there are, those without ratings included."""
        return len(self.indptr) - 1

    @property
    def item_count(self) -> int:
        """How many items there are, those without ratings included."""
        return len(self.item_ids)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def likes_alone(self) -> bool:
        """Whether all ratings are the same: likes, clicks, purchases, which say what was chosen and no more."""
        return len(self) > 0 and bool(self.codes.min() == self.codes.max())

    @property
    def client_of_rating(self) -> NDArray[np.int32]:
        """The client number of every rating."""
        return np.repeat(np.arange(self.clients, dtype=np.int32), np.diff(self.indptr))

    @property
    def values(self) -> NDArray[np.float64]:
        """Every rating, on its own scale."""
        return self.scale.values(self.codes)

    @property
    def standard_values(self) -> NDArray[np.float64]:
        """Every rating in standard units."""
        return self.scale.standardise(self.values)

    def of(self, client: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """One client's items and its ratings of them, in standard units."""
        part = slice(self.indptr[client], self.indptr[client + 1])
        return self.items[part].astype(np.int64), self.scale.standardise(self.scale.values(self.codes[part]))

    def ages(self) -> NDArray[np.int32] | None:
        """How many of its client's ratings came after each, by time and place in the source; None without times."""
        if self.timestamps is None:
            return None
        place = np.arange(len(self)) if self.order is None else self.order
        order = np.lexsort((place, self.timestamps, self.client_of_rating))
        ages = np.empty(len(self), dtype=np.int32)
        ages[order] = np.repeat(self.indptr[1:], np.diff(self.indptr)) - 1 - np.arange(len(self))
        return ages

    def item_counts(self) -> NDArray[np.int64]:
        """How many ratings each item has."""
        return np.bincount(self.items, minlength=self.item_count).astype(np.int64)

    def mean(self) -> float:
        """Mean rating in standard units; the scale's middle where there are no ratings."""
        return float(self.standard_values.mean()) if len(self) else (STANDARD_LOW + STANDARD_HIGH) / 2

    def item_means(self, prior_strength: float = 10.0) -> NDArray[np.float64]:
        """Damped mean rating of each item in standard units: with ``prior_strength`` pseudo-ratings at the mean.

        Ours: stands in for averages that a public site would give. Damping hides nothing: the sum of an item's ratings
        follows from it, the count and the overall mean.
        """
        sums = np.bincount(self.items, weights=self.standard_values, minlength=self.item_count)
        return damped_means(sums, self.item_counts(), self.mean(), prior_strength)

    def where(self, mask: NDArray[np.bool_]) -> Ratings:
        """Only the ratings that the mask keeps; clients and items keep their numbers."""
        kept = np.concatenate([[0], np.cumsum(mask)])
        return replace(self, indptr=kept[self.indptr].astype(np.int64), items=self.items[mask], **self.said(mask))

    def renumbered(self, clients: NDArray[Any], items: NDArray[Any], **known: Any) -> Ratings:
        """The same ratings under other numbers, one of each for a rating; ``known`` is what else changes, as ids do."""
        order = np.lexsort((items, clients))
        moved = replace(self, items=items, **known)
        counts = np.bincount(clients, minlength=len(moved.client_ids))
        places = items[order].astype(narrowest(moved.item_count))
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return replace(moved, indptr=indptr, items=places, **moved.said(order))

    def said(self, places: NDArray[Any] | slice) -> dict[str, Any]:
        """What is known of some ratings beside who gave them to which item, in their order, for ``replace``."""
        arrays = {name: getattr(self, name) for name in ("codes", "timestamps", "folds", "order")}
        return {name: None if array is None else array[places] for name, array in arrays.items()}
