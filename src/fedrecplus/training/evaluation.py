"""Errors on test ratings, on the data's own scale, in blocks, so that no table of clients × items is ever made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.data import Ratings, damped_means
from fedrecplus.engines import Engine, Problem, SimulationState, item_columns
from fedrecplus.parts import Model
from fedrecplus.protocol import PublicItems

Array = NDArray[np.float64]
Predict = Callable[[NDArray[Any], NDArray[Any]], Array]
"""client numbers, item numbers → predictions in standard units"""

CLIENT_PRIOR, ITEMS_PRIOR = 5.0, 20.0
"""pseudo-ratings that damp how far a client's ratings are from the items' averages, and these from everybody's mean"""
_BLOCK = 1 << 16
_NUMBERS = 1 << 24
"""of weights that are copied at a time"""


class ScoredBy(NamedTuple):
    """A model that scores otherwise than by X·w, with what it knows besides."""

    model: Model[Any]
    dense: NDArray[Any]

    @classmethod
    def of(cls, model: Model[Any], dense: NDArray[Any]) -> ScoredBy | None:
        """None where predictions are X·w."""
        return None if model.is_linear else cls(model, dense)

    def scores(self, x: NDArray[Any], w: NDArray[Any]) -> Array:
        """Predictions (…, n) in double precision, as those of X·w are."""
        return self.model.scores(*(np.asarray(each, dtype=np.float64) for each in (x, w, self.dense)))


