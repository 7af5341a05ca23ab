"""Ratings that come later, and people who leave."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.joining import join, one_set
from fedrecplus.data.ratings import Catalogue, Ratings
from fedrecplus.errors import UserError


def added(ratings: Ratings, more: Ratings) -> Ratings:
    """All of both; of a pair that both have, the rating that comes later counts.

    New people and new items come after the others, with what ``more`` says of these; but a public list of items stays
    as it is.
    """
    of_more = more
    ratings, more = join(ratings, more, strangers=True)
    known, again = (one.client_of_rating.astype(np.int64) * one.item_count + one.items for one in (ratings, more))
    both = one_set(ratings.where(~np.isin(known, again)), more)
    return replace(both, catalogue=_described(both, of_more))


def _described(both: Ratings, more: Ratings) -> Catalogue | None:
    """The catalogue in which new items have the lines that came with them, genre by genre."""
    known, news = both.catalogue, more.catalogue
    if known is None or news is None:
        return known
    place = {str(name): number for number, name in enumerate(more.item_ids.tolist())}
    names = [str(name) for name in both.item_ids.tolist()]
    new = [number for number, title in enumerate(known.titles) if not title and names[number] in place]
    positions = [place[names[number]] for number in new]
    titles, years, genres = list(known.titles), known.years.copy(), known.genres.copy()
    for number, line in zip(new, positions, strict=True):
        titles[number] = news.titles[line]
    years[new] = news.years[positions]
    for column, name in enumerate(known.genre_names):
        if name in news.genre_names:
            genres[new, column] = news.genres[positions, news.genre_names.index(name)]
    return replace(known, titles=tuple(titles), years=years, genres=genres)


def without(ratings: Ratings, people: Collection[Any]) -> Ratings:
    """The ratings as if some people, by their ids, had never been there; an unknown id is an error."""
    names, leaving_names = ratings.client_ids.astype(str), sorted({str(person) for person in people})
    if strangers := np.setdiff1d(leaving_names, names).tolist():
        examples = ", ".join(names[:3].tolist())
        raise UserError(f"nobody is called {strangers[0]!r} in {ratings.name}", f"people have ids such as {examples}")
    leaving = np.isin(names, leaving_names)
    return rated_alone(ratings.where(~leaving[ratings.client_of_rating]))


def rated_alone(ratings: Ratings) -> Ratings:
    """Without people who have no rating and, unless they are of a public list, items that have none."""
    people = np.flatnonzero(np.diff(ratings.indptr) > 0)
    items = np.arange(ratings.item_count) if ratings.listed else np.flatnonzero(ratings.item_counts() > 0)
    places = np.searchsorted(people, ratings.client_of_rating), np.searchsorted(items, ratings.items)
    ids = {"client_ids": ratings.client_ids[people], "item_ids": ratings.item_ids[items]}
    return ratings.renumbered(*places, **ids, catalogue=_of_items(ratings.catalogue, items))


def _of_items(catalogue: Catalogue | None, items: NDArray[np.int64]) -> Catalogue | None:
    if catalogue is None:
        return None
    titles = tuple(catalogue.titles[item] for item in items.tolist())
    return replace(catalogue, titles=titles, years=catalogue.years[items], genres=catalogue.genres[items])
