"""Parts as somebody outside would write them, each a file with an option of its own: texts, to be written to files."""

from __future__ import annotations

from pathlib import Path

FILES = {
    "my_pseudo_items": '''
"""The unrated items with the highest numbers, every so many of them."""

from typing import final

from fedrecplus.arrays import cumulative, greatest, places_of
from fedrecplus.device import Device
from fedrecplus.parts.pseudo_items import Count, Items, PseudoItems, SetSettings, candidates
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Annotated, number


class Settings(SetSettings):
    """Options."""

    stride: Annotated[int, number(1, 50, "take each of so many")] = 2


@final
class Highest(PseudoItems[Settings]):
    """Ours: a test."""

    def select(self, count: Count, device: Device, broadcast: Broadcast) -> Items:
        items = len(broadcast.V)
        xp, unrated, wanted = candidates(count, device.items, items)
        above = xp.sum(unrated, axis=-1)[..., None] - cumulative(unrated)
        scores = xp.where(unrated, -(items * (above % self.settings.stride) + above), -(items**2))
        return places_of(greatest(scores, wanted), int(xp.max(wanted)))
''',
    "my_virtual_ratings": '''
"""The client's highest rating, a little lower for items with high numbers."""

from typing import final

from fedrecplus.arrays import namespace
from fedrecplus.device import Device
from fedrecplus.parts.virtual_ratings import Array, FillSettings, Items, Predict, VirtualRatings
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Annotated, number


class Settings(FillSettings):
    """Options."""

    slope: Annotated[float, number(0, 1, "lower by so much per item number")] = 0.01


@final
class Downhill(VirtualRatings[Settings]):
    """Ours: a test."""

    def fill(self, items: Items, device: Device, broadcast: Broadcast, predict: Predict) -> Array:
        xp = namespace(items)
        highest = xp.max(xp.where(device.items >= 0, device.ratings, 0.0), axis=-1)[..., None]
        ratings: Array = highest - self.settings.slope * items
        return ratings
''',
    "my_encoder": '''
"""The item factors to some power."""

from typing import final

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.encoder import Encoder
from fedrecplus.protocol import PublicItems
from fedrecplus.settings import Annotated, number
from fedrecplus.settings import Settings as Base


class Settings(Base):
    """Options."""

    power: Annotated[int, number(1, 5, "of every number")] = 2


@final
class Power(Encoder[Settings]):
    """Ours: a test."""

    def encode(self, V: NDArray[np.float64], public: PublicItems) -> NDArray[np.float64]:
        return np.asarray(V**self.settings.power)
''',
    "my_aggregation": '''
"""Clients with few rows count more."""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import namespace
from fedrecplus.parts.aggregation import WeightedAggregation, WeightSettings
from fedrecplus.protocol import Broadcast
from fedrecplus.settings import Annotated, number


class Settings(WeightSettings):
    """Options."""

    power: Annotated[float, number(0, 2, "of the number of rows")] = 0.5


@final
class FewRows(WeightedAggregation[Settings]):
    """Ours: a test."""

    def weight(self, items: NDArray[np.int64], delta: NDArray[np.float64], broadcast: Broadcast) -> Any:
        xp = namespace(items)
        return xp.astype(xp.sum(items >= 0, axis=-1), delta.dtype) ** -self.settings.power
''',
    "my_server_optimizer": '''
"""The sign of the aggregate, which fades."""

from typing import final

import numpy as np
from numpy.typing import NDArray

from fedrecplus.parts.server_optimizer import RateSettings, ServerOptimizer
from fedrecplus.settings import Annotated, number

Array = NDArray[np.float64]


class Settings(RateSettings):
    """Options."""

    learning_rate: Annotated[float, number(1e-12, 1e9, "global step size")] = 0.02
    fade: Annotated[float, number(0, 1, "share of the last size that is kept")] = 0.5


@final
class Sign(ServerOptimizer[Settings]):
    """Ours: a test."""

    MOMENTS = 1

    def step(self, aggregate: Array, moments: list[Array], round_number: int) -> tuple[Array, list[Array]]:
        size = self.settings.fade * moments[0] + np.abs(aggregate)
        move = np.sign(aggregate) * size / (size + 1)
        return (self.rate * move).astype(aggregate.dtype), [size]
''',
    "my_channel": '''
"""Rows are rounded before they leave the device."""

from dataclasses import replace
from typing import final

import numpy as np

from fedrecplus.parts.channel import Channel
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.randomness import Key
from fedrecplus.settings import Annotated, number
from fedrecplus.settings import Settings as Base


class Settings(Base):
    """Options."""

    decimals: Annotated[int, number(0, 12, "digits that are kept")] = 3


@final
class Rounded(Channel[Settings]):
    """Ours: a test."""

    VIEW = "uploads"

    def protect(self, upload: Upload, secret: Key, broadcast: Broadcast) -> Upload:
        return replace(upload, delta=np.round(upload.delta, self.settings.decimals))
''',
    "my_model": '''
"""An item's damped mean, learnt in rounds, beside the client's own mean: no factors at all."""

from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import namespace, rows_of
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Model, Trained
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems
from fedrecplus.settings import Annotated, number
from fedrecplus.settings import Settings as Base

Array = NDArray[np.float64]
Items = NDArray[np.int64]


class Settings(Base):
    """Options."""

    learning_rate: Annotated[float, number(1e-12, 10, "step of an item's deviation")] = 0.5
    pull: Annotated[float, number(0, 1e3, "ratings' worth of zero in a client's own mean")] = 1.0


@final
class Means(Model[Settings]):
    """Ours: a test."""

    def tree(self) -> dict[str, Leaf]:
        return {"deviation": Leaf.table(1), "own": Leaf.private(1)}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        return np.zeros((items, 1))

    def start_users(self, seed: int, clients: Items, public: PublicItems) -> Array:
        return np.full((len(clients), 1), public.mean)

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        xp = namespace(V)
        columns: NDArray[Any] = xp.concat([xp.ones_like(V), V], axis=1)
        return columns

    def own_mean(self, deviations: Array, rated: NDArray[np.bool_], public: PublicItems) -> Array:
        pull = self.settings.pull
        mean: Array = ((deviations * rated).sum(-1) + pull * public.mean) / (rated.sum(-1) + pull + 1e-9)
        return mean[..., None]

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        return self.weights(self.own_mean(ratings - rows_of(X, items)[..., 1], items >= 0, public))

    def user_weights(self, U: Array, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        return self.weights(U)

    def predict(self, items: Items, device: Device, broadcast: Broadcast, steps: int = 0) -> Array:
        ratings: Array = device.U + rows_of(broadcast.V, items)[..., 0]
        return ratings

    def weights(self, mean: Array) -> Array:
        xp = namespace(mean)
        weights: Array = xp.concat([mean, xp.ones_like(mean)], axis=-1)
        return weights

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        targets = rows.ratings - rows_of(broadcast.V, rows.items)[..., 0]
        own = self.own_mean(targets, rows.rated, broadcast.public)
        return Trained(own, self.settings.learning_rate * (targets - own)[..., None])
''',
    "my_neural": '''
"""A hidden layer over an item's row and a person's vector: a table, dense arrays and a private vector."""

from typing import final

import torch
from torch import Tensor

from fedrecplus.parts.autograd import Leaves, NeuralModel, NeuralSettings
from fedrecplus.parts.tree import Leaf
from fedrecplus.settings import Annotated, number


class Settings(NeuralSettings):
    """Options."""

    factors: Annotated[int, number(1, 64, "columns of V")] = 4
    hidden: Annotated[int, number(1, 64, "units of the layer")] = 6


@final
class Ncf(NeuralModel[Settings]):
    """Ours: a test."""

    def tree(self) -> dict[str, Leaf]:
        factors, hidden = self.settings.factors, self.settings.hidden
        layers = {"layer": Leaf.dense(2 * factors, hidden), "out": Leaf.dense(hidden, 1), "mean": Leaf.dense(1)}
        return {"V": Leaf.table(factors), **layers, "u": Leaf.private(factors)}

    def score(self, leaves: Leaves) -> Tensor:
        rows = leaves["V"]
        pairs = torch.cat([rows, leaves["u"].expand(len(rows), -1)], dim=-1)
        return 3.0 + leaves["mean"] + (torch.tanh(pairs @ leaves["layer"]) @ leaves["out"])[:, 0]
''',
    "my_attack": '''
"""Rows that moved much are rated."""

from typing import final

import numpy as np

from fedrecplus.audit.attacks import Attack, Guess, Transcript, silent
from fedrecplus.settings import Annotated, number
from fedrecplus.settings import Settings as Base


class Settings(Base):
    """Options."""

    sign: Annotated[float, number(-1, 1, "of the score")] = 1.0


@final
class Sizes(Attack[Settings]):
    """Ours: a test."""

    def attack(self, transcript: Transcript, client: int) -> tuple[Guess, ...]:
        one = transcript.uploads(client)[0]
        size = self.settings.sign * np.linalg.norm(one.upload.delta, axis=1)
        return (Guess(one.round, one.upload.items, silent(one.upload.items), size),)
''',
}
OPTIONS = {
    "my_pseudo_items": "stride=3",
    "my_virtual_ratings": "slope=0.02",
    "my_encoder": "power=3",
    "my_aggregation": "power=1",
    "my_server_optimizer": "fade=0.25",
    "my_channel": "decimals=2",
    "my_model": "pull=4",
}
"""each file's own option, with another value than its default"""


def write_all(folder: Path, package: str = "my_rules") -> Path:
    """All files as one package in a folder."""
    home = folder / package
    home.mkdir()
    (home / "__init__.py").write_text("")
    for name, text in FILES.items():
        (home / f"{name}.py").write_text(text.lstrip(), encoding="utf-8")
    return home
