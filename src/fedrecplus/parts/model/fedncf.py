"""FedNCF: neural collaborative filtering, averaged. Item tables and layers are shared; a person's vectors stay.

Two item tables meet two vectors of the person: one by the product, column by column, the other through layers that
halve in width. A last layer makes the log odds of a click of both (NeuMF).

After: Perifanis and Efraimidis 2022 (FedNCF), He et al. 2017 (NeuMF)
Deviation: full gradient steps on the device, for Adam over batches.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, ClassVar

from fedrecplus.parts.autograd import Leaves
from fedrecplus.parts.model._neural_clicks import NeuralClicks, NeuralClickSettings
from fedrecplus.parts.tree import Leaf
from fedrecplus.settings import Annotated, number

if TYPE_CHECKING:
    from torch import Tensor


class Settings(NeuralClickSettings):
    """Options of the model."""

    factors: Annotated[int, number(2, 4096, "d, columns of each of the two item tables")] = 16
    layers: ClassVar[int] = 2
    """hidden layers, each half as wide as the one before; the first has d"""


class FedNCF(NeuralClicks[Settings]):
    """Products and layers, side by side."""

    @property
    def widths(self) -> list[int]:
        """Inputs of each layer, and outputs of the last."""
        d = self.settings.factors
        return [2 * d, *(max(1, d >> depth) for depth in range(self.settings.layers))]

    def tree(self) -> dict[str, Leaf]:
        """Tables and layers, which are shared, and the person's vectors. One device's change of them names clicks."""
        d, widths = self.settings.factors, self.widths
        tree = {"products": Leaf.table(d, seen="sums"), "inputs": Leaf.table(d, seen="sums")}
        for depth, (wide, narrow) in enumerate(itertools.pairwise(widths)):
            tree |= {f"layer_{depth}": Leaf.dense(wide, narrow), f"bias_{depth}": Leaf.dense(narrow)}
        tree |= {"last": Leaf.dense(d + widths[-1], 1), "constant": Leaf.dense(1)}
        return {**tree, "u_products": Leaf.private(d), "u_inputs": Leaf.private(d)}

    def score(self, leaves: Leaves) -> Tensor:
        """Log odds of a click."""
        d, first, last = self.settings.factors, leaves["layer_0"], leaves["last"]
        hidden = leaves["inputs"] @ first[:d] + leaves["u_inputs"] @ first[d:] + leaves["bias_0"]
        for depth in range(1, self.settings.layers):
            hidden = hidden.relu() @ leaves[f"layer_{depth}"] + leaves[f"bias_{depth}"]
        odds = (leaves["products"] * leaves["u_products"]) @ last[:d] + hidden.relu() @ last[d:]
        return odds[..., 0] + leaves["constant"]
