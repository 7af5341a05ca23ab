"""Ranking measures by full ranking: every item that a client hasn't rated in training competes, none is sampled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data import Ratings
from fedrecplus.errors import UserError
from fedrecplus.randomness import uniform
from fedrecplus.training.evaluation import Fallback, Predictor
from fedrecplus.training.groups import few_ratings, many_ratings, tail_items
from fedrecplus.workers import on_threads

LIKED = 4.0
"""a test rating from here up, in standard units, makes an item relevant"""
DEPTHS = (5, 10, 20)
"""lengths of lists that results look at"""
_MOST_CLIENTS = 20_000
"""whose lists are judged"""
_CELLS = 1 << 18
"""of clients × items that are looked at in one go: what stays in a processor's cache takes two thirds of the time"""
_AT = re.compile(r"(?P<measure>[a-z]+)@(?P<depth>[1-9]\d{0,5})")

Array = NDArray[np.float64]
Hits = NDArray[np.bool_]
"""clients × places of the list: whether a relevant item is there"""


def _ndcg(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """Σ_hits 1/log₂(place + 1) over what the best list would have. After: Järvelin and Kekäläinen 2002"""
    discount = 1.0 / np.log2(np.arange(2, depth + 2))
    ideal = np.cumsum(discount)[np.minimum(relevant, depth) - 1]
    return np.asarray(hits @ discount / ideal)


def _recall(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """The share of the relevant items that is on the list."""
    return np.asarray(hits.sum(axis=1) / relevant)


def _precision(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """The share of the list's places with a relevant item."""
    return np.asarray(hits.sum(axis=1) / depth)


def _hit_rate(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """Whether any relevant item is on the list."""
    return np.asarray(hits.any(axis=1), dtype=np.float64)


def _average_precision(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """Σ_hits precision up to that place, over what the best list would have."""
    precision = np.cumsum(hits, axis=1) / np.arange(1, depth + 1)
    return np.asarray((hits * precision).sum(axis=1) / np.minimum(relevant, depth))


def _reciprocal_rank(hits: Hits, relevant: NDArray[np.int64], depth: int) -> Array:
    """1 over the place of the first relevant item; 0 where none is on the list."""
    return np.where(hits.any(axis=1), 1.0 / (hits.argmax(axis=1) + 1.0), 0.0)


MEASURES: dict[str, Callable[[Hits, NDArray[np.int64], int], Array]] = {
    "ndcg": _ndcg,
    "recall": _recall,
    "precision": _precision,
    "hr": _hit_rate,
    "map": _average_precision,
    "mrr": _reciprocal_rank,
}
"""each of one client's list; results have their means over clients"""


@dataclass(frozen=True)
class Lists:
    """How good each client's list is."""

    clients: NDArray[np.int64]
    """clients with a relevant test item, ascending"""
    left_out: int
    """clients that have test ratings, none of them relevant"""
    relevant_from: float | None
    """in standard units; None where every test item is relevant"""
    by_client: dict[str, Array]
    """``ndcg@10`` → a number per client"""
    on_tail: dict[str, Array]
    """the same with tail items alone as relevant; not a number for a client without any"""
    shown: dict[int, NDArray[np.bool_]]
    """list length → which items are on anybody's list"""
    popularity: dict[int, Array]
    """list length → each client's mean over the list of the share of clients that rated an item in training"""
    waits: Array
    """times between each client's last training rating and its first relevant test rating; nan where not known"""

    def figures(self, training: Ratings) -> dict[str, Any]:
        """What results hold: means over clients, and over groups of them; None where there is nobody."""
        rated = np.diff(training.indptr)[self.clients]
        chosen = {"few_ratings": few_ratings(rated), "many_ratings": many_ratings(rated)}
        groups = {name: _group(self.by_client, members) for name, members in chosen.items()}
        has_tail_items = np.isfinite(next(iter(self.on_tail.values())))
        groups["tail_items"] = _group(self.on_tail, has_tail_items)
        if (self.waits >= 0).all() and len(self.waits):  # all that is tested came later
            soon = self.waits <= np.median(self.waits)
            groups |= {"soon": _group(self.by_client, soon), "later": _group(self.by_client, ~soon)}
        return {
            "clients": len(self.clients),
            "left_out": self.left_out,
            "relevant_from": self.relevant_from,
            **{name: _mean(values) for name, values in self.by_client.items()},
            **{f"coverage@{depth}": float(items.mean()) for depth, items in self.shown.items()},
            **{f"popularity@{depth}": _mean(shares) for depth, shares in self.popularity.items()},
            "groups": groups,
        }

    def of_everybody(self, name: str, clients: int) -> Array:
        """A measure by client number; not a number for those without a relevant test item."""
        everybody = np.full(clients, np.nan)
        everybody[self.clients] = self.by_client[name]
        return everybody

    @classmethod
    def joined(cls, parts: Sequence[Lists], firsts: Iterable[int], left_out: int) -> Lists:
        """The lists of shards, whose clients' numbers begin with ``firsts``."""

        def joined(name: str) -> dict[Any, Array]:
            keys = getattr(parts[0], name)
            return {key: np.concatenate([getattr(part, name)[key] for part in parts]) for key in keys}

        return cls(
            np.concatenate([part.clients + first for part, first in zip(parts, firsts, strict=True)]),
            left_out,
            parts[0].relevant_from,
            joined("by_client"),
            joined("on_tail"),
            {depth: np.any([part.shown[depth] for part in parts], axis=0) for depth in parts[0].shown},
            joined("popularity"),
            np.concatenate([part.waits for part in parts]),
        )


@dataclass(frozen=True)
class ListTerms:
    """What the lists of all clients are judged by, whichever shard they are in."""

    depths: tuple[int, ...]
    """lengths of lists, ascending"""
    relevant_from: float | None
    """in standard units; None: every test item is relevant"""
    popularity: NDArray[np.int64]
    """training ratings of each item"""
    clients: int
    """in training"""

    @classmethod
    def of(
        cls, training: Ratings, test: Ratings, at: Sequence[int] = DEPTHS, relevant_from: float = LIKED
    ) -> ListTerms:
        """Of whole sets of ratings."""
        least = None if training.likes_alone and test.likes_alone else relevant_from
        return cls(tuple(_checked(at)), least, training.item_counts(), training.clients)

    def relevant(self, test: Ratings) -> Ratings:
        """The test ratings that make an item relevant."""
        if self.relevant_from is None:
            return test
        return test.where(test.standard_values >= self.relevant_from - 1e-9)


def rank(
    training: Ratings,
    test: Ratings,
    predictor: Predictor,
    fallback: Fallback,
    at: Sequence[int] = DEPTHS,
    relevant_from: float = LIKED,
) -> dict[str, Any]:
    """All ranking measures at some list lengths, as means over clients with at least one relevant test item."""
    return lists_of(training, test, predictor, fallback, at, relevant_from).figures(training)


def lists_of(
    training: Ratings,
    test: Ratings,
    predictor: Predictor,
    fallback: Fallback,
    at: Sequence[int] = DEPTHS,
    relevant_from: float = LIKED,
) -> Lists:
    """Each client's list of the items that it hasn't rated in training, beside its relevant test items.

    Of more than 20,000 clients, so many are drawn by a fixed key: it is items that must not be sampled.
    After: Krichene and Rendle 2020, who show that sampled negatives mislead.
    """
    terms = ListTerms.of(training, test, at, relevant_from)
    liked = terms.relevant(test)
    clients = clients_with_ratings(liked)
    left_out = len(clients_with_ratings(test)) - len(clients)
    lists = judged_lists(training, liked, drawn_clients(clients), predictor, fallback, terms)
    return replace(lists, left_out=left_out)


def clients_with_ratings(ratings: Ratings) -> NDArray[np.int64]:
    """Their numbers, ascending."""
    return np.flatnonzero(np.diff(ratings.indptr) > 0)


def drawn_clients(clients: NDArray[np.int64]) -> NDArray[np.int64]:
    """Those whose lists are judged: all, or 20,000 of them by a fixed key. A draw of what was drawn is the same."""
    if len(clients) <= _MOST_CLIENTS:
        return clients
    drawn = np.argsort(uniform(0, clients), kind="stable")[:_MOST_CLIENTS]
    return np.sort(clients[drawn])


def blocks(clients: NDArray[np.int64], item_count: int) -> list[NDArray[np.int64]]:
    """So few clients at a time that their scores of all items are no large table; one block at least."""
    per_block = max(1, _CELLS // item_count)
    return np.split(clients, range(per_block, len(clients), per_block))


def judged_lists(
    training: Ratings,
    liked: Ratings,
    clients: NDArray[np.int64],
    predictor: Predictor,
    fallback: Fallback,
    terms: ListTerms,
) -> Lists:
    """The lists of some clients, who all have relevant test ratings, ``liked``. All may be those of a shard."""
    depths, popularity, tail = terms.depths, terms.popularity, tail_items(terms.popularity)
    shown = {depth: np.zeros(training.item_count, dtype=bool) for depth in depths}

    def judged(block: NDArray[np.int64]) -> tuple[dict[Any, Array], ...]:
        scores, shares = scores_of(block, predictor, fallback, popularity), {}
        scores[cells(training, block)] = -np.inf
        lists = top_lists(scores, popularity, depths[-1])
        relevant = np.zeros(scores.shape, dtype=bool)
        relevant[cells(liked, block)] = True
        for depth in depths:
            listed, filled = lists[:, :depth], lists[:, :depth] >= 0
            shown[depth][listed[filled]] = True
            sums = np.where(filled, popularity[np.maximum(listed, 0)], 0).sum(axis=1)
            shares[depth] = sums / np.maximum(filled.sum(axis=1), 1) / terms.clients
        return _measured(lists, relevant, depths), _measured(lists, relevant & tail, depths), shares

    by_client, on_tail, popular = (
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        for parts in zip(*on_threads(judged, blocks(clients, training.item_count)), strict=True)
    )
    waits = waits_of(training, liked)[clients]
    return Lists(clients, 0, terms.relevant_from, by_client, on_tail, shown, popular, waits)


def waits_of(training: Ratings, liked: Ratings) -> Array:
    """By client, how long after its last training rating the first of these came; nan where no times are known."""
    if training.timestamps is None or liked.timestamps is None:
        return np.full(liked.clients, np.nan)
    latest, earliest = np.full(training.clients, -np.inf), np.full(liked.clients, np.inf)
    np.maximum.at(latest, training.client_of_rating, training.timestamps)
    np.minimum.at(earliest, liked.client_of_rating, liked.timestamps)
    return np.asarray(earliest - latest)


def measure_named(name: str) -> tuple[str, int]:
    """``ndcg@10`` as measure and list length.

    >>> measure_named("recall@20")
    ('recall', 20)
    """
    match = _AT.fullmatch(name)
    if match is None or match["measure"] not in MEASURES:
        raise UserError(f"{name!r} is no ranking measure", f"write one of {', '.join(MEASURES)} with a length: ndcg@10")
    return match["measure"], int(match["depth"])


def top(scores: Array, popularity: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """The n best items, best first; of equals the more popular, then the one that comes first.

    >>> top(np.array([1.0, 3.0, 3.0, -np.inf]), np.array([9, 1, 5, 9]), 3).tolist()
    [2, 1, 0]
    """
    listed = top_lists(scores[None, :], popularity, n)[0]
    best: NDArray[np.int64] = listed[listed >= 0]
    return best


def top_lists(scores: Array, popularity: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Each row's n best items, best first, by the order of ``top``; −1 where a row has fewer above −∞."""
    items_count = scores.shape[1]
    order, kept = np.lexsort((np.arange(items_count), -popularity)), min(n, items_count)
    least = np.partition(scores, items_count - kept, axis=1)[:, items_count - kept, None]
    better, equal = scores > least, (scores == least) & (scores > -np.inf)
    room = kept - better.sum(axis=1, keepdims=True)
    crowded = np.flatnonzero(equal.sum(axis=1) > room[:, 0])  # of equals that have no room, the more popular stay
    if len(crowded):
        ties = equal[crowded[:, None], order]
        equal[crowded[:, None], order] = ties & (np.cumsum(ties, axis=1) <= room[crowded])
    rows, items = np.nonzero(better | equal)
    sorting = np.lexsort((np.argsort(order)[items], -scores[rows, items], rows))
    rows, items = rows[sorting], items[sorting]
    places = np.arange(len(rows)) - np.searchsorted(rows, np.arange(len(scores)))[rows]
    lists = np.full((len(scores), n), -1, dtype=np.int64)
    lists[rows, places] = items
    return lists


def scores_of(
    clients: NDArray[Any], predictor: Predictor, fallback: Fallback, popularity: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What ranks all items; of a client without ratings nothing is known, so popularity ranks for it."""
    scores = predictor.scores(clients)
    if not fallback.ranked_item.all():
        unknown = fallback.client_mean[clients][:, None] if predictor.Z is None else scores.min(axis=1, keepdims=True)
        scores[:, ~fallback.ranked_item] = unknown
    scores[~fallback.known_client[clients]] = popularity
    return scores


def _measured(lists: NDArray[np.int64], relevant: NDArray[np.bool_], depths: Sequence[int]) -> dict[Any, Array]:
    """A block's figures; not a number for a client without a relevant item."""
    hits = np.take_along_axis(relevant, np.maximum(lists, 0), axis=1) & (lists >= 0)
    counts = relevant.sum(axis=1)
    return {
        f"{name}@{depth}": np.where(counts > 0, measure(hits[:, :depth], np.maximum(counts, 1), depth), np.nan)
        for depth in depths
        for name, measure in MEASURES.items()
    }


def cells(ratings: Ratings, clients: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row within ``clients`` and item of each of their ratings."""
    starts, counts = ratings.indptr[clients], np.diff(ratings.indptr)[clients]
    rows = np.repeat(np.arange(len(clients)), counts)
    places = np.arange(len(rows)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
    return rows, ratings.items[places].astype(np.int64)


def _checked(at: Sequence[int] | int) -> list[int]:
    at = (at,) if isinstance(at, int) else at
    if not at or any(depth < 1 for depth in at):
        raise UserError(f"lists of {', '.join(map(str, at)) or 'no'} items can't be judged", "give at=(5, 10, 20)")
    return sorted(set(at))


def _group(by_client: dict[str, Array], chosen: NDArray[np.bool_]) -> dict[str, Any]:
    means = {name: _mean(values[chosen]) for name, values in by_client.items()}
    return {"clients": int(chosen.sum()), **means}


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None
