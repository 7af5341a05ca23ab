"""Predictions and top-N lists, as a client's own device would make them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data import STANDARD_HIGH
from fedrecplus.errors import UserError
from fedrecplus.parts import LONG_AGO, MOMENT, recency_weights, unit_rows
from fedrecplus.training.evaluation import Fallback, Predictor, client_means
from fedrecplus.training.lists import (
    Choices,
    ListChoices,
    ListOptions,
    Price,
    Reason,
    Recommendation,
    TopList,
    check_length,
    columns_of,
    diversified,
    figures_of,
    reasons,
    recommendations,
    title_of,
)
from fedrecplus.training.model_files import PrivateParts, SharedModel, nobodys_parts
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
    """weights for lists in which all ratings count alike; None where predicted ratings rank"""
    ages: NDArray[Any] | None = None
    """how many choices ago each rating was; None where nobody knows"""
    backend: str = "polars"
    """library of the frames that it gives"""

    def __repr__(self) -> str:
        return f"Person({len(self.items)} ratings, {self.model.config.algorithm!r})"

    def predict(self, item_ids: Sequence[Any]) -> Array:
        """Predicted ratings on the data's scale."""
        return self.model.scale.restore(self._raw()[numbers_of(self.model.item_ids, item_ids, "item")])

    def recommend(self, n: int = 10, *, backend: str | None = None, **options: Unpack[ListChoices]) -> Any:
        """The list of ``top_items`` as a frame: columns rank, item, score, rating and title, and because."""
        from fedrecplus.data import frame_of  # here: a node makes lists without polars

        return frame_of(columns_of(self.top_items(n, **options), options.get("why", False)), backend or self.backend)

    def top_items(self, n: int = 10, **options: Unpack[ListChoices]) -> list[Recommendation]:
        """The n best items among those the client hasn't rated; ``ListOptions`` has the options.

        A list says what comes next: recent choices count most, where their order is known and validation found that
        this helps.
        """
        return list(self.top_list(ListOptions(n, **options)).items)

    def top_list(self, options: ListOptions) -> TopList:
        """The list, with the price of exploring."""
        model, own = self.model, self._choices(options)
        scores = self._scores(options.by, own)
        ratings, ranked = model.scale.restore(self._raw()), scores.copy()
        if not options.include_seen:
            ranked[np.concatenate([self.items, own.items])] = -np.inf
        best, price = top(ranked, model.public.popularity, options.n), None
        if options.explore > 0:
            plain, best = best, diversified(ranked, model, options.n, options.explore)
            before, after = (figures_of(model, items, scores, ratings) for items in (plain, best))
            price = Price(before, after)
        because: Sequence[tuple[Reason, ...]] = [()] * len(best)
        if options.why and len(own.items):
            because = reasons(model, own, best, options.by)
        return TopList(recommendations(model, best, scores, ratings, because), price, model.likes_alone)

    def _choices(self, options: ListOptions) -> Choices:
        """What the list is made of, of items that the model knows."""
        if options.after is not None or options.session:
            return self._moment(options)
        known = self.model.known[self.items]
        recency = None
        if not options.any_time and options.by == "list" and self.ages is not None:
            recency = recency_weights(self.ages[known], self.model.decay)
        return Choices(self.items[known], self.ratings[known], recency)

    def _moment(self, options: ListOptions) -> Choices:
        """The session alone, or all that was chosen and then one item more."""
        model, chosen = self.model, self.model.config.model
        if not chosen.CHOICES or chosen.POPULAR_LISTS:
            lists = "lists what is popular" if chosen.POPULAR_LISTS else "learns from ratings, not from choices"
            raise UserError(
                f"the model {chosen.rule!r} {lists}: it follows no session, and nothing that was just chosen",
                "leave --after and --session out, or train fedrec+secure, fcf or another model of choices",
            )
        latest = numbers_of(model.item_ids, options.session or [options.after], "item")[::-1]
        before = ~np.isin(self.items, latest) & (options.after is not None)
        ages = np.full(len(self.items), LONG_AGO) if self.ages is None else self.ages + 1
        items = np.concatenate([latest, self.items[before]])
        ratings = np.concatenate([np.full(len(latest), STANDARD_HIGH), self.ratings[before]])
        recency = recency_weights(np.concatenate([np.arange(len(latest)), ages[before]]), model.decay or MOMENT)
        assert recency is not None
        known = model.known[items]
        return Choices(items[known], ratings[known], recency[known])

    def _scores(self, by: str, own: Choices) -> Array:
        """What ranks all items. Of a person without ratings nothing is known: popularity ranks then."""
        if by == "list" and len(own.items) == 0:
            return self.model.public.popularity.astype(np.float64)
        if self.z is None or by == "rating":
            return self._raw()
        z: Any = self.z
        if own.recency is not None:
            z = self.model.list_weights(self.w.astype(np.float64), own.items, own.ratings, own.recency)
        scores: Array = self.model.scores(z)
        scores[~self.model.known] = scores.min()
        return scores

    def _raw(self) -> Array:
        """Predictions for all items in standard units, as evaluations have them (``Fallback``).

        Items nobody rated get the client's mean, or half of it; for a client without ratings, items get theirs.
        """
        model, own, everything = self.model, len(self.items), np.arange(len(self.model.item_ids))
        averages, rated = model.public.averages(), model.public.popularity > 0
        mean = client_means(np.array([0, own]), self.items, self.ratings, averages, model.public.mean)
        fallback = Fallback(mean, averages, np.array([own > 0]), rated, model.known, model.public.mean)
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
        return cls(model, nobodys_parts())

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
        ages = None if self.clients.ages is None else self.clients.ages[part]
        return Person(self.model, self.clients.W[number], self.clients.items[part].astype(np.int64), ratings, z, ages)

    def predict(self, client_id: Any, item_ids: Sequence[Any]) -> Array:
        """A client's predicted ratings of some items, on the data's scale."""
        return self.client(client_id).predict(item_ids)

    def recommend(self, client_id: Any, n: int = 10, *, backend: str = "polars", **options: Unpack[ListChoices]) -> Any:
        """The n best items for a client as a frame: see ``Person.recommend``."""
        return self.client(client_id).recommend(n, backend=backend, **options)

    def top_items(self, client_id: Any, n: int = 10, **options: Unpack[ListChoices]) -> list[Recommendation]:
        """The same as objects: see ``Person.top_items``."""
        return self.client(client_id).top_items(n, **options)

    def predict_pairs(self, users: Sequence[Any], items: Sequence[Any]) -> Array:
        """Predicted ratings of pairs, on the data's scale.

        Of a user without ratings items are predicted by their means, an item without ratings by the user's, as in
        evaluations.
        """
        model, parts = self.model, self.clients
        people, places = places_among(parts.client_ids, np.array(users)), places_among(model.item_ids, np.array(items))
        values, public = model.scale.standardise(model.scale.values(parts.codes)), model.public
        averages = public.averages()
        # one more client and item, −1, of whom nothing is known
        fallback = Fallback(
            np.append(client_means(parts.indptr, parts.items, values, averages, public.mean), public.mean),
            np.append(averages, public.mean),
            np.append(np.diff(parts.indptr) > 0, False),
            np.append(public.popularity > 0, False),
            np.append(model.known, False),
            public.mean,
        )
        standard = np.zeros(len(people))
        both = (people >= 0) & (places >= 0)
        standard[both] = Predictor(parts.W, model.X, scored_by=model.scored_by).predict(people[both], places[both])
        return model.scale.restore(fallback.mend(standard, people, places))

    def lists(self, users: Sequence[Any], options: ListOptions) -> dict[str, list[Any]]:
        """The best items of each user, best first: columns user, rank, item, score, rating, title, because.

        ``because``, where reasons are asked for, has the ids of the user's own items that speak most for each.
        """
        columns: dict[str, list[Any]] = {"user": [], **columns_of((), options.why)}
        for user in users:
            best = self.client(user).top_list(options).items
            columns["user"] += [user] * len(best)
            for name, values in columns_of(best, options.why).items():
                columns[name] += values
        return columns

    def similar_items(self, item: Any, n: int = 10) -> dict[str, list[Any]]:
        """The n rated items whose rows of the shared table are most like this one's, by columns.

        After: Sarwar et al. 2001, cosine similarity, of factors instead of ratings.
        """
        check_length(n)
        model = self.model
        number = int(numbers_of(model.item_ids, [item], "item")[0])
        rows = unit_rows(model.factors)
        similarity = rows @ rows[number]
        similarity[model.public.popularity == 0] = -np.inf
        similarity[number] = -np.inf
        best = top(similarity, model.public.popularity, n)
        titles = [title_of(model, place) for place in best.tolist()]
        return {"item": model.item_ids[best].tolist(), "similarity": similarity[best].tolist(), "title": titles}

    def fold_in(self, ratings: Mapping[Any, float] | Iterable[tuple[Any, float]]) -> Person:
        """A newcomer with these ratings (item id → rating, the latest last): weights in closed form, on the device."""
        try:
            model, ratings = self.model, dict(ratings)
        except (TypeError, ValueError):
            raise UserError("these are no ratings of items", "give item → rating, such as fold_in({50: 5})") from None
        values = np.array(list(ratings.values()), dtype=np.float64)
        if not model.scale.holds(values).all():
            raise UserError(f"ratings {values.tolist()} are not all on the scale {model.scale}", "rate on the scale")
        items = numbers_of(model.item_ids, list(ratings), "item", self._item_places)
        standard = model.scale.standardise(values)
        known = model.known[items]
        w = model.fold_in(items[known], standard[known])
        z, ages = model.list_weights(w, items[known], standard[known]), np.arange(len(items))[::-1]
        return Person(model, w, items, standard, z, ages)

    @cached_property
    def _client_places(self) -> dict[Any, int]:
        return places_of(self.clients.client_ids)

    @cached_property
    def _item_places(self) -> dict[Any, int]:
        return places_of(self.model.item_ids)


def places_of(ids: NDArray[Any]) -> dict[Any, int]:
    """Id → number."""
    return {name: number for number, name in enumerate(ids.tolist())}


def places_among(known: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Where each wanted id is among the known ones, as text where not both are numbers; −1 where it isn't."""
    if not all(ids.dtype.kind in "iu" for ids in (known, wanted)):
        known, wanted = known.astype(str), wanted.astype(str)
    places = places_of(known)
    return np.array([places.get(name, -1) for name in wanted.tolist()], dtype=np.int64)


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
