"""A person's list: what is on it, why, and what exploring costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from fedrecplus.errors import UserError, unknown_name
from fedrecplus.parts import unit_rows
from fedrecplus.training.model_files import SharedModel
from fedrecplus.training.ranking import top
from fedrecplus.workers import one_thread

Array = NDArray[np.float64]
Items = NDArray[np.int64]
RANKED_BY = ("list", "rating")
"""by the model's weights for lists, where it has any, or by predicted ratings"""
REASONS = 3
_MOST_LEFT_OUT = 30
"""own items at most that are left out in turn, those most like the list: each costs a fold-in"""
_POOL = 100
"""items at least that exploring chooses from: the best ones"""
_POOL_TIMES = 5
"""times the length of the list, if that is more"""


@dataclass(frozen=True)
class Reason:
    """One of the person's own items that speaks for a recommended one."""

    item: Any
    """its id in the data"""
    title: str
    contribution: float
    """what this rating adds to the recommended item's score"""


@dataclass(frozen=True)
class Recommendation:
    """One item of a top-N list."""

    item: Any
    """its id in the data"""
    rating: float
    """predicted, on the data's scale"""
    title: str
    """empty where the data has no titles"""
    score: float = 0.0
    """what it was ranked by: the model's score for lists, or the predicted rating in standard units"""
    because: tuple[Reason, ...] = ()
    """the person's own items that speak most for it, where they were asked for"""


@dataclass(frozen=True)
class ListFigures:
    """A list in four means."""

    score: float
    rating: float
    """predicted, on the data's scale"""
    popularity: float
    """training ratings of an item"""
    similarity: float
    """cosine of two items' factors, over all pairs on the list: low is diverse"""


@dataclass(frozen=True)
class Price:
    """What exploring changes."""

    plain: ListFigures
    """of the list without it"""
    explored: ListFigures


@dataclass(frozen=True)
class TopList:
    """A list, and what exploring cost."""

    items: tuple[Recommendation, ...]
    price: Price | None = None
    """None where exploring wasn't asked for"""
    likes_alone: bool = False
    """whether predicted ratings mean nothing, since the model was trained on likes"""


class ListChoices(TypedDict, total=False):
    """The options of a list, its length aside, as functions take them by name."""

    by: str
    include_seen: bool
    explore: float
    any_time: bool
    after: Any
    session: Sequence[Any]
    why: bool


