"""The MovieLens sets that are known by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from fedrecplus.data.ratings import Ratings
from fedrecplus.data.scale import Scale

_WHOLE_STARS = Scale(1.0, 5.0, 1.0)
_HALF_STARS = Scale(0.5, 5.0, 0.5)


class Layout(NamedTuple):
    """File names within an archive, and the separator of the file of ratings."""

    ratings_file: str
    movies_file: str
    separator: str


_TABS = Layout("u.data", "u.item", "\t")
_COLONS = Layout("ratings.dat", "movies.dat", "::")
_CSV = Layout("ratings.csv", "movies.csv", ",")
RECBOLE = Layout("ml-100k.inter", "ml-100k.item", "\t")
"""``ml-100k`` in RecBole's wheel: ``u.data`` below a header line"""


@dataclass(frozen=True)
class KnownSet:
    """A published set, with the counts that GroupLens publishes; items are those with at least one rating."""

    name: str
    layout: Layout
    scale: Scale
    clients: int
    items: int
    ratings: int
    unpacks_to: str = ""
    """the folder in the archive, if its name isn't the set's"""
    changes: bool = False
    """GroupLens replaces it from time to time: other counts are accepted"""
    ratings_md5: str = ""
    """of the file of ratings, where it is known"""

    def differs(self, ratings: Ratings) -> str:
        """How the counts differ from those published; empty if they don't, or are allowed to."""
        counts = (ratings.clients, ratings.item_count, len(ratings))
        published = (self.clients, self.items, self.ratings)
        if self.changes or counts == published:
            return ""
        return f"{_counts(*counts)}; as published, {self.name} has {_counts(*published)}"


def _counts(clients: int, items: int, ratings: int) -> str:
    return f"{ratings:,} ratings by {clients:,} users of {items:,} items"


KNOWN = {
    known.name: known
    for known in (
        KnownSet("ml-100k", _TABS, _WHOLE_STARS, 943, 1_682, 100_000, ratings_md5="6e47046882bad158b0efbb84cd5cb987"),
        KnownSet("ml-1m", _COLONS, _WHOLE_STARS, 6_040, 3_706, 1_000_209),
        KnownSet("ml-latest-small", _CSV, _HALF_STARS, 610, 9_724, 100_836, changes=True),
        KnownSet("ml-10m", _COLONS, _HALF_STARS, 69_878, 10_677, 10_000_054, "ml-10M100K"),
        KnownSet("ml-20m", _CSV, _HALF_STARS, 138_493, 26_744, 20_000_263),
        KnownSet("ml-25m", _CSV, _HALF_STARS, 162_541, 59_047, 25_000_095),
        KnownSet("ml-32m", _CSV, _HALF_STARS, 200_948, 84_432, 32_000_204),
    )
}
