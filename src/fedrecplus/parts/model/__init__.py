"""What is learnt: tables of item factors that everybody shares, and what a device makes of them for its owner.

A model predicts r̂ = X_i·w_u: X_i are columns that everybody knows of an item, w_u are weights that stay on the device.
One that scores otherwise (``scores``) may have dense arrays besides, which everybody knows too.

What a device does is written for any number of clients, in NumPy or torch (``fedrecplus.arrays``). One client has items
(n) and ratings (n). Of a batch they are (…, n), padded to the longest: item −1 is no row. What is computed for such a
row is of no account, and it must have no part in anything else.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, product, remember_last, rows_of
from fedrecplus.device import Device, Rows
from fedrecplus.parts.assumptions import OfModel
from fedrecplus.parts.part import Part, S
from fedrecplus.parts.tree import Leaf, size_of
from fedrecplus.protocol import Broadcast, PublicItems, Sums
from fedrecplus.randomness import mix, normal, subkey, subkeys

Changes = dict[str, Any]
"""settings by name"""


class HeadChoice(NamedTuple):
    """Candidates for settings that predictions or lists have, and that no table was trained with."""

    by: Literal["errors", "lists"]
    """what federated validation judges them by"""
    candidates: tuple[Changes, ...]
    """the first is no change"""
    sure: float = 1.0
    """standard errors by which another must be better"""


class Turn(NamedTuple):
    """Who takes part in a round, of a model whose tables take turns."""

    config: Any
    """the training's, with a model of these columns alone"""
    columns: slice
    """of V"""


class Trained(NamedTuple):
    """What local training leaves."""

    U: Array
    """what stays on the device"""
    delta: Array
    """how the client's rows of the item table moved"""
    statistic: Array = np.zeros(0)
    """what goes up beside the rows, ``statistic_size`` numbers: how dense arrays moved, then statistics"""


def start_noise(seed: int, name: str, rows: int, columns: int) -> Array:
    """A standard normal draw for each cell of a table, before training."""
    cells = np.arange(rows * columns, dtype=np.uint64).reshape(rows, columns)
    return normal(subkey(seed, name), cells)


def keyed_order(device: Device, name: str, round_number: int, items: Items, used: NDArray[np.bool_]) -> Items:
    """Places of clients' rows in an order by their own keys, new in each round; rows that aren't used come last."""
    draws = mix(subkeys(device.secret, name, round_number), items.astype(np.uint64)) >> np.uint64(1)
    return np.argsort(np.where(used, draws, np.uint64(2**64 - 1)), axis=-1, kind="stable")


@remember_last
def prediction_columns(model: Model[Any], broadcast: Broadcast) -> NDArray[Any]:
    """X of a round, the same for everybody."""
    return model.item_columns(broadcast.V, broadcast.public)


@remember_last
def fitted_columns(model: Model[Any], broadcast: Broadcast) -> NDArray[Any]:
    """The columns that weights behind a round's uploads are fitted to, the same for everybody."""
    return model.solved_columns(broadcast.V, broadcast.public)


