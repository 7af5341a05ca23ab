"""Models of clicks by automatic differentiation: a tree and a score; the loss is the logistic one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from numpy.typing import NDArray

from fedrecplus.arrays import Array, put_rows, rows_of, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.parts.autograd import NEWCOMER_STEPS, ClientRows, Leaves, NeuralModel, NeuralSettings, tensor
from fedrecplus.parts.model import Model, Trained
from fedrecplus.parts.model._clicks import NEGATIVES, ClickModel, LeakyNegatives
from fedrecplus.protocol import Broadcast

if TYPE_CHECKING:
    from torch import Tensor


class NeuralClickSettings(NeuralSettings):
    """Options of every such model: those of ``ClickSettings``, too."""

    negatives: ClassVar[float] = NEGATIVES
    leaky_negatives: LeakyNegatives = False


B = TypeVar("B", bound=NeuralClickSettings)


class NeuralClicks(ClickModel[B], NeuralModel[B]):  # type: ignore[type-var]
    """Clicks and drawn negatives, whose log odds are ``score``."""

    predict = Model.predict

    def loss(self, leaves: Leaves, batch: ClientRows) -> Tensor:
        """Mean of −log σ(s) of clicks and −log σ(−s) of negatives."""
        x = (1.0 - 2.0 * batch.ratings) * self.score(leaves)
        return batch.mean(x.clamp(min=0.0) + (-x.abs()).exp().log1p())

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """Steps on all parameters, with the rows of clicks and of drawn negatives among them."""
        used = self.drawn(device, rows, broadcast)
        trained = NeuralModel.local_training(self, device, used, broadcast)
        whole = rows_of(broadcast.V, rows.items)
        return trained._replace(delta=put_rows(0.0 * whole, used.items, trained.delta))

    def logits(self, rows: NDArray[Any], private: NDArray[Any], dense: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
        """The score."""
        return NeuralModel.scores(self, rows, private, dense)

    def fitted(self, table: NDArray[Any], dense: NDArray[Any], clicked: Array, weights: Array) -> Array:
        """Private parameters by gradient steps, from zero."""
        start, present = zeros((*clicked.shape[:-1], self.user_columns), table), tensor(weights)
        rows = tensor(table).expand(*clicked.shape, table.shape[-1])
        batch = ClientRows(present, tensor(clicked), present, present)
        return self.fitted_to(rows, dense, start, batch, NEWCOMER_STEPS, table)
