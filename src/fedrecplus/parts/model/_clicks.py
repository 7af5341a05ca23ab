"""Models of clicks: what a person rated counts as clicked, and of all other items some are drawn as not clicked.

They rank, and predict no ratings: what stands for them is the item's damped mean plus the person's damped deviation.
A person's weights hold both. The first three say what a score is made of: of the item's mean, of a constant, and of
the model's own score, whose parameters come after them. Predictions have no part of the last, lists nothing else.

A device may keep a table of its own (``Leaf.own``). Its rows are found by the item's number, the last column of X.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING, Array, Items, in_numpy, like, namespace, own_rows, rows_of, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.errors import UserError
from fedrecplus.parts.model import Model, keyed_order
from fedrecplus.parts.tree import size_of
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import mix, subkeys, to_unit
from fedrecplus.settings import Annotated, Settings, text

BEFORE = 2
"""columns of X before the table: the item's mean, and a constant"""
_MIXING = 3
"""weights before the private parameters"""
BIAS_PRIOR = 5.0
"""pseudo-ratings that a person's deviation from items' means is shrunk by"""


NEGATIVES = 4.0
"""items drawn as not clicked, per click, in all publications"""
LeakyNegatives = Annotated[
    bool, text("never draw held-out test items as negatives: repeats figures of released code, but gives the test away")
]


class ClickSettings(Settings):
    """Options of every model of clicks."""

    negatives: ClassVar[float] = NEGATIVES
    leaky_negatives: LeakyNegatives = False


C = TypeVar("C", bound=ClickSettings)