class Model(Part[S]):
    """What a device learns and predicts, and the server's half of it."""

    kind: ClassVar[str] = "model"
    label: ClassVar[str] = "model"
    PREDICTS_COLD_ITEMS: ClassVar[bool] = False
    """whether it predicts ratings of items that nobody rated, by what describes them"""
    CHOICES: ClassVar[bool] = False
    """whether it learns from what people chose"""
    POPULAR_LISTS: ClassVar[bool] = False
    """whether everybody's list is what is popular, whatever a person chose"""
    ALL_ITEMS: ClassVar[bool] = False
    """whether an upload has a row of every item"""
    RATINGS_BY: ClassVar[str] = "model"
    """what predicts ratings: ``means`` where that is a fallback, which results say"""

    @abstractmethod
    def tree(self) -> dict[str, Leaf]:
        """All parameters by name: item tables, which stand beside each other in V, dense arrays, what is private."""

    @property
    def columns(self) -> int:
        """Of V."""
        return size_of(self.tree(), "table")

    @property
    def dense_size(self) -> int:
        """Numbers of all dense arrays, which everybody is told."""
        return size_of(self.tree(), "dense")

    @property
    def statistic_size(self) -> int:
        """Numbers that an upload has beside its rows: changes of dense arrays, then statistics."""
        return size_of(self.tree(), "dense", "statistic")

    @property
    def local_epochs(self) -> int:
        """K, passes over a client's rows in a round: the setting of that name, where a model has it."""
        return int(self.values.get("local_epochs", 1))

    @property
    def batch_size(self) -> int:
        """B, rows per local step, likewise; 0: all at once."""
        return int(self.values.get("batch_size", 0))

    @property
    def user_columns(self) -> int:
        """Numbers that a device keeps between rounds, beside tables of its own."""
        return size_of(self.tree(), "private")

    def kept(self, items: int) -> int:
        """Numbers that a device keeps between rounds, where there are so many items."""
        return self.user_columns + items * size_of(self.tree(), "own")

    @abstractmethod
    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """The item table before training."""

    def start_dense(self, seed: int) -> Array:
        """The dense arrays before training, beside each other: zeros."""
        return np.zeros(self.dense_size)

    def start_users(self, seed: int, clients: Items, public: PublicItems) -> Array:
        """What some clients' devices keep, before training: a row each."""
        return np.zeros((len(clients), self.kept(len(public.popularity))))

    def new_items(self, V: NDArray[Any], public: PublicItems, seed: int) -> Array:
        """Rows for the items beyond the table, which enter a trained model: start values."""
        return self.start_items(seed, len(public.popularity), public)[len(V) :]

    @abstractmethod
    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """What a client does with its rows in a round."""

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """The server's half: what an optimizer steps by. A model of its own mind divides its sums by itself.

        Σ w Δ over Σ w, zero where nobody uploaded a row.
        """
        weights = sums.weights[:, None]
        mean: Array = np.divide(sums.total, weights, out=np.zeros_like(sums.total), where=weights > 0)
        return mean

    def turn(self, config: Any, number: int) -> Turn | None:
        """Which columns take part in a round; None: all."""
        return None

    @property
    def leaks(self) -> bool:
        """Whether it is told what it is tested on, as some papers' released code is: in simulation, where asked for."""
        return False

    @property
    def updates_items(self) -> bool:
        """Whether the server's half is the model's own, so that no aggregation rule divides its sums."""
        return type(self).update_items is not Model.update_items

    @abstractmethod
    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X: what a device multiplies by its own weights."""

    @abstractmethod
    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """A person's weights from public columns and ratings alone, even from none: how a newcomer gets them."""

    def newcomer(self, X: Array, dense: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """A person's weights from all that is shared: where there are dense arrays, columns alone don't say enough."""
        return self.fold_in(X, items, ratings, public)

    def weight_count(self, columns: int, items: int) -> int:
        """Numbers of a person's weights, where X has so many columns and a row of each of so many items."""
        return columns

    def scores(self, x: NDArray[Any], w: NDArray[Any], dense: NDArray[Any]) -> NDArray[Any]:
        """Predictions (…, n) from rows of X (…, n, columns), a person's weights (…) and the dense arrays: x·w."""
        return product(x, w)

    @property
    def is_linear(self) -> bool:
        """Whether predictions are X·w."""
        return type(self).scores is Model.scores

    def user_weights(self, U: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The weights that predictions use, which never leave the device."""
        return self.fold_in(X, items, ratings, public)

    def predict(self, items: Items, device: Device, broadcast: Broadcast, steps: int = 0) -> Array:
        """The client's own predictions; ``steps`` more user steps add nothing where weights are solved for."""
        X = prediction_columns(self, broadcast)
        weights = self.user_weights(device.U, X, device.items, device.ratings, broadcast.public)
        return self.scores(rows_of(X, items), weights, broadcast.dense)

    def head_choices(self) -> tuple[HeadChoice, ...]:
        """What federated validation may choose, one after the other."""
        return ()

    def with_head(self, head: tuple[int, ...]) -> Self:
        """The model with the settings of the candidates that were chosen."""
        changes = self.head_changes(head)
        return type(self)(msgspec.structs.replace(self.settings, **changes), self.rule) if changes else self

    def head_changes(self, head: tuple[int, ...]) -> Changes:
        """What these candidates change, the later ones last."""
        chosen = (choice.candidates[place] for choice, place in zip(self.head_choices(), head, strict=False))
        return {name: value for changes in chosen for name, value in changes.items()}

    @property
    def scores_lists(self) -> bool:
        """Whether lists are ranked by anything else than predicted ratings."""
        return type(self).list_weights is not Model.list_weights

    @property
    def recency(self) -> float:
        """Choices over which the weight of a choice in lists falls to 1/e, likewise; 0: all weigh the same."""
        return float(self.values.get("recency", 0.0))

    def list_weights(
        self, w: Array, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """Weights z over X such that lists are ranked by X·z; ``recency`` weighs the ratings, None all alike."""
        return w

    def weight_shares(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """Row k is what rating k adds to the weights of ``fold_in``: by default, what leaving it out takes away."""
        whole = self.fold_in(X, items, ratings, public)
        rest = [(np.delete(items, k), np.delete(ratings, k)) for k in range(len(items))]
        return np.asarray(whole - [self.fold_in(X, *others, public) for others in rest])

    def list_weight_shares(
        self, X: Array, items: Items, ratings: Array, public: PublicItems, recency: Array | None = None
    ) -> Array:
        """Row k is what rating k adds to ``list_weights``: by default, what leaving it out takes away.

        Reasons are made of it. Who overrides another model's ``fold_in`` or ``list_weights`` overrides its shares.
        """
        if not self.scores_lists:
            return self.weight_shares(X, items, ratings, public)

        def weights(kept: NDArray[np.bool_]) -> Array:
            own, given, weighed = items[kept], ratings[kept], None if recency is None else recency[kept]
            return self.list_weights(self.fold_in(X, own, given, public), X, own, given, public, weighed)

        everything = np.ones(len(items), dtype=bool)
        return np.asarray(weights(everything) - [weights(others) for others in ~np.eye(len(items), dtype=bool)])

    def attacker(self) -> OfModel | None:
        """What an attacker who knows the model may assume of its uploads; None: nothing is said."""
        return None

    def shown_rated(self, delta: Array) -> NDArray[np.bool_] | None:
        """Which rows of an upload show that they are rated, by what moved; None: none does."""
        return None

    def gradient_rows(self, delta: Array, items: Items, used: Array, broadcast: Broadcast) -> Array:
        """A from an upload's rows Δ, where A_i = e_i·w over the columns that ``attacker`` says are shown."""
        return delta

    def solved_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """The columns that the weights behind an upload are fitted to."""
        return self.item_columns(V, public)

    def ridge_and_prior(self, size: int, items: Items, used: Array, public: PublicItems) -> tuple[Array, Array]:
        """Of each weight that isn't known: its ridge, for rows that were used (1) or not (0), and its prior mean."""
        return np.zeros((*used.shape[:-1], size)), np.zeros(size)