@dataclass(frozen=True)
class Predictor:
    """What predictions come from: r̂ = w_u·X_i, unless the model scores otherwise."""

    W: NDArray[Any]
    """a row of weights per client, which in a deployment is on its device"""
    X: NDArray[Any]
    """a row of columns per item, which everybody knows"""
    Z: NDArray[Any] | None = None
    """a row of weights for lists per client, over the same columns; None where predicted ratings rank"""
    scored_by: ScoredBy | None = None
    """the model and its dense arrays, where predictions are not X·w"""

    def predict(self, clients: NDArray[Any], items: NDArray[Any]) -> Array:
        """Predictions for pairs, in standard units: some at a time, since a client may have a table of its own."""
        some = range(0, len(clients), max(_NUMBERS // max(self.W.shape[1], 1), 1))
        pairs = ((clients[first : first + some.step], items[first : first + some.step]) for first in some)
        return np.concatenate([np.zeros(0), *(self._of_pairs(*each) for each in pairs)])

    def _of_pairs(self, clients: NDArray[Any], items: NDArray[Any]) -> Array:
        if self.scored_by is not None:
            return self.scored_by.scores(self.X[items][:, None], self.W[clients])[:, 0]
        return np.asarray(np.einsum("ij,ij->i", self.W[clients].astype(np.float64), self.X[items].astype(np.float64)))

    def of_all_items(self, clients: NDArray[Any]) -> Array:
        """Predictions for all items, a row per client, in standard units."""
        return self._of_all_items(self.W[clients])

    def scores(self, clients: NDArray[Any]) -> Array:
        """What lists rank all items by, a row per client: the predictions, unless the model has better."""
        return self._of_all_items((self.W if self.Z is None else self.Z)[clients])

    def _of_all_items(self, weights: NDArray[Any]) -> Array:
        if self.scored_by is not None:
            return self.scored_by.scores(self.X, weights)
        used = weights.any(axis=0)  # lists of what comes next weigh a tenth of the columns
        if used.all():
            return np.asarray(weights.astype(np.float64) @ self._columns)
        return np.asarray(weights[:, used].astype(np.float64) @ self._columns[used])

    @cached_property
    def _columns(self) -> Array:
        """X's columns in double precision, each a row."""
        return np.ascontiguousarray(self.X.T, dtype=np.float64)


def predictor_of(engine: Engine, problem: Problem, state: SimulationState, *, lists: bool = False) -> Predictor:
    """Everybody's predictions in a state; with ``lists`` what ranks lists, too, which takes its time."""
    problem = with_head(problem, state)
    X = item_columns(problem, state.server.V)
    W = engine.user_weights(problem, state.private, X)
    Z = engine.list_weights(problem, W, X) if lists else None
    return Predictor(W, X, Z, ScoredBy.of(problem.config.model, state.server.dense))


def untrained_scores(engine: Engine, problem: Problem, test: Ratings, fallback: Fallback) -> Scores:
    """The errors of a training's start, beside which its errors are judged."""
    return score(test, predictor_of(engine, problem, engine.start(problem)).predict, fallback)


def with_head(problem: Problem, state: SimulationState) -> Problem:
    """The problem with the model that predicts in a state: its head may have been chosen by validation."""
    config = problem.config
    if not state.server.head:
        return problem
    return replace(problem, config=replace(config, model=config.model.with_head(state.server.head)))


@dataclass(frozen=True)
class Fallback:
    """What is predicted where a client or an item has no training rating.

    Of a client without ratings the items are known: each gets its damped mean, as everybody may know it. Of an item
    without ratings the client is known: its mean says how it rates, and which items it meets (``client_means``). Where
    the model predicts by what describes the item, too, it is the mean of both. Where neither is known, it is
    everybody's mean.
    Ours: the model takes an unrated item for a bad one, which is right of what nobody chose and wrong of what is new.
    """

    client_mean: Array
    """standard units; the global mean for a client without training ratings"""
    item_mean: Array
    """standard units; the global mean for an item without training ratings"""
    known_client: NDArray[np.bool_]
    known_item: NDArray[np.bool_]
    """those that have ratings"""
    ranked_item: NDArray[np.bool_]
    """those that the model can put into lists: some models do so by public features alone"""
    mean: float

    @classmethod
    def of(
        cls,
        training: Ratings,
        config: Config | None = None,
        public: PublicItems | None = None,
    ) -> Fallback:
        """The fallback that a training set leaves one with, and what is public of the items, if not these ratings."""
        mean = training.mean() if public is None else public.mean
        item_mean = training.item_means() if public is None else public.averages()
        client_mean = client_means(training.indptr, training.items, training.standard_values, item_mean, mean)
        known_item = (training.item_counts() if public is None else public.popularity) > 0
        ranked_item, known_client = known_item, np.diff(training.indptr) > 0
        if public is not None and config is not None and config.model.PREDICTS_COLD_ITEMS:
            ranked_item = known_item | public.described
        return cls(client_mean, item_mean, known_client, known_item, ranked_item, mean)

    def knowing_everything(self) -> Fallback:
        """The same for who has an answer for every pair."""
        clients, items = np.ones(len(self.known_client), np.bool_), np.ones(len(self.known_item), np.bool_)
        return replace(self, known_client=clients, known_item=items, ranked_item=items)

    def cold(self, clients: NDArray[Any], items: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of the pairs the model knows too little about."""
        return np.asarray(~(self.known_client[clients] & self.known_item[items]))

    def mend(self, raw: Array, clients: NDArray[Any], items: NDArray[Any]) -> Array:
        """The model's predictions, with those for cold pairs in the place of what it knows nothing about."""
        mean = self.client_mean[clients]
        of_client = np.where(self.ranked_item[items], (raw + mean) / 2, mean)
        known = np.where(self.known_item[items], raw, of_client)
        return np.asarray(np.where(self.known_client[clients], known, self.item_mean[items]))


def client_means(indptr: NDArray[np.int64], items: NDArray[Any], values: Array, averages: Array, mean: float) -> Array:
    """Mean rating of each client: everybody's, its own bias, and how good the items are that it meets, both damped.

    Which items a few ratings are of is mostly chance, so that part has the stronger prior. Ours: chosen on validation
    cuts of 17 sets, where one prior for both was behind biases on most.
    """
    counts, met = np.diff(indptr).astype(np.int64), averages[items]
    clients = np.repeat(np.arange(len(counts)), counts)
    bias, items_met = (
        damped_means(np.bincount(clients, weights=deviations, minlength=len(counts)), counts, 0.0, prior)
        for deviations, prior in ((values - met, CLIENT_PRIOR), (met - mean, ITEMS_PRIOR))
    )
    return np.asarray(mean + bias + items_met)


@dataclass(frozen=True)
class Scores:
    """How far predictions are from test ratings: what their errors add up to, and the means of that."""

    absolute: float = 0.0
    squared: float = 0.0
    energy: float = 0.0
    """Σr²"""
    strayed: float = 0.0
    """squared errors in standard units before clipping to the scale: clipping would hide a model that blows up"""
    ratings: int = 0
    cold: int = 0
    """of these, how many had a client or an item without training ratings and got the fallback's prediction"""

    @classmethod
    def joined(cls, parts: Sequence[Scores]) -> Scores:
        """The sums over several sets, added in their order."""
        return cls(*(sum(values) for values in zip(*(astuple(part) for part in parts), strict=True)))

    @property
    def mae(self) -> float:
        """Mean absolute error."""
        return self.absolute / max(self.ratings, 1)

    @property
    def rmse(self) -> float:
        """Root mean squared error."""
        return float(np.sqrt(self.squared / max(self.ratings, 1)))

    @property
    def nmse(self) -> float:
        """Σe² / Σr². Paper: Section "Evaluation Metrics" """
        return self.squared / self.energy if self.energy > 0 else float("nan")

    @property
    def unclipped(self) -> float:
        """RMSE in standard units, before clipping to the scale."""
        return float(np.sqrt(self.strayed / max(self.ratings, 1)))

    def figures(self) -> dict[str, Any]:
        """What a metrics line holds of them."""
        return {name: getattr(self, name) for name in ("mae", "rmse", "nmse", "ratings", "cold")}


@dataclass(frozen=True)
class Errors:
    """Sums of errors: of everybody, by client, and on tail items."""

    total: Scores
    count: NDArray[np.int64]
    """test ratings of each client"""
    absolute: Array
    squared: Array
    tail: tuple[int, float, float] = (0, 0.0, 0.0)
    """test ratings of tail items, their absolute and squared errors"""

    @classmethod
    def joined(cls, parts: Sequence[Errors]) -> Errors:
        """Those of shards, in the order of their clients."""
        count, absolute, squared = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("count", "absolute", "squared")
        )
        tail = np.array([part.tail for part in parts]).sum(axis=0)
        on_tail = int(tail[0]), float(tail[1]), float(tail[2])
        return cls(Scores.joined([part.total for part in parts]), count, absolute, squared, on_tail)

    def rmse_by_client(self) -> Array:
        """Each client's RMSE; not a number for a client without test ratings."""
        with np.errstate(invalid="ignore"):
            by_client: Array = np.sqrt(self.squared / self.count)
        return by_client


def score(test: Ratings, predict: Predict, fallback: Fallback) -> Scores:
    """MAE, RMSE and NMSE over all test ratings; none is dropped."""
    return errors_of(test, predict, fallback).total


def score_of_mean(test: Ratings, fallback: Fallback) -> Scores:
    """The errors of who predicts everybody's mean rating."""
    return score(test, lambda clients, _: np.full(len(clients), fallback.mean), fallback.knowing_everything())


def errors_of(test: Ratings, predict: Predict, fallback: Fallback, tail: NDArray[np.bool_] | None = None) -> Errors:
    """All sums of errors, in one pass over the test ratings; ``tail`` says which items are tail items."""
    count = np.zeros(test.clients, dtype=np.int64)
    absolute, squared = np.zeros(test.clients), np.zeros(test.clients)
    sums, on_tail = np.zeros(4), np.zeros(2)
    cold = ratings_on_tail = 0
    for block in _blocks(test, predict, fallback):
        e = block.predicted - block.truth
        first = int(block.clients[0])
        span = slice(first, int(block.clients[-1]) + 1)
        count[span] += np.bincount(block.clients - first)
        absolute[span] += np.bincount(block.clients - first, weights=np.abs(e))
        squared[span] += np.bincount(block.clients - first, weights=e * e)
        sums += np.abs(e).sum(), e @ e, block.truth @ block.truth, block.strayed @ block.strayed
        cold += int(block.cold.sum())
        if tail is not None:
            hit = e[tail[block.items]]
            on_tail += np.abs(hit).sum(), hit @ hit
            ratings_on_tail += len(hit)
    total_absolute, total_squared, energy, strayed = sums.tolist()
    total = Scores(total_absolute, total_squared, energy, strayed, len(test), cold)
    return Errors(total, count, absolute, squared, (ratings_on_tail, float(on_tail[0]), float(on_tail[1])))


@dataclass(frozen=True)
class _Block:
    """Some test ratings and their predictions."""

    clients: NDArray[Any]
    items: NDArray[Any]
    truth: Array
    """on the data's scale"""
    predicted: Array
    """on the data's scale, clipped to it"""
    strayed: Array
    """prediction minus truth in standard units, not clipped"""
    cold: NDArray[np.bool_]


def _blocks(test: Ratings, predict: Predict, fallback: Fallback) -> Iterator[_Block]:
    """All test ratings with their predictions, a block at a time."""
    scale = test.scale
    for first in range(0, len(test), _BLOCK):
        places = np.arange(first, min(first + _BLOCK, len(test)))
        clients = np.searchsorted(test.indptr, places, side="right") - 1
        items = test.items[places].astype(np.int64)
        truth = scale.values(test.codes[places])
        cold = fallback.cold(clients, items)
        raw = fallback.mend(predict(clients, items), clients, items)
        yield _Block(clients, items, truth, scale.restore(raw), raw - scale.standardise(truth), cold)
