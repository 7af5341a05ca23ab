"""What everybody may know of the items. The server has it as a file, each device gets it once and keeps it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data import STANDARD_HIGH, STANDARD_LOW, Ratings, Scale
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.engines import public_items
from fedrecplus.errors import UserError
from fedrecplus.files import write_tensors
from fedrecplus.protocol import PublicItems
from fedrecplus.training import SharedModel, read_tensors

ITEMS = "items.safetensors"
FEWEST = 3
"""ratings that an average is published of: of one it would be the rating, of two each rater could tell the other's"""
_TABLES = ("content", "popularity", "average", "years")
_OPTIONAL = ("average", "years")
"""empty where nobody knows them"""
_SOURCES = {
    "participants": "figures of the participants",
    "secure-sum": "one secure sum",
    "public": "a public data set",
}
"""where figures come from, and how it is said"""


@dataclass(frozen=True)
class ItemCatalogue:
    """The items by number: ids, titles, the scale they are rated on, and what the rounds look at."""

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    """no titles where there are none"""
    scale: Scale
    public: PublicItems

    @classmethod
    def of(cls, ratings: Ratings) -> ItemCatalogue:
        """With all that a simulation holds public, averages of single ratings included: for a try on one machine."""
        titles = ratings.catalogue.titles if ratings.catalogue else ()
        return cls(tuple(map(str, ratings.item_ids.tolist())), titles, ratings.scale, public_items(ratings))

    @classmethod
    def published(cls, ratings: Ratings, *, averages: bool = True, participants: bool = False) -> ItemCatalogue:
        """For people to have: with averages of ``FEWEST`` ratings and more, or without any.

        It says of itself whether the ratings are of a public data set or the participants' own.

        An item with fewer has the mean rating for its average. That mean, too, is over the other items alone: what it
        lacked of the shown averages would be the sum of those that are held back.
        """
        whole = cls.of(ratings)
        often = ratings.where(whole.public.popularity[ratings.items] >= FEWEST)
        average = often.item_means() if averages else np.zeros(0)
        source = "participants" if participants else "public"
        return replace(whole, public=replace(whole.public, mean=often.mean(), average=average, source=source))

    @classmethod
    def read(cls, path: Path) -> ItemCatalogue:
        """Read the file that ``write`` wrote."""
        if not path.is_file():
            raise UserError(f"there is no item catalogue {path}", "make one with `deploy items`")
        try:
            return cls.of_arrays(read_tensors(path)[0])
        except UserError as error:
            raise UserError(error.problem, "make a catalogue with `deploy items`") from None
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} is no item catalogue: {error}", "make one with `deploy items`") from None

    def write(self, path: Path) -> None:
        """Write the file that a server runs with."""
        write_tensors(path, self.arrays(), {}, private=False)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Item id → item number."""
        return {name: number for number, name in enumerate(self.ids)}

    @cached_property
    def digest(self) -> str:
        """A name that two equal catalogues share."""
        return Packet({}, self.arrays()).digest

    @cached_property
    def items_digest(self) -> str:
        """A name that two catalogues of the same items share, whatever their figures."""
        facts = json.dumps([self.ids, self.titles, str(self.scale)]).encode()
        tables = {name: np.ascontiguousarray(getattr(self.public, name)) for name in ("content", "years")}
        return Packet({}, {"about": np.frombuffer(facts, dtype=np.uint8), **tables}).digest

    def first(self, count: int) -> ItemCatalogue:
        """It as it was when it had so many items: those that come later are added at the end."""
        return replace(
            self, ids=self.ids[:count], titles=self.titles[:count],
            public=self.public.of_items(np.arange(min(count, len(self.ids)))),
        )  # fmt: skip

    def continues(self, earlier: ItemCatalogue) -> bool:
        """Whether it is the earlier one, item by item and figure by figure, with others after it or none."""
        return self.first(len(earlier.ids)).digest == earlier.digest

    def grown(self, by: ItemCatalogue) -> ItemCatalogue:
        """With the other's items that are new here at the end; what was known of the others stays as it was."""
        return _grown(self, by, np.array([n for n, name in enumerate(by.ids) if name not in self.numbers], np.int64))

    @property
    def bounds(self) -> dict[str, Callable[[NDArray[Any]], NDArray[Any]]]:
        """What brings figures of items that come later to where those of the first are: devices compute with them.

        None has more ratings, other features, or an earlier or later year; a year may be unknown.
        """
        content, counts = self.public.content, self.public.popularity
        years = self.public.years[self.public.years > 0]
        first, last = years.min(initial=2**31), years.max(initial=0)
        return {
            "content": lambda new: np.clip(
                new, content.min(axis=0, initial=np.inf), content.max(axis=0, initial=-np.inf)
            ),
            "popularity": lambda new: np.minimum(new, counts.max(initial=0)),
            "average": lambda new: np.clip(new, STANDARD_LOW, STANDARD_HIGH),
            "years": lambda new: np.where(new != 0, np.clip(new, first, last), 0),
        }

    @property
    def figures(self) -> str:
        """Where counts and averages come from, and what they cost whom, in words."""
        source, epsilon = self.public.source, self.public.epsilon
        if self.is_public:
            return f"counts of {_SOURCES['public']}{source.removeprefix('public')}"
        cost = "exact" if epsilon is None else f"with noise, ε = {epsilon:g}"
        return f"counts of {_SOURCES[_kind(source)]}, {cost}"

    @property
    def tells_participants(self) -> bool:
        """Whether its figures are exact ones of the participants: two of them differ by who joined in between."""
        return not self.is_public and self.public.epsilon is None

    @property
    def is_public(self) -> bool:
        """Whether its figures are of other people than the participants."""
        return _kind(self.public.source) == "public"

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays, for a file or the wire."""
        public = self.public
        facts: dict[str, Any] = {"ids": self.ids, "titles": self.titles, "scale": str(self.scale)}
        facts |= {"mean": public.mean, "noise": public.noise, "source": public.source, "epsilon": public.epsilon}
        facts["people"] = public.people
        tables = {name: np.ascontiguousarray(getattr(public, name)) for name in _TABLES}
        return {"about": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8), **tables}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> ItemCatalogue:
        """What ``arrays`` made; KeyError, TypeError or ValueError, with the field's name, where something else did."""
        facts = json.loads(arrays["about"].tobytes().decode())
        ids, titles = tuple(facts["ids"]), tuple(facts["titles"])
        mean, noise = float(facts["mean"]), float(facts["noise"])
        if len(set(ids)) != len(ids):
            raise ValueError("`ids` has an item twice")
        if len(titles) not in (0, len(ids)):
            raise ValueError(f"`titles` has {len(titles)} rows for {len(ids)} items")
        for name in _TABLES:
            _check_table(name, arrays[name], len(ids))
        if not np.isfinite(mean) or not 0 < noise < np.inf:
            raise ValueError("`mean` and `noise` must be finite, and `noise` greater than zero")
        source, epsilon = str(facts["source"]), facts["epsilon"]
        if _kind(source) not in _SOURCES or not (epsilon is None or 0 < float(epsilon) < np.inf):
            raise ValueError("`source` and `epsilon` say nothing that is known")
        content, popularity, average, years = (arrays[name] for name in _TABLES)
        people = int(facts["people"])
        public = PublicItems(content, popularity, average, years, mean, noise, source, epsilon, people)
        return cls(ids, titles, Scale.parse(facts["scale"]), public)

    def model(self, config: Config, V: NDArray[Any], dense: NDArray[Any]) -> SharedModel:
        """The model that V and dense arrays make with these items: anybody may have it, and fold themselves into it."""
        ids = np.array(self.ids, dtype=str)
        return SharedModel(config, self.scale, V, self.public, ids, self.titles, dense=dense)


