"""How ratings are cut into training and test. Clients and items keep their numbers, so cold ones stay."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.load import RatingsLike, load
from fedrecplus.data.ratings import NEVER_TESTED, Ratings
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.randomness import keys, subkey

_MOST_FOLDS = NEVER_TESTED
Numbers = NDArray[np.uint8]
KINDS = {
    "random": "every rating falls into a fold by chance, as in the paper",
    "user": "each user's ratings are dealt out over the folds",
    "cold-users": "users are dealt out: those of the fold have no training rating",
    "cold-items": "items are dealt out: those of the fold have no training rating",
    "time": "the latest share of all ratings is the test; time:0.1 takes a tenth (default: 0.2)",
    "last": "each user's latest ratings are the test; last:2 takes two (default: 1)",
    "column": "the folds that the data itself names",
}
"""what ``--split`` and ``how`` may be"""
_SIZES = {"time": 0.2, "last": 1.0}


@dataclass(frozen=True)
class Split:
    """A way to cut ratings into folds.

    >>> Split.parse("last:2")
    Split(kind='last', size=2.0)
    """

    kind: str = "random"
    size: float = 0.0
    """of ``time`` the share, of ``last`` the number of ratings"""

    @staticmethod
    def parse(text: str | Split) -> Split:
        """Read a way as it is written on the command line."""
        if isinstance(text, Split):
            return text
        kind, colon, size = text.partition(":")
        if kind not in KINDS:
            raise unknown_name("split", kind, KINDS)
        if not colon:
            return Split(kind, _SIZES.get(kind, 0.0))
        try:
            number = float(size)
        except ValueError:
            number = -1.0
        good = 0.0 < number < 1.0 if kind == "time" else kind == "last" and number >= 1 and number == int(number)
        if not good:
            raise UserError(
                f"there is no split {text!r}", "write time:SHARE, such as time:0.2, or last:N, such as last:1"
            )
        return Split(kind, number)

    def __str__(self) -> str:
        return f"{self.kind}:{self.size:g}" if self.kind in _SIZES else self.kind

    def folds(self, ratings: Ratings, wanted: int) -> int:
        """How many folds there are, where so many are wanted: splits by time have one, a column has its own."""
        if self.kind in _SIZES:
            return 1
        if self.kind == "column":
            return int(np.unique(_given(ratings)[_given(ratings) != NEVER_TESTED]).size)
        return wanted

    def numbers(self, ratings: Ratings, count: int, seed: int) -> Numbers:
        """The fold number of every rating; ``NEVER_TESTED`` for one that is in no fold."""
        if self.kind == "column":
            return _given(ratings)
        if self.kind == "time":
            return _latest(ratings, self.size)
        if self.kind == "last":
            return _last_of_each(ratings, int(self.size))
        if self.kind == "cold-users":
            _check(count, int((np.diff(ratings.indptr) > 0).sum()), "users with ratings")
            return _dealt(ratings.clients, count, subkey(seed, "cold-users"))[ratings.client_of_rating]
        if self.kind == "cold-items":
            _check(count, int((ratings.item_counts() > 0).sum()), "rated items")
            return _dealt(ratings.item_count, count, subkey(seed, "cold-items"))[ratings.items.astype(np.int64)]
        _check(count, len(ratings), "ratings")
        if self.kind == "user":
            return _dealt_by_user(ratings, count, seed)
        return _dealt(len(ratings), count, subkey(seed, "folds"))


def folds(
    ratings: RatingsLike, folds: int = 5, seed: int = 0, how: str | Split = "random"
) -> list[tuple[Ratings, Ratings]]:
    """The pairs of training and test ratings, one of each fold: ``for training, test in fr.folds(ratings)``.

    Random folds are as large as each other, or by one larger. Paper: five random folds, each a fifth of the ratings.
    """
    ratings, scheme = load(ratings), Split.parse(how)
    numbers = scheme.numbers(ratings, folds, seed)
    return [
        (ratings.where(numbers != fold), ratings.where(numbers == fold)) for fold in range(scheme.folds(ratings, folds))
    ]


def split(
    ratings: RatingsLike, fold: int = 0, folds: int = 5, seed: int = 0, how: str | Split = "random"
) -> tuple[Ratings, Ratings]:
    """The ratings outside a fold, to train on, and those in it, to test on.

    ``how`` is ``random``, ``user``, ``cold-users``, ``cold-items``, ``time:SHARE``, ``last:N`` or ``column``.
    """
    ratings, scheme = load(ratings), Split.parse(how)
    numbers = scheme.numbers(ratings, folds, seed)
    fold_count = scheme.folds(ratings, folds)
    if not 0 <= fold < fold_count:
        which = (
            f"the {fold_count} folds are numbered 0 to {fold_count - 1}" if fold_count > 1 else "there is one fold, 0"
        )
        raise UserError(f"there is no fold {fold}", which)
    return ratings.where(numbers != fold), ratings.where(numbers == fold)


def validation_cut(
    train: RatingsLike, share: float = 0.1, seed: int = 0, how: str | Split = "random"
) -> tuple[Ratings, Ratings]:
    """A training part in two: what is left to fit on, and a random share (at least a rating) to choose settings by.

    Where the split leaves out the latest, the last of each person or the cold, the cut does so, too: settings are
    chosen by what they will be asked for.
    """
    train, scheme = load(train), Split.parse(how)
    if scheme.kind in _SIZES:
        return split(train, 0, 1, seed, scheme)
    if scheme.kind in ("cold-users", "cold-items"):
        return split(
            train, 0, max(2, round(1 / share)), subkey(seed, "validation"), scheme
        )  # or these are cold already
    if not 0.0 < share < 1.0 or len(train) < 2:
        raise UserError(
            f"a share of {share:g} can't be cut from {len(train):,} ratings",
            "give a share above 0 and below 1, and at least two ratings",
        )
    size = min(max(1, round(share * len(train))), len(train) - 1)
    chosen = np.zeros(len(train), dtype=np.bool_)
    chosen[_shuffled(len(train), subkey(seed, "validation"))[:size]] = True
    return train.where(~chosen), train.where(chosen)


def each_by_itself(first: int, length: int, count: int, seed: int = 0) -> Numbers:
    """A fold for each of so many ratings from the ``first`` on, drawn by its number alone: for ratings in a stream.

    Folds are then about as large as each other, not exactly.
    """
    drawn = keys(subkey(seed, "folds, each by itself"), np.arange(first, first + length)) % np.uint64(count)
    return drawn.astype(np.uint8)


def _check(count: int, things: int, what: str) -> None:
    most = min(_MOST_FOLDS, things)
    if not 2 <= count <= most:
        fewer = f"take 2 to {most} folds; or " if most > 2 else ""
        raise UserError(f"{things:,} {what} can't be cut into {count} folds", f"{fewer}train without a test: --full")


def _shuffled(count: int, key: int) -> NDArray[np.int64]:
    return np.argsort(keys(key, np.arange(count)))  # no two keys are equal, so any sort gives the same order


def _dealt(things: int, count: int, key: int) -> Numbers:
    """A fold for each thing, in equal parts."""
    number = np.empty(things, dtype=np.uint8)
    number[_shuffled(things, key)] = np.arange(things) % count
    return number


def _dealt_by_user(ratings: Ratings, count: int, seed: int) -> Numbers:
    """Each user's ratings in random order, dealt out from a fold of the user's own."""
    who, key = ratings.client_of_rating, subkey(seed, "user-folds")
    order = np.lexsort((keys(key, np.arange(len(ratings))), who))
    place = np.arange(len(ratings)) - ratings.indptr[who]
    first = keys(subkey(key, "first"), np.arange(ratings.clients)) % np.uint64(count)
    number = np.empty(len(ratings), dtype=np.uint8)
    number[order] = (place + first[who].astype(np.int64)) % count
    return number


def _latest(ratings: Ratings, share: float) -> Numbers:
    """The test is later than all training ratings: those of the moment of the cut stay in training."""
    times = _times(ratings)
    cut = np.sort(times)[max(len(times) - 1 - round(share * len(times)), 0)]
    if not (times > cut).any():
        raise UserError(
            f"more than {1 - share:.0%} of the ratings are of the latest moment, {cut}", "take a random split"
        )
    return np.where(times > cut, 0, NEVER_TESTED).astype(np.uint8)


def _last_of_each(ratings: Ratings, n: int) -> Numbers:
    """Each user's n latest ratings, but always one less than there are: nobody gets cold by it.

    Of two at the same time the one further down in the source is the later.
    """
    who, sizes = ratings.client_of_rating, np.diff(ratings.indptr)
    _times(ratings)  # or there are none
    number = np.where(ratings.ages() < np.minimum(n, sizes[who] - 1), 0, NEVER_TESTED).astype(np.uint8)
    if (number == NEVER_TESTED).all():
        raise UserError("nobody has more than one rating to leave the last one out", "take another split")
    return number


def _times(ratings: Ratings) -> NDArray[np.int64]:
    if ratings.timestamps is None:
        raise UserError(
            f"{ratings.name} has no times to split by",
            "give the column of times: --timestamp-column; or take another split",
        )
    return ratings.timestamps.astype(np.int64)


def _given(ratings: Ratings) -> Numbers:
    if ratings.folds is None:
        raise UserError(f"{ratings.name} names no folds", "give the column of folds: --fold-column")
    return ratings.folds
