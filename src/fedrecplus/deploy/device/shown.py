"""The rows that a person's uploads show, by item id: one set for all models, pinned to the first catalogue.

Sets that are drawn anew for each model tell the rated rows apart: these come in every model, the others in some. So the
first set, with its virtual ratings, is kept beside the ratings and used again in every later model, as far as its items
are known there. What enters later enters by batches, and then it, too, is the same in all models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.device import Decoys, Device
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.rounds import virtual_ratings


@dataclass(frozen=True)
class ShownRows:
    """What uploads of one person have shown, whatever the model."""

    catalogue: str
    """digest of the catalogue that the set was drawn with, and is added to by"""
    rated: Mapping[str, float]
    """item id → rating that uploads are made with, in standard units"""
    pseudo: Mapping[str, float | None]
    """item id → kept virtual rating; None where the settings compute it anew in each round"""

    def client(self, one: Device, catalogue: ItemCatalogue, message: Broadcast, config: Config) -> Device | None:
        """The client with these rows in a model over a catalogue; None where the catalogue has no rated one."""
        items, ratings = _known(self.rated, catalogue)
        if len(items) == 0:
            return None
        pseudo, virtual = _known(self.pseudo, catalogue)
        one = replace(one, items=items, ratings=ratings)
        missing = np.isnan(virtual)
        if config.virtual_ratings.settings.refresh:
            virtual = np.zeros(len(virtual))
        elif missing.any():
            virtual[missing] = virtual_ratings(pseudo[missing], one, message, config)
        return replace(one, kept=Decoys(pseudo, virtual))

    def after(self, client: Device, catalogue: ItemCatalogue, config: Config) -> ShownRows:
        """What is shown after a round: the client's rows, and those of items that this catalogue lacks."""
        kept = client.kept
        assert kept is not None
        names = catalogue.ids
        rated = {names[item]: rating for item, rating in _pairs(client.items, client.ratings)}
        if config.virtual_ratings.settings.refresh:
            pseudo = {names[item]: self.pseudo.get(names[item]) for item in kept.items.tolist()}
        else:
            pseudo = {names[item]: rating for item, rating in _pairs(kept.items, kept.ratings)}
        others = {item: rating for item, rating in self.rated.items() if item not in catalogue.numbers}
        decoys = {item: rating for item, rating in self.pseudo.items() if item not in catalogue.numbers}
        return replace(self, rated={**others, **rated}, pseudo={**decoys, **pseudo})


def pins_sets(config: Config) -> bool:
    """Whether uploads have pseudo rows that stay."""
    return config.hides_rows and not config.redraws


def load_shown(store: Store) -> dict[int, ShownRows]:
    """What each person's uploads have shown."""
    rows = store.connection.execute("SELECT person, catalogue, rated, pseudo FROM shown")
    return {person: ShownRows(name, json.loads(rated), json.loads(pseudo)) for person, name, rated, pseudo in rows}


def save_shown(store: Store, person: int, rows: ShownRows) -> None:
    """Keep it; within ``Store.changing``."""
    store.put("shown", [(person, rows.catalogue, json.dumps(dict(rows.rated)), json.dumps(dict(rows.pseudo)))])


def pinned_public(pinned: ItemCatalogue | None, catalogue: ItemCatalogue) -> PublicItems:
    """What pseudo items are drawn by: the first catalogue's figures where it has the items, else this one's.

    Groups that followed a later catalogue's counts would cut across those that are shown already.
    """
    if pinned is None or pinned.digest == catalogue.digest:
        return catalogue.public
    if pinned.ids == catalogue.ids:
        return pinned.public
    places = np.array([pinned.numbers.get(name, -1) for name in catalogue.ids], dtype=np.int64)
    popularity = np.where(places >= 0, pinned.public.popularity[places], catalogue.public.popularity)
    return replace(catalogue.public, popularity=popularity)


def _known(rows: Mapping[str, float | None], catalogue: ItemCatalogue) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Those of items that the catalogue has, by number, ascending; NaN where there is no value."""
    known = sorted((catalogue.numbers[item], value) for item, value in rows.items() if item in catalogue.numbers)
    values = [np.nan if value is None else value for _, value in known]
    return np.array([number for number, _ in known], dtype=np.int64), np.array(values, dtype=np.float64)


def _pairs(items: NDArray[np.int64], values: NDArray[np.float64]) -> list[tuple[int, float]]:
    return list(zip(items.tolist(), values.tolist(), strict=True))
