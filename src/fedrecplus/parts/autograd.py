"""Models by automatic differentiation: a neural model is its tree, its score and its loss, and nothing else.

All three are of one client. The gradients of the loss come from torch, which also runs them over many clients at once
(``torch.func``). Torch is loaded when a model first computes something: a device without such a model stays light.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, like, rows_of
from fedrecplus.device import Device, Rows
from fedrecplus.errors import UserError
from fedrecplus.parts.model import Model, Trained
from fedrecplus.parts.tree import unpack
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.randomness import normal, subkey
from fedrecplus.settings import Annotated, Settings, number

if TYPE_CHECKING:
    from torch import Tensor

EXTRA = "fedrecplus[torch]"
_ROWS_AT_ONCE = 1 << 16
"""rows that are scored together: of hidden layers, too, a table of so many is made"""
NEWCOMER_STEPS = 100
"""gradient steps on a newcomer's own parameters, from zero"""


class NeuralSettings(Settings):
    """Options of every model by automatic differentiation."""

    learning_rate: Annotated[float, number(1e-12, 1e6, "η_L, local step size")] = 0.1
    local_epochs: Annotated[int, number(1, 10_000, "K, steps over the client's rows in a round")] = 1
    regularisation: Annotated[float, number(0, 1e6, "λ, weight decay of all parameters")] = 0.0
    init_scale: Annotated[float, number(0, 1e3, "standard deviation of the start values of tables and devices")] = 0.1


N = TypeVar("N", bound=NeuralSettings)


class ClientRows(NamedTuple):
    """One client's rows, in torch."""

    items: Tensor
    ratings: Tensor
    """real and virtual, on the standard scale"""
    rated: Tensor
    present: Tensor
    """False for rows that are there only because another client has more"""

    def mean(self, values: Tensor) -> Tensor:
        """Over the rows that there are."""
        return (values * self.present).sum() / self.present.sum().clamp(min=1)


Leaves = dict[str, "Tensor"]
"""a client's parameters by name: of a table, the rows of the client's items"""


