"""What everybody may know of the items. The server has it as a file, each device gets it once and keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data.scale import Scale
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.protocol import PublicItems
from fedrecplus.training.model_files import SharedModel

_TABLES = ("content", "popularity", "average", "years")
_OPTIONAL = ("average", "years")
"""empty where nobody knows them"""


@dataclass(frozen=True)
class ItemCatalogue:
    """The items by number: ids, titles, the scale they are rated on, and what the rounds look at."""

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    """no titles where there are none"""
    scale: Scale
    public: PublicItems

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Item id → item number."""
        return {name: number for number, name in enumerate(self.ids)}

    @cached_property
    def digest(self) -> str:
        """A name that two equal catalogues share."""
        return Packet({}, self.arrays()).digest

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays, for a file or the wire."""
        public = self.public
        facts: dict[str, Any] = {"ids": self.ids, "titles": self.titles, "scale": str(self.scale)}
        facts |= {"mean": public.mean, "noise": public.noise}
        tables = {name: np.ascontiguousarray(getattr(public, name)) for name in _TABLES}
        return {"about": np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8), **tables}

    @classmethod
    def of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> ItemCatalogue:
        """What ``arrays`` made; KeyError, TypeError or ValueError, with the field's name, where something else did."""
        facts = json.loads(arrays["about"].tobytes().decode())
        ids, titles = tuple(facts["ids"]), tuple(facts["titles"])
        mean, noise = float(facts["mean"]), float(facts["noise"])
        if len(titles) not in (0, len(ids)):
            raise ValueError(f"`titles` has {len(titles)} rows for {len(ids)} items")
        for name in _TABLES:
            _check_table(name, arrays[name], len(ids))
        if not np.isfinite(mean) or not 0 < noise < np.inf:
            raise ValueError("`mean` and `noise` must be finite, and `noise` greater than zero")
        public = PublicItems(*(arrays[name] for name in _TABLES), mean=mean, noise=noise)
        return cls(ids, titles, Scale.parse(facts["scale"]), public)

    def model(self, config: Config, V: NDArray[Any]) -> SharedModel:
        """The model that V makes with these items: anybody may have it, and fold themselves into it."""
        return SharedModel(config, self.scale, V, self.public, np.array(self.ids, dtype=str), self.titles)


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
