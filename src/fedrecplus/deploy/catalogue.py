"""What everybody may know of the items: the server's file of them, which each device gets once and keeps."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, fields
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
from fedrecplus.simulation import prepare
from fedrecplus.training.atomic import write_tensors
from fedrecplus.training.model_files import read_tensors

ITEMS = "items.safetensors"


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
        """From a public data set. What a simulation holds public is kept, and the mean rating, but no rating."""
        titles = ratings.catalogue.titles if ratings.catalogue else ()
        mean = float(ratings.standard_values.mean()) if len(ratings) else 3.0
        ids = tuple(str(name) for name in ratings.item_ids.tolist())
        return cls(ids, titles, ratings.scale, mean, prepare(ratings, Config()).public)

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
        """What ``arrays`` made."""
        facts = json.loads(arrays["about"].tobytes().decode())
        ids, titles = tuple(facts["ids"]), tuple(facts["titles"])
        public = PublicItems(**{field.name: arrays[field.name] for field in fields(PublicItems)})
        if not len(ids) == len(public.content) == len(public.popularity) or len(titles) not in (0, len(ids)):
            raise ValueError("a catalogue whose columns differ in length")
        return cls(ids, titles, Scale.parse(facts["scale"]), float(facts["mean"]), public)

    def write(self, path: Path) -> None:
        """Write the file that a server runs with."""
        write_tensors(path, self.arrays(), {}, private=False)

    @classmethod
    def read(cls, path: Path) -> ItemCatalogue:
        """Read the file that ``write`` wrote."""
        arrays, _ = read_tensors(path)
        try:
            return cls.of_arrays(arrays)
        except (KeyError, ValueError) as error:
            raise UserError(f"{path} is no item catalogue: {error}", "make one with `deploy items`") from None
