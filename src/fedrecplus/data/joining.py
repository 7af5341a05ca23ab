"""Ratings of two files over the same clients and items: joined by their ids, never by their numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import NEVER_TESTED, Catalogue, Ratings, narrowest
from fedrecplus.errors import UserError

Ids = NDArray[Any]


def join(training: Ratings, test: Ratings, *, strangers: bool = False) -> tuple[Ratings, Ratings]:
    """Both with the same numbers for the same ids; clients and items that only the test knows are cold.

    They come after the others and have no training rating, so that they are predicted by the fallback and counted.
    To a public list of items no test rating adds one: those of other items are left out. ``strangers``: the test may be
    of other people alone.
    """
    check_rated(test, training.likes_alone)
    same_clients = _same(training.client_ids, test.client_ids)
    if same_clients and _same(training.item_ids, test.item_ids) and training.scale == test.scale:
        return training, test
    clients, client_of = _numbers(training.client_ids, test.client_ids, "client", strangers=strangers)
    items, item_of = _numbers(training.item_ids, test.item_ids, "item")
    if training.listed:
        items, test = items[: training.item_count], test.where(item_of[test.items] < training.item_count)
    grown = replace(
        training,
        indptr=np.append(training.indptr, np.full(len(clients) - training.clients, training.indptr[-1])),
        items=training.items.astype(narrowest(len(items))),
        client_ids=clients,
        item_ids=items,
        catalogue=_grown(training.catalogue, len(items)),
    )
    known = {**test.said(slice(None)), "codes": _codes(training, test)}
    rows = replace(grown, name=test.name, **known)
    return grown, rows.renumbered(client_of[test.client_of_rating], item_of[test.items])


def concatenate(training: Ratings, test: Ratings) -> Ratings:
    """One set of both, in which the test ratings are fold 0 and the others are never tested on.

    Where all of the test's pairs are rated in training, they are the list of what is held out of it.
    """
    rated, (training, test) = test, join(training, replace(test, rated=True))
    own, held_out = (part.client_of_rating.astype(np.int64) * part.item_count + part.items for part in (training, test))
    if len(test) and np.isin(held_out, own).all():
        return replace(training, folds=np.where(np.isin(own, held_out), 0, NEVER_TESTED).astype(np.uint8))
    check_rated(rated, training.likes_alone)
    fold = np.concatenate([np.full(len(training), NEVER_TESTED, np.uint8), np.zeros(len(test), np.uint8)])
    return one_set(training, test, fold)


def check_rated(test: Ratings, likes_alone: bool) -> None:
    """Refuse who chose what as a test of ratings: all of it would be taken for the highest rating."""
    if not (test.rated or likes_alone):
        raise UserError(
            f"{test.name} has no ratings, only users and items",
            "give the column of ratings: --rating-column",
        )


def one_set(training: Ratings, test: Ratings, folds: NDArray[np.uint8] | None = None) -> Ratings:
    """Joined ratings of different pairs as one set; ``folds`` of those of the one, then of the other."""
    parts = (training, test)
    clients, items, codes = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("client_of_rating", "items", "codes")
    )
    times, order = None, None
    if training.timestamps is not None and test.timestamps is not None:
        times, order = np.concatenate([training.timestamps, test.timestamps]), _order_of_both(training, test)
    both = replace(training, codes=codes, timestamps=times, order=order, folds=folds)
    return both.renumbered(clients, items)


def _order_of_both(training: Ratings, test: Ratings) -> NDArray[np.int64]:
    """The test's places come after the training's."""
    places = [np.zeros(len(one), np.int64) if one.order is None else one.order for one in (training, test)]
    return np.concatenate([places[0], places[1] + places[0].max(initial=0) + 1])


def _same(first: Ids, second: Ids) -> bool:
    return first is second or (first.dtype.kind == second.dtype.kind and np.array_equal(first, second))


def _numbers(known: Ids, others: Ids, kind: str, *, strangers: bool = False) -> tuple[Ids, NDArray[np.int64]]:
    """The ids of both, those of the first as they are, and where each of the others is among them."""
    if (known.dtype.kind in "iu") != (others.dtype.kind in "iu"):
        known, others = known.astype(str), others.astype(str)
    places = {name: number for number, name in enumerate(known.tolist())}
    shared = sum(name in places for name in others.tolist())
    if shared == 0 and len(others) and not strangers:
        examples = [", ".join(map(str, ids[:3].tolist())) for ids in (known, others)]
        raise UserError(
            f"training and test ratings have no {kind} in common: {examples[0]} there, {examples[1]} here",
            f"give files whose {kind} ids mean the same",
        )
    numbers = np.array([places.setdefault(name, len(places)) for name in others.tolist()], dtype=np.int64)
    return np.array(list(places), dtype=str if known.dtype.kind not in "iu" else known.dtype), numbers


def _codes(training: Ratings, test: Ratings) -> NDArray[Any]:
    """The test's ratings as levels of the training's scale."""
    if training.scale == test.scale:
        return test.codes
    values = test.values
    if not (held := training.scale.holds(values)).all():
        raise UserError(
            f"the test rating {values[~held][0]:g} is not on the training ratings' scale {training.scale}",
            "give both files with one --scale",
        )
    return training.scale.codes(values)


def _grown(catalogue: Catalogue | None, items: int) -> Catalogue | None:
    """The catalogue with lines of which nothing is known for further items."""
    if catalogue is None or len(catalogue.titles) == items:
        return catalogue
    more = items - len(catalogue.titles)
    return replace(
        catalogue,
        titles=(*catalogue.titles, *[""] * more),
        years=np.append(catalogue.years, np.zeros(more, dtype=catalogue.years.dtype)),
        genres=np.vstack([catalogue.genres, np.zeros((more, catalogue.genres.shape[1]), dtype=bool)]),
    )
