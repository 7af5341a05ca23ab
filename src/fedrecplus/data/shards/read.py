"""Shards as ratings: one of them, all of them, or all of them without the ratings, as a cluster's driver has them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import Catalogue, Ratings, damped_means, narrowest
from fedrecplus.data.scale import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.data.shards.manifest import ITEMS, Shard, ShardFolder
from fedrecplus.errors import UserError

if TYPE_CHECKING:
    import polars as pl

_GENRE = "genre "


def read_shard(folder: ShardFolder, shard: Shard) -> Ratings:
    """The ratings of one shard's clients, who are numbered from 0, with folds; without what describes items."""
    table = _read(folder, shard.ratings_file, shard.ratings_digest)
    who = _read(folder, shard.clients_file, shard.clients_digest)
    indptr = np.concatenate([[0], np.cumsum(who["ratings"].to_numpy())]).astype(np.int64)
    timed = "timestamp" in table.columns
    return Ratings(
        name=folder.name,
        scale=folder.scale,
        indptr=indptr,
        items=np.array(table["item"].to_numpy(), dtype=narrowest(folder.items)),
        codes=np.array(table["level"].to_numpy()),
        client_ids=_ids(who["id"]),
        item_ids=np.arange(folder.items),
        timestamps=np.array(table["timestamp"].to_numpy()) if timed else None,
        order=np.array(table["order"].to_numpy()) if "order" in table.columns else None,
        folds=np.array(table["fold"].to_numpy()),
        listed=folder.listed,
        scale_inferred=folder.scale_inferred,
    )


def read_all(folder: ShardFolder) -> Ratings:
    """All shards as one set of ratings, for whoever has the memory."""
    parts = [read_shard(folder, shard) for shard in folder.shards]
    ids, catalogue, _, _ = _item_facts(folder)
    ends = np.cumsum([0, *(len(part) for part in parts)])
    indptr = [part.indptr[1:] + before for part, before in zip(parts, ends.tolist(), strict=False)]
    timed, ordered = (all(getattr(part, name) is not None for part in parts) for name in ("timestamps", "order"))

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    return replace(
        parts[0],
        indptr=np.concatenate([[0], *indptr]).astype(np.int64),
        items=joined("items"),
        codes=joined("codes"),
        client_ids=joined("client_ids"),
        item_ids=ids,
        catalogue=catalogue,
        timestamps=joined("timestamps") if timed else None,
        order=joined("order") if ordered else None,
        folds=joined("folds"),
    )