@dataclass(frozen=True)
class ListOptions:
    """How a list is to be made. The command line and the service have the same names."""

    n: int = 10
    by: str = "list"
    """``list`` by the model's weights for lists, where it has any, or ``rating`` by predicted ratings"""
    include_seen: bool = False
    """list what the person has rated, too"""
    explore: float = 0.0
    """from 0, the best items, to 1, items unlike each other"""
    any_time: bool = False
    """what was chosen last counts no more than the rest, though the model may have learnt that more helps"""
    after: Any = None
    """the id of an item, as if the person had just chosen it"""
    session: Sequence[Any] = ()
    """ids of items, the latest last, that alone make the list, whatever the person chose before"""
    why: bool = False
    """name the person's own items that speak most for each"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "session", tuple(self.session))
        check_length(self.n)
        if self.by not in RANKED_BY:
            raise unknown_name("way to rank", self.by, RANKED_BY)
        if self.by == "rating" and (self.after is not None or self.session):
            raise UserError("predicted ratings follow no choices", "leave --by=rating out, or --after and --session")
        if self.after is not None and self.session:
            raise UserError("--after and --session exclude each other", "add the item to the session, as its last")
        if not 0.0 <= self.explore <= 1.0:
            raise UserError(f"explore is {self.explore:g}", "give a number from 0 (the best items) to 1 (diverse ones)")


def check_length(n: Any) -> None:
    """Refuse what is no number of items."""
    if not isinstance(n, int | np.integer) or n < 1:
        raise UserError(f"a list of {n} items is none", "ask for a whole number of them, at least one")


def diversified(scores: Array, model: SharedModel, n: int, explore: float) -> Items:
    """Of the best items, in turn the one with the highest (1 − x)·score − x·(greatest similarity to those chosen).

    The score is the place in the pool, from 1 for the best to 0 for the last: scores themselves fall so steeply after
    the first that nothing would be explored. Similarity is the cosine of centred factors.
    After: Carbonell and Goldstein 1998 (maximal marginal relevance)
    """
    pool = top(scores, model.public.popularity, max(_POOL, _POOL_TIMES * n))
    if len(pool) == 0:
        return pool
    relevance, near = np.linspace(1.0, 0.0, len(pool)), similarities(model, pool)
    chosen, free = [0], np.ones(len(pool), dtype=bool)
    free[0] = False
    while len(chosen) < min(n, len(pool)):
        worth = (1.0 - explore) * relevance - explore * near[:, chosen].max(axis=1)
        best = int(np.argmax(np.where(free, worth, -np.inf)))
        chosen.append(best)
        free[best] = False
    return np.asarray(pool[chosen])


def similarities(model: SharedModel, items: Items) -> Array:
    """Cosines of some items' factors, less the mean item's: trained factors all point its way."""
    known = model.factors[model.public.popularity > 0]
    mean = known.mean(axis=0) if len(known) else 0.0
    rows = unit_rows(model.factors[items] - mean)
    return np.asarray(rows @ rows.T)


def figures_of(model: SharedModel, items: Items, scores: Array, ratings: Array) -> ListFigures:
    """The means over a list; ``scores`` and ``ratings`` are those of all items."""
    pairs = similarities(model, items)[np.triu_indices(len(items), 1)]
    score, rating, popularity, similarity = (
        float(values.mean()) if len(values) else 0.0
        for values in (scores[items], ratings[items], model.public.popularity[items], pairs)
    )
    return ListFigures(score, rating, popularity, similarity)


@dataclass(frozen=True)
class Choices:
    """What a list is made of."""

    items: Items
    ratings: Array
    """in standard units"""
    recency: Array | None = None
    """what each weighs; None: all alike"""


def reasons(model: SharedModel, own: Choices, wanted: Items, by: str) -> list[tuple[Reason, ...]]:
    """For each wanted item, the own ones that add most to its score.

    A person's weights are a sum over their ratings, and so is a score: one solve for all reasons.
    """
    with one_thread():
        contributions = _contributions(model, own, wanted, by)
    return [tuple(_strongest(model, own.items, contributions[:, place])) for place in range(len(wanted))]


def _contributions(model: SharedModel, own: Choices, wanted: Items, by: str) -> Array:
    """What each rating adds to each wanted item's score; where scores are no sums, what leaving it out takes away."""
    items, ratings = own.items, own.ratings
    if model.scored_by is None:
        return np.asarray(model.weight_shares(items, ratings, by, own.recency) @ model.X[wanted].T)
    near = similarities(model, np.concatenate([items, wanted]))[: len(items), len(items) :]
    asked = np.argsort(-near.max(axis=1), kind="stable")[:_MOST_LEFT_OUT]
    contributions = np.zeros((len(items), len(wanted)))
    whole = model.scores(list_or_rating_weights(model, items, ratings, by), wanted)
    for place in asked:
        rest = np.delete(items, place), np.delete(ratings, place)
        contributions[place] = whole - model.scores(list_or_rating_weights(model, *rest, by), wanted)
    return contributions


def _strongest(model: SharedModel, own: Items, contributions: Array) -> list[Reason]:
    best = np.argsort(-contributions, kind="stable")[:REASONS]
    return [
        Reason(model.item_ids[own[j]].item(), title_of(model, own[j]), float(contributions[j]))
        for j in best
        if contributions[j] > 0
    ]


def list_or_rating_weights(model: SharedModel, items: Items, ratings: Array, by: str) -> Array:
    """What ranks for a person with these ratings, folded in."""
    w = model.fold_in(items, ratings)
    z = model.list_weights(w, items, ratings) if by == "list" else None
    return w if z is None else z


def columns_of(items: Sequence[Recommendation], why: bool) -> dict[str, list[Any]]:
    """A list as columns rank, item, score, rating and title; with ``why``, because: the ids of the reasons."""
    columns: dict[str, list[Any]] = {"rank": list(range(1, len(items) + 1))}
    columns |= {name: [getattr(one, name) for one in items] for name in ("item", "score", "rating", "title")}
    return {**columns, "because": [[reason.item for reason in one.because] for one in items]} if why else columns


def title_of(model: SharedModel, item: int) -> str:
    """An item's title; empty where the data has none."""
    return model.titles[item] if model.titles else ""


def recommendations(
    model: SharedModel, items: Items, scores: Array, ratings: Array, because: Sequence[tuple[Reason, ...]]
) -> tuple[Recommendation, ...]:
    """Items by number as they are shown."""
    return tuple(
        Recommendation(model.item_ids[i].item(), float(ratings[i]), title_of(model, i), float(scores[i]), why)
        for i, why in zip(items.tolist(), because, strict=True)
    )