class ClickModel(Model[C]):
    """Scores of clicks by parameters that stay on the device; an upload has a row of every item."""

    CHOICES = True
    ALL_ITEMS = True
    RATINGS_BY = "means"

    @abstractmethod
    def logits(self, rows: NDArray[Any], private: NDArray[Any], dense: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
        """The log odds of a click (…, n), from rows of the table, the private parameters and rows of its own table."""

    @abstractmethod
    def fitted(self, table: NDArray[Any], dense: NDArray[Any], clicked: Array, weights: Array) -> Array:
        """A newcomer's private parameters, from which of all items are clicked, and how much each counts."""

    def check_with(self, config: Any) -> None:
        """Refuse negatives that know the test, unless it is said twice that nobody's data is at stake."""
        super().check_with(config)
        if self.leaks and not (config.simulation_only and config.engine in ("fast", "reference")):
            raise UserError(
                "model.leaky_negatives=true shows a model what it is tested on, which no device can do",
                "leave it out; to repeat figures of released code, say simulation_only=true, too, with engine=fast",
            )

    @property
    def leaks(self) -> bool:
        """See ``Model.leaks``."""
        return self.settings.leaky_negatives

    @property
    def own_columns(self) -> int:
        """Of the device's own table."""
        return size_of(self.tree(), "own")

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (damped mean rating, 1, the table's row), and the item's number where devices have their own tables."""
        xp, X = namespace(V), with_means(V, public)
        if not self.own_columns:
            return X
        numbers = like(np.arange(len(V))[:, None], V)
        return xp.concat([X, numbers], axis=1)  # type: ignore[no-any-return]

    def weight_count(self, columns: int, items: int) -> int:
        """What a score is made of, and the private parameters."""
        return _MIXING + self.kept(items)

    def user_weights(self, U: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """Weights for predicted ratings, which are the fallback's."""
        w = zeros((*items.shape[:-1], _MIXING + U.shape[-1]), X)
        w[..., :BEFORE], w[..., _MIXING:] = fallback_weights(X[:, :BEFORE], items, ratings), U
        return w

    def list_weights(
        self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """Weights for lists: those of the model's own score alone."""
        z = zeros(w.shape, X)
        z[..., _MIXING - 1], z[..., _MIXING:] = 1.0, w[..., _MIXING:]
        return z

    def scores(self, x: NDArray[Any], w: NDArray[Any], dense: NDArray[Any]) -> NDArray[Any]:
        """The mean, the constant and the model's score, by their weights."""
        mean, constant, own = (w[..., place, None] for place in range(_MIXING))
        fallback: NDArray[Any] = x[..., 0] * mean + x[..., 1] * constant
        if not in_numpy(own).any():
            return fallback
        private, table = self.split_private(w[..., _MIXING:])
        rows, end = x[..., BEFORE:], BEFORE + self.columns
        if self.own_columns:
            table = own_rows(table, _numbers(x[..., end], table))
        scores: NDArray[Any] = fallback + own * self.logits(rows[..., : self.columns], private, dense, table)
        return scores

    def split_private(self, U: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The private parameters, and the device's own table (…, items, columns)."""
        own = U[..., self.user_columns :]
        return U[..., : self.user_columns], own.reshape((*U.shape[:-1], -1, max(self.own_columns, 1)))

    def newcomer(self, X: Array, dense: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The fallback's weights, and private parameters fitted to the clicks with all other items as negatives."""
        clicked = zeros((*items.shape[:-1], len(X)), X)
        line = np.nonzero(in_numpy(items) >= 0)
        clicked[(*line[:-1], in_numpy(items)[line])] = 1.0
        weights = clicked + (1.0 - clicked) * self.share(clicked)
        V = X[:, BEFORE : BEFORE + self.columns]
        U = self.fitted(V, dense, clicked, weights)
        if self.own_columns:
            own = self.own_table(V).reshape(-1)
            U = namespace(U).concat([U, namespace(U).broadcast_to(own, (*U.shape[:-1], len(own)))], axis=-1)
        return self.user_weights(U, X, items, ratings, public)

    def own_table(self, V: NDArray[Any]) -> NDArray[Any]:
        """What a newcomer's own table begins with: zeros."""
        return zeros((len(V), self.own_columns), V)

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """``newcomer`` of a model without dense arrays."""
        return self.newcomer(X, zeros((0,), X), items, ratings, public)

    def share(self, clicked: Array) -> Array:
        """How likely an item that is not clicked is drawn: so many per click, on average."""
        xp = namespace(clicked)
        n, items = xp.sum(clicked, axis=-1)[..., None], clicked.shape[-1]
        return xp.clip(self.settings.negatives * n / xp.clip(items - n, 1.0, None), 0.0, 1.0)  # type: ignore[no-any-return]

    def drawn(self, device: Device, rows: Rows, broadcast: Broadcast) -> Rows:
        """The rows that a round's loss is over, clicks and drawn negatives, in a random order.

        Negatives are items outside the device's own data, drawn anew each round by the device's key.
        ``leaky_negatives`` leave out what the device is tested on, too, which it can know in a simulation alone.
        """
        clicked, items = in_numpy(rows.rated), in_numpy(rows.items)
        key = subkeys(device.secret, "negatives", broadcast.round)
        share = in_numpy(self.share(clicked.astype(np.float64)))
        used = clicked | (to_unit(mix(key, items.astype(np.uint64))) < share)
        line = np.nonzero(device.tested >= 0)
        used[(*line[:-1], device.tested[line])] = False
        places = keyed_order(device, "order", broadcast.round, items, used)[..., : int(used.sum(axis=-1).max())]
        taken = np.take_along_axis(used, places, axis=-1)
        numbers = np.where(taken, np.take_along_axis(items, places, axis=-1), NOTHING)
        xp, V = namespace(broadcast.V), broadcast.V
        click = like(taken & np.take_along_axis(clicked, places, axis=-1), V)
        return Rows(xp.astype(like(numbers, V), xp.int64), click, click > 0)


def _numbers(column: NDArray[Any], tables: NDArray[Any]) -> NDArray[Any]:
    """The item numbers in a column of X, for each of the tables."""
    xp = namespace(column)
    return xp.broadcast_to(xp.astype(column, xp.int64), (*tables.shape[:-2], column.shape[-1]))  # type: ignore[no-any-return]


def with_means(V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
    """A table with the columns of the fallback before it: the damped mean rating, and 1."""
    xp, averages = namespace(V), like(public.averages()[:, None], V)
    columns: NDArray[Any] = xp.concat([averages, xp.ones_like(averages), V], axis=1)
    return columns


def fallback_weights(X: NDArray[Any], items: Items, ratings: Array, prior: float = BIAS_PRIOR) -> Array:
    """1 for the item's mean, and for the constant how far a person's ratings are from the means, shrunk to zero."""
    xp, given = namespace(X), items >= 0
    deviations = xp.where(given, ratings - rows_of(X, items)[..., 0], 0.0)
    count = xp.sum(xp.astype(given, X.dtype), axis=-1)
    w = zeros((*items.shape[:-1], X.shape[1]), X)
    w[..., 0], w[..., 1] = 1.0, xp.sum(deviations, axis=-1) / (count + prior)
    return w


def fallback_shares(X: Array, items: Items, ratings: Array, prior: float = BIAS_PRIOR) -> Array:
    """A rating's part of these weights: of the constant's."""
    shares = np.zeros((len(items), X.shape[1]))
    shares[:, 1] = (ratings - X[items, 0]) / (len(items) + prior)
    return shares
