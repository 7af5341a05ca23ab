"""Models of clicks: what a person rated counts as clicked, and of all other items some are drawn as not clicked.

They rank, and predict no ratings: what stands for them is the item's damped mean plus the person's damped deviation.
A person's weights hold both. The first three say what a score is made of: of the item's mean, of a constant, and of
the model's own score, whose parameters come after them. Predictions have no part of the last, lists nothing else.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import in_numpy, like, namespace, rows_of, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Model
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import mix, subkeys, to_unit
from fedrecplus.settings import Annotated, Settings, number

Array = NDArray[np.float64]
Items = NDArray[np.int64]
BEFORE = 2
"""columns of X before the table: the item's mean, and a constant"""
_MIXING = 3
"""weights before the private parameters"""
BIAS_PRIOR = 5.0
"""pseudo-ratings that a person's deviation from items' means is shrunk by"""


class ClickSettings(Settings):
    """Options of every model of clicks."""

    negatives: Annotated[float, number(0.01, 1000, "items drawn as not clicked, per click")] = 4.0


C = TypeVar("C", bound=ClickSettings)


class ClickModel(Model[C]):
    """Scores of clicks by parameters that stay on the device; an upload has a row of every item."""

    CHOICES = True
    ALL_ITEMS = True
    RATINGS_BY = "means"

    @abstractmethod
    def logits(self, rows: NDArray[Any], private: NDArray[Any], dense: NDArray[Any]) -> NDArray[Any]:
        """The log odds of a click (…, n), from rows of the table and the private parameters."""

    @abstractmethod
    def fitted(self, table: NDArray[Any], dense: NDArray[Any], clicked: Array, weights: Array) -> Array:
        """A newcomer's private parameters, from which of all items are clicked, and how much each counts."""

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = (damped mean rating, 1, the table's row)."""
        return with_means(V, public)

    def weight_count(self, columns: int) -> int:
        """What a score is made of, and the private parameters."""
        return _MIXING + self.user_columns

    def user_weights(self, U: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """Weights for predicted ratings, which are the fallback's."""
        w = zeros((*items.shape[:-1], _MIXING + U.shape[-1]), X)
        w[..., 0], w[..., 1], w[..., _MIXING:] = 1.0, damped_deviation(X, items, ratings), U
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
        scores: NDArray[Any] = fallback + own * self.logits(x[..., BEFORE:], w[..., _MIXING:], dense)
        return scores

    def newcomer(self, X: Array, dense: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The fallback's weights, and private parameters fitted to the clicks with all other items as negatives."""
        clicked = zeros((*items.shape[:-1], len(X)), X)
        line = np.nonzero(in_numpy(items) >= 0)
        clicked[(*line[:-1], in_numpy(items)[line])] = 1.0
        weights = clicked + (1.0 - clicked) * self.share(clicked)
        return self.user_weights(self.fitted(X[:, BEFORE:], dense, clicked, weights), X, items, ratings, public)

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """``newcomer`` of a model without dense arrays."""
        return self.newcomer(X, zeros((0,), X), items, ratings, public)

    def share(self, clicked: Array) -> Array:
        """How likely an item that is not clicked is drawn: so many per click, on average."""
        xp = namespace(clicked)
        n, items = xp.sum(clicked, axis=-1)[..., None], clicked.shape[-1]
        return xp.clip(self.settings.negatives * n / xp.clip(items - n, 1.0, None), 0.0, 1.0)  # type: ignore[no-any-return]

    def drawn(self, device: Device, rows: Rows, broadcast: Broadcast) -> Array:
        """1 for the rows that a round's loss is over, clicks and drawn negatives, 0 for the others.

        Negatives are items outside the device's own data, drawn anew each round by the device's key.
        """
        clicked = like(in_numpy(rows.rated).astype(np.float64), broadcast.V)
        key = subkeys(device.secret, "negatives", broadcast.round)
        draws = to_unit(mix(key, in_numpy(rows.items).astype(np.uint64)))
        negative = like((draws < in_numpy(self.share(clicked))).astype(np.float64), broadcast.V)
        weights: Array = clicked + (1.0 - clicked) * negative
        return weights


def with_means(V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
    """A table with the columns of the fallback before it: the damped mean rating, and 1."""
    xp, averages = namespace(V), like(public.averages()[:, None], V)
    columns: NDArray[Any] = xp.concat([averages, xp.ones_like(averages), V], axis=1)
    return columns


def damped_deviation(X: NDArray[Any], items: Items, ratings: Array) -> Array:
    """How far a person's ratings are from the items' means, shrunk to zero."""
    xp, given = namespace(X), items >= 0
    deviations = xp.where(given, ratings - rows_of(X, items)[..., 0], 0.0)
    count = xp.sum(xp.astype(given, X.dtype), axis=-1)
    return xp.sum(deviations, axis=-1) / (count + BIAS_PRIOR)  # type: ignore[no-any-return]
