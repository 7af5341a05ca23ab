"""Predictions and top-N lists, as a client's own device would make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import on_scale
from fedrecplus.errors import UserError
from fedrecplus.model import predict
from fedrecplus.rounds.refit import expected, holds_rows, refit
from fedrecplus.training.model_files import PrivateParts, SharedModel
from fedrecplus.training.ranking import top

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Recommendation:
    """One item of a top-N list."""

    item: Any
    """its id in the data"""
    rating: float
    """predicted, on the data's scale"""
    title: str
    """empty where the data has no titles"""


@dataclass(frozen=True)
class Person:
    """One client with what only it knows: its factors and its ratings."""

    model: SharedModel
    U: NDArray[Any]
    items: NDArray[np.int64]
    """rated items, by number"""
    ratings: Array
    """their ratings in standard units"""

    def predict(self, item_ids: Sequence[Any]) -> Array:
        """Predicted ratings on the data's scale."""
        return self.model.scale.restore(self._raw()[numbers_of(self.model.item_ids, item_ids, "item")])

    def recommend(self, n: int = 10) -> list[Recommendation]:
        """The n items with the highest predictions among those the client hasn't rated."""
        if n < 1:
            raise UserError(f"a list of {n} items is none", "ask for at least one")
        scores = self._raw()
        ratings = self.model.scale.restore(scores)
        scores[self.items] = -np.inf
        best = top(scores, self.model.popularity, n)
        titles = self.model.titles or ("",) * len(scores)
        return [Recommendation(self.model.item_ids[i].item(), float(ratings[i]), titles[i]) for i in best]

    def _raw(self) -> Array:
        """Predictions for all items in standard units; where an item without training ratings has no row to predict
        from, it gets the client's mean."""
        model = self.model
        if len(self.items) == 0:
            return np.full(len(model.V), model.fallback_mean)
        U = self.U.astype(np.float64)
        raw = predict(U, model.V.astype(np.float64), model.mean)
        if not holds_rows(model.config):
            raw[model.popularity == 0] = self.ratings.mean()
        return raw


@dataclass(frozen=True)
class Recommender:
    """A trained model and the simulated clients' private parts.

    In a deployment each client has the model and its own part; here one object stands for all devices.
    """

    model: SharedModel
    clients: PrivateParts

    @classmethod
    def load(cls, run_folder: str | Path) -> Recommender:
        """The recommender of a finished run."""
        folder = Path(run_folder)
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder", "give the folder that train wrote")
        return cls(SharedModel.read(folder), PrivateParts.read(folder))

    def save(self, folder: Path) -> None:
        """Write both parts into a run folder."""
        self.model.write(folder)
        self.clients.write(folder)

    def client(self, client_id: Any) -> Person:
        """One client, by its id in the data."""
        number = int(numbers_of(self.clients.client_ids, [client_id], "client", self._client_places)[0])
        part = slice(self.clients.indptr[number], self.clients.indptr[number + 1])
        scale = self.model.scale
        ratings = scale.standardise(scale.values(self.clients.codes[part]))
        return Person(self.model, self.clients.U[number], self.clients.items[part].astype(np.int64), ratings)

    def predict(self, client_id: Any, item_ids: Sequence[Any]) -> Array:
        """A client's predicted ratings of some items, on the data's scale."""
        return self.client(client_id).predict(item_ids)

    def recommend(self, client_id: Any, n: int = 10) -> list[Recommendation]:
        """The n items a client hasn't rated and would like best."""
        return self.client(client_id).recommend(n)

    def fold_in(self, ratings: Mapping[Any, float]) -> Person:
        """A newcomer with these ratings (item id → rating): factors in closed form, on the device, from V alone."""
        model = self.model
        values = np.array(list(ratings.values()), dtype=np.float64)
        if not model.scale.holds(values).all():
            raise UserError(f"ratings {values.tolist()} are not all on the scale {model.scale}", "rate on the scale")
        items = numbers_of(model.item_ids, list(ratings), "item")
        standard = model.scale.standardise(values)
        known = model.popularity[items] > 0
        settings = on_scale(model.config, model.scale)
        start = expected(model.V, model.popularity, model.fallback_mean, model.mean, settings)
        V = model.V[items[known]].astype(np.float64)
        U = start.U
        if known.any():
            U = refit(V, standard[known], model.mean, settings, start)
        return Person(model, U, items, standard)

    @cached_property
    def _client_places(self) -> dict[Any, int]:
        return places_of(self.clients.client_ids)


def places_of(ids: NDArray[Any]) -> dict[Any, int]:
    """Id → number."""
    return {name: number for number, name in enumerate(ids.tolist())}


def numbers_of(
    ids: NDArray[Any], wanted: Sequence[Any], kind: str, places: Mapping[Any, int] | None = None
) -> NDArray[np.int64]:
    """The numbers behind ids; an unknown one is an error that shows what ids look like here."""
    places = places_of(ids) if places is None else places
    read = int if ids.dtype.kind in "iu" else str
    numbers = []
    for name in wanted:
        try:
            numbers.append(places[read(name)])
        except (KeyError, ValueError):
            some = ", ".join(str(known) for known in ids[:3])
            on_devices = "a deployed run has none; use `fedrecplus device recommend`"
            remedy = f"{kind}s here have ids such as {some}" if some else on_devices
            raise UserError(f"unknown {kind} {name!r}", remedy) from None
    return np.array(numbers, dtype=np.int64)