@dataclass(frozen=True, repr=False)
class ShardedRatings(Ratings):
    """All that is known of ratings without holding any: how many each client and each item has, and their means.

    ``items`` and ``codes`` are empty. What would need the ratings themselves is refused.
    """

    folder: ShardFolder = field(kw_only=True)
    fold: int | None = field(kw_only=True)
    """these are the ratings outside this fold; None: all of them"""
    counts: NDArray[np.int64] = field(kw_only=True, repr=False)
    """ratings of each item"""
    levels: NDArray[np.int64] = field(kw_only=True, repr=False)
    """sum of their level numbers"""
    test_counts: NDArray[np.int64] = field(kw_only=True, repr=False)
    """each client's ratings in the fold"""

    def __len__(self) -> int:
        return int(self.indptr[-1])

    @property
    def likes_alone(self) -> bool:
        """Whether all ratings are the same, as far as means tell: all at one end of the scale."""
        return len(self) > 0 and int(self.levels.sum()) in (0, len(self) * (self.scale.levels - 1))

    def item_counts(self) -> NDArray[np.int64]:
        """How many ratings each item has."""
        return self.counts.copy()

    def mean(self) -> float:
        """Mean rating in standard units; the scale's middle where there are no ratings."""
        if len(self) == 0:
            return (STANDARD_LOW + STANDARD_HIGH) / 2
        return float(self._standard_sums(self.levels.sum(), len(self)) / len(self))

    def item_means(self, prior_strength: float = 10.0) -> NDArray[np.float64]:
        """Damped mean rating of each item in standard units."""
        return damped_means(self._standard_sums(self.levels, self.counts), self.counts, self.mean(), prior_strength)

    def _standard_sums(self, levels: Any, counts: Any) -> Any:
        """Sums of ratings in standard units, from sums of level numbers."""
        return STANDARD_LOW * counts + self.scale.standard_step * levels

    def held_out(self) -> ShardedRatings | None:
        """The ratings of the fold, to test on; None where none is left out."""
        if self.fold is None:
            return None
        _, _, counts, levels = _item_facts(self.folder)
        indptr = np.concatenate([[0], np.cumsum(self.test_counts)]).astype(np.int64)
        return replace(self, indptr=indptr, counts=counts[self.fold], levels=levels[self.fold])

    @property
    def client_of_rating(self) -> NDArray[np.int32]:
        """Not known here."""
        raise self._refusal()

    @property
    def values(self) -> NDArray[np.float64]:
        """Not known here."""
        raise self._refusal()

    def of(self, client: int) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Not known here."""
        raise self._refusal()

    def where(self, mask: NDArray[np.bool_]) -> Ratings:
        """Not known here."""
        raise self._refusal()

    def _refusal(self) -> UserError:
        return UserError(
            f"this needs all ratings of {self.folder.path} in one place, where they are in shards",
            "choose settings that do without, or engine=fast, which reads all shards into memory",
        )


def open_shards(path: str | Path, fold: int | None = None) -> ShardedRatings:
    """The ratings of a folder that `fedrecplus data shard` wrote, for ``fr.train`` by engine=ray; none is read yet.

    Those of ``fold`` are left out, and tested on.
    """
    return sharded_ratings(ShardFolder.read(path), fold)


def sharded_ratings(folder: ShardFolder, fold: int | None) -> ShardedRatings:
    """The ratings outside a fold, or all, as a cluster's driver has them: a few numbers per client and per item."""
    if fold is not None and not 0 <= fold < folder.folds:
        raise UserError(f"{folder.path} has no fold {fold}", f"its folds are numbered 0 to {folder.folds - 1}")
    sizes, tested, ids = [], [], []
    for shard in folder.shards:
        who = _read(folder, shard.clients_file, shard.clients_digest)
        in_fold = np.zeros(shard.clients, np.int64) if fold is None else who[f"fold {fold}"].to_numpy().astype(np.int64)
        tested.append(in_fold)
        sizes.append(who["ratings"].to_numpy().astype(np.int64) - in_fold)
        ids.append(_ids(who["id"]))
    item_ids, catalogue, counts, levels = _item_facts(folder)
    kept = [place for place in range(len(counts)) if place != fold]
    return ShardedRatings(
        name=folder.name,
        scale=folder.scale,
        indptr=np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64),
        items=np.zeros(0, narrowest(folder.items)),
        codes=np.zeros(0, np.uint8),
        client_ids=np.concatenate(ids),
        item_ids=item_ids,
        catalogue=catalogue,
        listed=folder.listed,
        scale_inferred=folder.scale_inferred,
        folder=folder,
        fold=fold,
        counts=counts[kept].sum(axis=0),
        levels=levels[kept].sum(axis=0),
        test_counts=np.concatenate(tested),
    )


def _item_facts(
    folder: ShardFolder,
) -> tuple[NDArray[Any], Catalogue | None, NDArray[np.int64], NDArray[np.int64]]:
    """Ids, catalogue, and by fold the number of ratings and the sum of level numbers of each item."""
    table = _read(folder, ITEMS, folder.items_digest)
    catalogue = None
    if "title" in table.columns:
        names = [name for name in table.columns if name.startswith(_GENRE)]
        genres = [table[name].to_numpy() for name in names]
        catalogue = Catalogue(
            titles=tuple(table["title"].to_list()),
            years=np.array(table["year"].to_numpy()),
            genres=np.stack(genres, axis=1) if genres else np.zeros((folder.items, 0), bool),
            genre_names=tuple(name.removeprefix(_GENRE) for name in names),
        )
    counts, levels = (
        np.stack([table[f"{what} {fold}"].to_numpy() for fold in range(folder.folds + 1)])
        for what in ("ratings", "levels")
    )
    return _ids(table["id"]), catalogue, counts, levels


def _ids(column: pl.Series) -> NDArray[Any]:
    return np.array(column.to_list(), dtype=str) if str(column.dtype) == "String" else np.array(column.to_numpy())


def _read(folder: ShardFolder, name: str, digest: str) -> pl.DataFrame:
    import polars as pl  # here: a device's node imports this module, and has no shards

    file = folder.checked(name, digest)
    try:
        return pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UserError(f"{file}: {error}", "write the shards again with `fedrecplus data shard`") from None
