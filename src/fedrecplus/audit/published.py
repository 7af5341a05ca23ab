"""What a published model gives to whoever opens it: no server, no upload, no knowledge.

Of an item that one person rated, the count says that there is one and the average is the rating; the list of items says
that somebody rated them. Exact counts and averages are told from coarse or noisy ones by sums that land on the scale.
A seed beside a claimed budget makes the noise again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.attacks.constraints import sums_behind
from fedrecplus.audit.scoring import interval_of_share
from fedrecplus.data import Ratings
from fedrecplus.training import SharedModel

_ON_SCALE = 0.02
"""steps that a sum may be off the scale by: averages are published in 16 or 32 bits"""
_BY_CHANCE = 0.1
"""share of sums that lie so near to the scale by chance, generously"""


@dataclass(frozen=True)
class Opened:
    """What is read out of a published model."""

    items: Items
    """of one rater, by their place in the model"""
    ratings: Array
    exact: float
    """share of the counted items whose sum of ratings lies on the scale"""
    seed: int | None
    """that made the noise of a claimed budget"""


def opened(model: SharedModel) -> Opened:
    """By the public figures alone."""
    public, step = model.public, model.scale.standard_step
    sums, counted = sums_behind(public, step), public.popularity > 0
    near = np.abs(sums / step - np.rint(sums / step)) < _ON_SCALE
    few = counted & (public.popularity <= 5)  # of many raters every sum is near to some step
    exact = float(near[few].mean()) if few.any() else 0.0
    items = np.flatnonzero((public.popularity == 1) & near & (exact > _BY_CHANCE))
    claimed = model.config.privacy.UNIT is not None or public.epsilon is not None
    seed = model.config.seed if claimed and model.config.seeded_noise else None
    return Opened(items, 1.0 + step * np.rint((sums[items] - 1.0) / step), exact, seed)


def read_in_file(folder: Path, *candidates: Ratings) -> dict[str, Any]:
    """What a published model's folder gives away of the people who trained it: of whichever ratings fit it best."""
    model = SharedModel.read(folder)
    return max((_compared(model, ratings) for ratings in candidates), key=lambda found: found["read"])


def _compared(model: SharedModel, ratings: Ratings) -> dict[str, Any]:
    found = opened(model)
    place = {str(name): number for number, name in enumerate(ratings.item_ids.tolist())}
    names = [str(model.item_ids[item]) for item in found.items.tolist()]
    own = np.array([place.get(name, -1) for name in names], dtype=np.int64)
    sums = np.bincount(ratings.items, ratings.standard_values, ratings.item_count)
    alone = ratings.item_counts() == 1
    right = int(((own >= 0) & alone[own] & np.isclose(sums[own], found.ratings)).sum()) if len(own) else 0
    once = int(alone.sum())
    return {
        "once_rated": once,
        "read": right,
        "read_interval": interval_of_share(right, once),
        "named": len(own),
        "exact_figures": found.exact,
        "seed": found.seed,
    }


def file_sentence(found: dict[str, Any]) -> str:
    """What comes out of it, in words."""
    read = f"{found['read']} of {found['once_rated']} ratings of items that one person rated are read from it"
    seed = "; its seed makes the noise again, so that its ε holds against nobody" if found["seed"] is not None else ""
    return f"published: {read}{seed}"
