"""Predictions and top-N lists, as a client's own device would make them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.errors import UserError
from fedrecplus.training.evaluation import Fallback, client_means
from fedrecplus.training.lists import (
    Price,
    Reason,
    Recommendation,
    TopList,
    Wish,
    diversified,
    figures_of,
    reasons,
    recommendations,
)
from fedrecplus.training.model_files import PrivateParts, SharedModel
from fedrecplus.training.ranking import top

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Person:
    """One client with what only it knows: its weights and its ratings."""

    model: SharedModel
    w: NDArray[Any]
    items: NDArray[np.int64]
    """rated items, by number"""
    ratings: Array
    """their ratings in standard units"""
    z: NDArray[Any] | None = None
    """weights for lists; None where predicted ratings rank"""

    def __repr__(self) -> str:
        return f"Person({len(self.items)} ratings, {self.model.config.algorithm!r})"

    def predict(self, item_ids: Sequence[Any]) -> Array:
        """Predicted ratings on the data's scale."""
        return self.model.scale.restore(self._raw()[numbers_of(self.model.item_ids, item_ids, "item")])

    def recommend(
        self, n: int = 10, *, by: str = "list", exclude_seen: bool = True, explore: float = 0.0, why: bool = False
    ) -> list[Recommendation]:
        """The n best items among those the client hasn't rated, or with ``exclude_seen=False`` among all.

        ``by="list"`` ranks by the model's weights for lists, where it has any, ``by="rating"`` by predicted ratings.
        ``explore``, up to 1, trades score for items unlike each other: ``top_list`` says at what price. ``why`` names
        the client's own items that speak most for each.
        """
        return list(self.top_list(Wish(n, by, exclude_seen, explore, why)).items)

    def top_list(self, wish: Wish) -> TopList:
        """The list, with the price of exploring."""
        model, scores = self.model, self._scores(wish.by)
        ratings, ranked = model.scale.restore(self._raw()), scores.copy()
        if wish.exclude_seen:
            ranked[self.items] = -np.inf
        best, price = top(ranked, model.public.popularity, wish.n), None
        if wish.explore > 0:
            plain, best = best, diversified(ranked, model, wish.n, wish.explore)
            before, after = (figures_of(model, items, scores, ratings) for items in (plain, best))
            price = Price(before, after)
        because: Sequence[tuple[Reason, ...]] = [()] * len(best)
        if wish.why and len(self._known_items):
            known = model.known[self.items]
            because = reasons(model, self._known_items, self.ratings[known], best, wish.by)
        return TopList(recommendations(model, best, scores, ratings, because), price, model.likes_alone)

    @property
    def _known_items(self) -> NDArray[np.int64]:
        return self.items[self.model.known[self.items]]

    def _scores(self, by: str) -> Array:
        """What ranks all items. Of a person without ratings nothing is known: popularity ranks then."""
        if by == "list" and len(self._known_items) == 0:
            return self.model.public.popularity.astype(np.float64)
        if self.z is None or by == "rating":
            return self._raw()
        scores: Array = self.model.scores(self.z)
        scores[~self.model.known] = scores.min()
        return scores

    def _raw(self) -> Array:
        """Predictions for all items in standard units, as evaluations have them (``Fallback``).

        Items nobody rated get the client's damped mean, or half of it; for a client without ratings, items get theirs.
        """
        model, own, everything = self.model, len(self.items), np.arange(len(self.model.item_ids))
        mean = client_means(np.array([0, own]), self.ratings, model.public.mean)
        rated = model.public.popularity > 0
        fallback = Fallback(mean, model.public.averages(), np.array([own > 0]), rated, model.known, model.public.mean)
        raw: Array = model.scores(self.w)
        return fallback.mend(raw, np.zeros(len(everything), np.int64), everything)


@dataclass(frozen=True)
class Recommender:
    """A trained model and the simulated clients' private parts.

    In a deployment each client has the model and its own part; here one object stands for all devices.
    """

    model: SharedModel
    clients: PrivateParts

    def __repr__(self) -> str:
        counts = f"{len(self.clients.client_ids):,} clients × {len(self.model.item_ids):,} items"
        return f"Recommender({self.model.config.algorithm!r}, {counts}, scale {self.model.scale})"

    @classmethod
    def load(cls, run_folder: str | Path, allow: Collection[str] = ()) -> Recommender:
        """The recommender of a finished run; ``allow`` names parts from outside the package that it may import."""
        folder = Path(run_folder)
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder", "give the folder that train wrote")
        return cls(SharedModel.read(folder, allow), PrivateParts.read(folder))

    @classmethod
    def for_newcomers(cls, model: SharedModel) -> Recommender:
        """The recommender of those who have a model and no simulated clients: all of its persons are folded in."""
        nobody = np.zeros(0, dtype=np.int64)
        return cls(model, PrivateParts(nobody, nobody, nobody, nobody, nobody))

    def save(self, folder: str | Path) -> None:
        """Write both parts into a run folder."""
        self.model.write(Path(folder))
        self.clients.write(Path(folder))

    def client(self, client_id: Any) -> Person:
        """One client, by its id in the data."""
        number = int(numbers_of(self.clients.client_ids, [client_id], "client", self._client_places)[0])
        part = slice(self.clients.indptr[number], self.clients.indptr[number + 1])
        scale = self.model.scale
        ratings = scale.standardise(scale.values(self.clients.codes[part]))
        z = None if self.clients.Z is None else self.clients.Z[number]
        return Person(self.model, self.clients.W[number], self.clients.items[part].astype(np.int64), ratings, z)

    def predict(self, client_id: Any, item_ids: Sequence[Any]) -> Array:
        """A client's predicted ratings of some items, on the data's scale."""
        return self.client(client_id).predict(item_ids)

    def recommend(
        self,
        client_id: Any,
        n: int = 10,
        *,
        by: str = "list",
        exclude_seen: bool = True,
        explore: float = 0.0,
        why: bool = False,
    ) -> list[Recommendation]:
        """The n best items for a client: see ``Person.recommend``."""
        return self.client(client_id).recommend(n, by=by, exclude_seen=exclude_seen, explore=explore, why=why)

    def fold_in(self, ratings: Mapping[Any, float]) -> Person:
        """A newcomer with these ratings (item id → rating): weights in closed form, on the device."""
        model = self.model
        values = np.array(list(ratings.values()), dtype=np.float64)
        if not model.scale.holds(values).all():
            raise UserError(f"ratings {values.tolist()} are not all on the scale {model.scale}", "rate on the scale")
        items = numbers_of(model.item_ids, list(ratings), "item", self._item_places)
        standard = model.scale.standardise(values)
        known = model.known[items]
        w = model.fold_in(items[known], standard[known])
        return Person(model, w, items, standard, model.list_weights(w, items[known], standard[known]))

    @cached_property
    def _client_places(self) -> dict[Any, int]:
        return places_of(self.clients.client_ids)

    @cached_property
    def _item_places(self) -> dict[Any, int]:
        return places_of(self.model.item_ids)


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
            examples = ", ".join(str(known) for known in ids[:3])
            on_devices = "a deployed run has none; use `fedrecplus device recommend`"
            remedy = f"{kind}s here have ids such as {examples}" if examples else on_devices
            raise UserError(f"unknown {kind} {name!r}", remedy) from None
    return np.array(numbers, dtype=np.int64)