class NeuralModel(Model[N]):
    """A model whose gradients torch computes."""

    @abstractmethod
    def score(self, leaves: Leaves) -> Tensor:
        """A client's predictions, one for each row of its tables."""

    def loss(self, leaves: Leaves, batch: ClientRows) -> Tensor:
        """What a client's steps lower, a mean over its rows: half the squared error, unless a model says otherwise."""
        return batch.mean((self.score(leaves) - batch.ratings) ** 2) / 2

    def check_with(self, config: Any) -> None:
        """Refuse NumPy, which has no gradients, and a place without torch."""
        engines = {config.engine, config.cluster.engine if config.engine == "ray" else config.engine}
        if "reference" in engines:
            raise UserError(
                f"engine = 'reference' is NumPy alone, and model.rule={self.rule} has its gradients from torch",
                f"set engine=fast or cuda, with pip install '{EXTRA}'",
            )
        if importlib.util.find_spec("torch") is None:
            raise UserError(
                f"model.rule={self.rule} has its gradients from torch, which is not installed",
                f"pip install '{EXTRA}', or choose another model",
            )

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """Tables before training: noise."""
        return self._noise(seed, "start-tables", np.arange(items), self.columns)

    def start_users(self, seed: int, clients: Items, public: PublicItems) -> Array:
        """Private parameters before training: noise."""
        return self._noise(seed, "start-private", clients, self.user_columns)

    def start_dense(self, seed: int) -> Array:
        """Noise over √inputs for matrices, whose rows are inputs; zeros for vectors. After: LeCun et al. 1998"""
        dense = np.zeros(self.dense_size)
        for name, leaf in unpack(self.tree(), dense, "dense").items():
            if leaf.ndim > 1:
                leaf[...] = normal(subkey(seed, "start-dense", name), np.arange(leaf.size)).reshape(leaf.shape)
                leaf /= np.sqrt(len(leaf))
        return dense

    def _noise(self, seed: int, name: str, rows: Items, columns: int) -> Array:
        cells = rows[:, None].astype(np.uint64) * np.uint64(columns) + np.arange(columns, dtype=np.uint64)
        return self.settings.init_scale * normal(subkey(seed, name), cells)

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """K steps on all parameters, the client's rows of the tables among them."""
        items, ratings, rated = (tensor(each) for each in (rows.items, rows.ratings, rows.rated))
        table, dense, private = rows_of(tensor(broadcast.V), items), tensor(broadcast.dense), tensor(device.U)
        batch = ClientRows(items, ratings, rated, items >= 0)
        steps = functools.partial(self._descend, all_leaves=True, steps=self.settings.local_epochs)
        moved = _for_each(steps, items.ndim > 1, table, dense, private, batch)
        delta, change = moved[0] - table, moved[1] - dense
        return Trained(*(_as(broadcast.V, each) for each in (moved[2], delta, change)))

    def _descend(
        self, table: Tensor, dense: Tensor, private: Tensor, batch: ClientRows, *, all_leaves: bool, steps: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Steps of one client along the gradient; with the private parameters alone where all else is given.

        The loss is a mean over rows. A row of a table is in one term of it, and steps by that term: its gradient is
        taken times the number of rows, as in ``mf``.
        """
        grad, settings = _torch().func.grad(self._loss, argnums=(0, 1, 2)), self.settings
        rows = batch.present.sum().clamp(min=1)
        for _ in range(steps):
            by_table, by_dense, by_private = grad(table, dense, private, batch)
            private = private - settings.learning_rate * (by_private + settings.regularisation * private)
            if all_leaves:
                table = table - settings.learning_rate * (rows * by_table + settings.regularisation * table)
                dense = dense - settings.learning_rate * (by_dense + settings.regularisation * dense)
        return table, dense, private

    def _loss(self, table: Tensor, dense: Tensor, private: Tensor, batch: ClientRows) -> Tensor:
        return self.loss(self._leaves(table, dense, private), batch)

    def _score(self, table: Tensor, dense: Tensor, private: Tensor) -> Tensor:
        return self.score(self._leaves(table, dense, private))

    def _leaves(self, table: Any, dense: Any, private: Any) -> Any:
        """All leaves of one client by name."""
        tree = self.tree()
        return {**unpack(tree, table, "table"), **unpack(tree, dense, "dense"), **unpack(tree, private, "private")}

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = V."""
        return V

    def weight_count(self, columns: int, items: int) -> int:
        """The private parameters."""
        return self.user_columns

    def user_weights(self, U: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """The private parameters."""
        return U

    def scores(self, x: NDArray[Any], w: NDArray[Any], dense: NDArray[Any]) -> NDArray[Any]:
        """Predictions (…, n) of rows (…, n, columns) or (n, columns)."""
        torch, tensors = _torch(), [tensor(each) for each in (x, dense, w)]
        run: Any = self._score
        if w.ndim > 1:
            at_once = max(1, _ROWS_AT_ONCE // max(1, x.shape[-2]))
            run = torch.func.vmap(run, in_dims=(0 if x.ndim > 2 else None, None, 0), chunk_size=at_once)
        with torch.no_grad():
            predicted: NDArray[Any] = _as(x, run(*tensors))
        return predicted

    def predict(self, items: Items, device: Device, broadcast: Broadcast, steps: int = 0) -> Array:
        """The client's own predictions, after ``steps`` more steps on its private parameters."""
        U = device.U
        if steps:
            U = self._fitted(broadcast.V, broadcast.dense, device.U, device.items, device.ratings, steps)
        return self.scores(rows_of(broadcast.V, items), U, broadcast.dense)

    def newcomer(self, X: Array, dense: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """Private parameters by gradient steps, with all that is shared as it is."""
        start = like(np.zeros((*items.shape[:-1], self.user_columns)), X)
        return self._fitted(X, dense, start, items, ratings, NEWCOMER_STEPS)

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """``newcomer`` of a model without dense arrays."""
        return self.newcomer(X, np.zeros(0), items, ratings, public)

    def _fitted(
        self, V: NDArray[Any], dense: NDArray[Any], U: NDArray[Any], items: Items, ratings: Array, steps: int
    ) -> NDArray[Any]:
        numbers = tensor(items)
        batch = ClientRows(numbers, tensor(ratings), numbers >= 0, numbers >= 0)
        return self.fitted_to(rows_of(tensor(V), numbers), dense, U, batch, steps, V)

    def fitted_to(
        self, table: Any, dense: NDArray[Any], U: NDArray[Any], batch: ClientRows, steps: int, like: NDArray[Any]
    ) -> NDArray[Any]:
        """Private parameters after more steps on them alone, each client's rows of the table given."""
        descend = functools.partial(self._descend, all_leaves=False, steps=steps)
        *_, fitted = _for_each(descend, U.ndim > 1, table, tensor(dense), tensor(U), batch)
        weights: NDArray[Any] = _as(like, fitted)
        return weights


def _for_each(one: Callable[..., Any], many: bool, table: Any, dense: Any, private: Any, batch: ClientRows) -> Any:
    """What one client's function gives, for one client or for many; all have the same dense arrays."""
    if many:
        one = _torch().func.vmap(one, in_dims=(0, None, 0, ClientRows(0, 0, 0, 0)))  # type: ignore[arg-type]
    return one(table, dense, private, batch)


@functools.cache
def _torch() -> Any:
    """Torch, loaded at first use, since that takes seconds.

    On the processor it gets one thread: engines run batches on threads of their own, and where both do, they wait for
    each other (ten times as long on two busy cores).
    """
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    return torch


def tensor(array: Any) -> Any:
    """A NumPy array as a tensor over the same memory; a tensor as it is."""
    if not isinstance(array, np.ndarray):
        return array
    return _torch().from_numpy(array if array.flags.writeable and array.flags.c_contiguous else array.copy())


def _as(other: Any, tensor: Any) -> Any:
    """A tensor as what another array is: NumPy or torch."""
    return tensor.numpy() if isinstance(other, np.ndarray) else tensor
