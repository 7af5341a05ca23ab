"""Random folds and validation cuts. Clients and items keep their numbers, so cold ones stay and are predicted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Ratings
from fedrecplus.errors import UserError
from fedrecplus.randomness import keys, subkey

_MOST_FOLDS = 255


def folds(ratings: Ratings, count: int = 5, seed: int = 0) -> NDArray[np.uint8]:
    """The fold number of every rating: random, and each fold as large as the others or by one larger.

    Paper: five random folds, each a fifth of the ratings.
    """
    if not 2 <= count <= min(_MOST_FOLDS, len(ratings)):
        raise UserError(
            f"{len(ratings):,} ratings can't be cut into {count} folds",
            f"take 2 to {min(_MOST_FOLDS, len(ratings))} folds",
        )
    number = np.empty(len(ratings), dtype=np.uint8)
    number[_shuffled(len(ratings), subkey(seed, "folds"))] = np.arange(len(ratings)) % count
    return number


def split(ratings: Ratings, fold: int, count: int = 5, seed: int = 0) -> tuple[Ratings, Ratings]:
    """The ratings outside a fold, to train on, and those in it, to test on."""
    if not 0 <= fold < count:
        raise UserError(f"there is no fold {fold}", f"the {count} folds are numbered 0 to {count - 1}")
    in_fold = folds(ratings, count, seed) == fold
    return ratings.where(~in_fold), ratings.where(in_fold)


def validation_cut(train: Ratings, share: float = 0.1, seed: int = 0) -> tuple[Ratings, Ratings]:
    """A training part in two: what is left to fit on, and a random share (at least a rating) to choose settings by."""
    if not 0.0 < share < 1.0 or len(train) < 2:
        raise UserError(
            f"a share of {share:g} can't be cut from {len(train):,} ratings",
            "give a share above 0 and below 1, and at least two ratings",
        )
    size = min(max(1, round(share * len(train))), len(train) - 1)
    chosen = np.zeros(len(train), dtype=np.bool_)
    chosen[_shuffled(len(train), subkey(seed, "validation"))[:size]] = True
    return train.where(~chosen), train.where(chosen)


def _shuffled(count: int, key: int) -> NDArray[np.int64]:
    return np.argsort(keys(key, np.arange(count)))  # no two keys are equal, so any sort gives the same order
