"""What everybody may know of the items: the server's file of them, which each device gets once and keeps."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError
from fedrecplus.protocol import PublicItems
from fedrecplus.simulation import item_averages, mean_rating, prepare
from fedrecplus.training.atomic import write_tensors
from fedrecplus.training.model_files import read_tensors

ITEMS = "items.safetensors"
FEWEST = 3
"""ratings that an average is published of: of one it would be the rating, of two each rater could tell the other's"""


@dataclass(frozen=True)
class ItemCatalogue:
    """The items by number: ids, titles, features and popularity, and the scale they are rated on."""

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    """no titles where there are none"""
    scale: Scale
    mean: float
    """mean rating in standard units, from public figures: predicted for a person nobody knows anything of"""
    public: PublicItems
    """the part that the round functions look at"""

    @classmethod
    def of(cls, ratings: Ratings) -> ItemCatalogue:
        """With all that a simulation holds public, averages of single ratings included: for a try on one machine."""
        titles = ratings.catalogue.titles if ratings.catalogue else ()
        ids = tuple(str(name) for name in ratings.item_ids.tolist())
        return cls(ids, titles, ratings.scale, mean_rating(ratings), prepare(ratings, Config()).public)

    @classmethod
    def to_publish(cls, ratings: Ratings, *, averages: bool = True) -> ItemCatalogue:
        """From a public data set, for people to have: with averages of ``FEWEST`` ratings and more, or without any.

        An item with fewer has the mean rating for its average. That mean, too, is over the other items alone: what it
        lacked of the shown averages would be the sum of those that are held back.
        """
        whole = cls.of(ratings)
        often = ratings.where(whole.public.popularity[ratings.items] >= FEWEST)
        average = item_averages(often) if averages else np.zeros(0)
        return replace(whole, mean=mean_rating(often), public=replace(whole.public, average=average))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Item id → item number."""
        return {name: number for number, name in enumerate(self.ids)}

    @cached_property
    def digest(self) -> str:
        """A name that two equal catalogues share."""
        hashed = hashlib.sha256()
        for name, table in sorted(self.arrays().items()):
            hashed.update(name.encode() + str(table.dtype).encode() + str(table.shape).encode() + table.tobytes())
        return hashed.hexdigest()[:32]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays, for a file or the wire."""
        facts = {"ids": self.ids, "titles": self.titles, "scale": str(self.scale), "mean": self.mean}
        text = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
        tables = {field.name: getattr(self.public, field.name) for field in fields(PublicItems)}
        return {"about": text, **{name: np.ascontiguousarray(table) for name, table in tables.items()}}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> ItemCatalogue:
        """What ``arrays`` made; KeyError, TypeError or ValueError, with the field's name, where something else did."""
        facts = json.loads(arrays["about"].tobytes().decode())
        ids, titles = tuple(facts["ids"]), tuple(facts["titles"])
        public = PublicItems(**{field.name: arrays[field.name] for field in fields(PublicItems)})
        mean, items = float(facts["mean"]), len(ids)
        if len(titles) not in (0, items):
            raise ValueError(f"`titles` has {len(titles)} rows for {items} items")
        for field in fields(PublicItems):
            _check(field.name, arrays[field.name], items)
        if not np.isfinite(mean):
            raise ValueError("`mean` is not a finite number")
        return cls(ids, titles, Scale.parse(facts["scale"]), mean, public)

    def write(self, path: Path) -> None:
        """Write the file that a server runs with."""
        write_tensors(path, self.arrays(), {}, private=False)

    @classmethod
    def read(cls, path: Path) -> ItemCatalogue:
        """Read the file that ``write`` wrote."""
        arrays, _ = read_tensors(path)
        try:
            return cls.of_arrays(arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} is no item catalogue: {error}", "make one with `deploy items`") from None


def _check(name: str, table: NDArray[Any], items: int) -> None:
    """Refuse a table that rounds or predictions would fail on, be it after the last round."""
    if table.ndim != (2 if name == "content" else 1):
        raise ValueError(f"`{name}` has {table.ndim} dimensions")
    if len(table) != items and (len(table) or name not in _OPTIONAL):
        raise ValueError(f"`{name}` has {len(table)} rows for {items} items")
    if not np.isfinite(table).all():
        raise ValueError(f"`{name}` has values that are not finite")
    if name == "popularity" and (table < 0).any():
        raise ValueError("`popularity` has counts below zero")


_OPTIONAL = ("average", "years")
"""empty where nobody knows them"""
