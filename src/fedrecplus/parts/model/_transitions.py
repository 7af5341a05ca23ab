"""What is chosen soon after what: one table T, of sums in which every person's choices meet their neighbours in time.

C = Σ_u Σ_{s≠t} ½ exp(−(|s − t| − 1)/τ) e_s e_tᵀ counts, over all people, which items are chosen close to each other.
T Tᵀ is A C A, with A_ii = (n_i + λ)^−½, cut to its strongest directions, each as strong as its root. Nobody sends C.
Each round a device sends its part of C A T, a table as wide as T, and the server makes the next T of the sum: subspace
iteration, with as many rounds as that needs.

Order counts by its distance alone: what comes before and what comes after speak for each other alike. So one table does
for two, and in MovieLens it ranks better than a table of what came before beside one of what comes next.

After: Rendle, Freudenthaler and Schmidt-Thieme 2010 (FPMC), Nikolakopoulos et al. 2019 (EigenRec). Ours: by sums
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items, in_numpy, like, namespace, own_rows, put_rows, remember_last, rows_of, zeros
from fedrecplus.device import Device, Rows
from fedrecplus.parts.model import Model, Trained, start_noise
from fedrecplus.parts.model.joint import Settings as JointSettings
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Broadcast, PublicItems, Sums

_LEAST = 1e-4
"""of the greatest strength: a direction that is weaker, or negative, is kept as weak as this"""


class Settings(JointSettings):
    """Options of the model: those of ``joint``, and of T."""

    sequence_weight: ClassVar[float] = 5.0
    """of T's part in lists of what comes next, beside that of what people choose at all"""
    decay: ClassVar[float] = 2.0
    """τ, choices over which two of them have less to do with each other by a factor e"""
    rare: ClassVar[float] = 50.0
    """λ, choices that an item's own are added to: rows of rare items are shrunk"""


class Transitions(Model[Settings]):
    """T alone."""

    NEEDS = frozenset({"order"})

    def tree(self) -> dict[str, Leaf]:
        """T. One device's part names what it chose, and when."""
        return {"T": Leaf.table(width_of(self.settings), seen="sums")}

    def start_items(self, seed: int, items: int, public: PublicItems) -> Array:
        """T before training: noise."""
        return np.asarray(start_noise(seed, "start-T", items, width_of(self.settings)) / np.sqrt(items))

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        """The person's part of C A T, over a public scale; zeros where no order is known."""
        xp, E = namespace(broadcast.V), rows_of(scaled_rows(self, broadcast)[0], device.items)
        part = zeros((*device.items.shape, E.shape[-1]), E)
        if device.ages is not None:
            alike = namespace(device.ages) is xp
            ages = xp.astype(device.ages, E.dtype) if alike else like(in_numpy(device.ages), E)
            part = self.nearness(ages, device.items >= 0) @ E
        if part.shape[-2] == rows.items.shape[-1]:
            return Trained(device.U, part)
        whole = put_rows(zeros((*device.items.shape[:-1], *broadcast.V.shape), E), device.items, part)
        return Trained(device.U, xp.asarray(own_rows(whole, rows.items)))

    def nearness(self, ages: Array, present: NDArray[np.bool_]) -> Array:
        """½ exp(−(|s − t| − 1)/τ) of two different choices."""
        xp = namespace(ages)
        apart = xp.abs(ages[..., :, None] - ages[..., None, :])
        both = present[..., :, None] & present[..., None, :] & (apart > 0)
        return xp.where(both, 0.5 * xp.exp((1.0 - apart) / self.settings.decay), 0.0)  # type: ignore[no-any-return]

    def update_items(self, sums: Sums, V: NDArray[Any], public: PublicItems) -> Array:
        """The next T: the sum's directions, each times the fourth root of its strength.

        With T = X R, where X has orthonormal columns, XᵀA C A X says how strong the directions of X are, and A C A X,
        which the sum gives, where better ones lie. A multiple of X on top makes directions of negative strength fade.
        Columns are turned at random, so that all are of a size.
        """
        T, scale = V.astype(np.float64), row_scale(self.settings, public)
        if not sums.total.any():
            return np.zeros_like(T)
        X, R = np.linalg.qr(T)
        turned = np.linalg.solve(R.T, (scale[:, None] * size_of_rows(T, scale) * sums.total).T).T
        between = X.T @ turned
        strengths, directions = np.linalg.eigh((between + between.T) / 2.0)
        opposed = max(0.0, -strengths[0])
        better, _ = np.linalg.qr(((turned + opposed * X) @ directions)[:, ::-1])
        relative = np.maximum(strengths[::-1] / max(strengths[-1], np.finfo(np.float64).tiny), _LEAST)
        rotation, _ = np.linalg.qr(start_noise(0, "rotation", X.shape[1], X.shape[1]))
        return np.asarray((better * relative**0.25) @ rotation - T)

    def item_columns(self, V: NDArray[Any], public: PublicItems) -> NDArray[Any]:
        """X = A⁻¹ T, whose rows meet in lists."""
        columns: NDArray[Any] = V / like(row_scale(self.settings, public)[:, None], V)
        return columns

    def fold_in(self, X: Array, items: Items, ratings: Array, public: PublicItems) -> Array:
        """T predicts no ratings."""
        return zeros((*items.shape[:-1], X.shape[1]), X)

    def following(self, X: Array, items: Items, public: PublicItems, recency: Array) -> Array:
        """What each choice adds to the weights for lists of what comes next: recency × row of A T."""
        scale = like(row_scale(self.settings, public)[:, None] ** 2, X)
        weighed: Array = recency[..., None] * rows_of(scale, items) * rows_of(X, items)
        return weighed


def width_of(settings: Settings) -> int:
    """Columns of T: as many as V and W have, so that all rounds have uploads of a size."""
    return settings.factors + settings.interaction_factors


def row_scale(settings: Settings, public: PublicItems) -> Array:
    """A."""
    return np.asarray((public.popularity + settings.rare) ** -0.5)


def size_of_rows(T: Array, scale: Array) -> float:
    """Twelve times the root mean square of A T over choices.

    Sums of a ring have room for numbers of both signs: what many send alike must stay well below their bound of 8.
    """
    squares = np.mean((scale[:, None] * T) ** 2, axis=1)
    return 12.0 * float(np.sqrt(np.average(squares, weights=scale**-2))) or 1.0


@remember_last
def scaled_rows(model: Transitions, broadcast: Broadcast) -> tuple[NDArray[Any], float]:
    """A T over its size."""
    T, scale = in_numpy(broadcast.V).astype(np.float64), row_scale(model.settings, broadcast.public)
    size = size_of_rows(T, scale)
    return like(scale[:, None] * T / size, broadcast.V), size