def _grown(catalogue: ItemCatalogue, by: ItemCatalogue, new: NDArray[np.int64]) -> ItemCatalogue:
    """A catalogue with some of another's items at its end, in its own columns and of as many people as its own."""
    ours, theirs = catalogue.public, by.public.of_items(new)
    if by.scale != catalogue.scale or ours.content.shape[1] != theirs.content.shape[1]:
        raise UserError(
            "the new items are on another scale or have other features",
            "describe them as the first were, or begin a new model",
        )
    if by.tells_participants and not catalogue.tells_participants:
        raise UserError(
            "exact figures of participants beside figures that tell nothing of them", "count new items in a public set"
        )
    people = ours.people / by.public.people if ours.people and by.public.people else 1.0
    columns: dict[str, NDArray[Any]] = {
        "content": theirs.content * _column_units(catalogue, by),
        "popularity": np.rint(theirs.popularity * people),
        "average": theirs.averages() if len(ours.average) else ours.average,
        "years": (theirs.years if len(theirs.years) else np.zeros(len(new))) if len(ours.years) else ours.years,
    }
    tables: dict[str, Any] = {
        name: np.concatenate([table, catalogue.bounds[name](column).astype(table.dtype)])
        for name, column in columns.items() for table in [getattr(ours, name)]
    }  # fmt: skip
    names, titles = by.titles or ("",) * len(by.ids), catalogue.titles
    return replace(
        catalogue,
        ids=catalogue.ids + tuple(by.ids[number] for number in new),
        titles=titles + tuple(names[number] for number in new) if titles else (),
        public=replace(ours, **tables),
    )


def _column_units(catalogue: ItemCatalogue, by: ItemCatalogue) -> NDArray[np.float64]:
    """What a feature of the other counts in these columns: genres weigh by how rare they are among all items there."""
    both = [(number, by.numbers[name]) for name, number in catalogue.numbers.items() if name in by.numbers]
    here, there = (np.array(column, np.int64) for column in (zip(*both, strict=True) if both else ((), ())))
    sizes = [np.abs(one.public.content[places]).sum(axis=0) for one, places in ((catalogue, here), (by, there))]
    units: NDArray[np.float64] = np.divide(sizes[0], sizes[1], out=np.ones(len(sizes[1])), where=sizes[1] > 0)
    return units


def _kind(source: str) -> str:
    """What a source is, without the name of the data set.

    >>> _kind("public: ml-1m"), _kind("participants")
    ('public', 'participants')
    """
    return source.partition(":")[0]


def _check_table(name: str, table: NDArray[Any], items: int) -> None:
    """Refuse a table that rounds or predictions would fail on, be it after the last round."""
    if table.ndim != (2 if name == "content" else 1):
        raise ValueError(f"`{name}` has {table.ndim} dimensions")
    if len(table) != items and (len(table) or name not in _OPTIONAL):
        raise ValueError(f"`{name}` has {len(table)} rows for {items} items")
    if not np.isfinite(table).all():
        raise ValueError(f"`{name}` has values that are not finite")
    if name == "popularity" and (table < 0).any():
        raise ValueError("`popularity` has counts below zero")
