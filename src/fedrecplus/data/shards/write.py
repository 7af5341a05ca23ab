"""Ratings into shards: from memory, or made up shard by shard, so that they are never all there."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.ratings import NEVER_TESTED, Progress, Ratings
from fedrecplus.data.shards.manifest import ITEMS, MANIFEST, Shard, ShardFolder, digest_of
from fedrecplus.data.splits import Split, each_by_itself
from fedrecplus.data.synthetic.truth import SyntheticOptions
from fedrecplus.errors import UserError
from fedrecplus.files import beside, check_writable

FOLDS = 5
Part = Callable[[int, int], Ratings]
"""first client, the one after the last → their ratings, with folds"""


def shard_ratings(
    ratings: Ratings,
    out: Path,
    shards: int,
    *,
    split: str | Split = "random",
    folds: int = FOLDS,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ShardFolder:
    """Write ratings that are in memory. A rating's fold is the one that ``split`` of the same seed puts it into."""
    scheme = Split.parse(split)
    dealt = replace(ratings, folds=scheme.numbers(ratings, folds, seed))

    def part(first: int, last: int) -> Ratings:
        return of_clients(dealt, first, last)

    about = (str(scheme), scheme.folds(ratings, folds), seed)
    return _write(part, replace(ratings, folds=None), ratings.clients, out, shards, about, overwrite, progress)


def shard_synthetic(
    options: SyntheticOptions,
    out: Path,
    shards: int,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ShardFolder:
    """Make ratings up and write them, a shard at a time. Each rating's fold is drawn by itself."""
    from fedrecplus.data.synthetic.generate import generate_some  # here: it brings numba, which takes its time
    from fedrecplus.data.synthetic.truth import LatentTruth

    truth, before = LatentTruth.of(options), 0

    def part(first: int, last: int) -> Ratings:
        nonlocal before
        made = generate_some(truth, first, last)
        before += len(made)
        return replace(made, folds=each_by_itself(before - len(made), len(made), folds, seed))

    about = ("random, each rating by itself", folds, seed)
    whole = replace(generate_some(truth, 0, 0), catalogue=truth.catalogue())
    return _write(part, whole, options.clients, out, shards, about, overwrite, progress)


def of_clients(ratings: Ratings, first: int, last: int) -> Ratings:
    """The ratings of some clients, who are numbered from 0 then."""
    rows = slice(ratings.indptr[first], ratings.indptr[last])
    return replace(
        ratings,
        indptr=ratings.indptr[first : last + 1] - ratings.indptr[first],
        items=ratings.items[rows],
        client_ids=ratings.client_ids[first:last],
        **ratings.said(rows),
    )


def _write(
    part: Part,
    whole: Ratings,
    clients: int,
    out: Path,
    shards: int,
    about: tuple[str, int, int],
    overwrite: bool,
    progress: Progress | None,
) -> ShardFolder:
    """All files, the manifest last; ``whole`` is looked at for what all shards share."""
    out = out.expanduser()
    if not 1 <= shards <= clients:
        raise UserError(f"{clients:,} clients can't be put into {shards:,} shards", f"give 1 to {clients:,} --shards")
    check_writable(out)
    if (out / MANIFEST).exists():
        if not overwrite:
            raise UserError(f"{out} holds shards already", "give --overwrite to replace them, or another --out")
        (out / MANIFEST).unlink()  # from now on the folder is not whole
    cuts = np.linspace(0, clients, shards + 1).astype(np.int64).tolist()
    counts = np.zeros((about[1] + 1, whole.item_count), np.int64)  # the last row: ratings in no fold
    levels = np.zeros_like(counts)
    written = []
    for number, (first, last) in enumerate(itertools.pairwise(cuts)):
        ratings_part = part(first, last)
        _add_statistics(ratings_part, about[1], counts, levels)
        written.append(_write_shard(ratings_part, out, number, first, about[1]))
        if progress:
            progress("shards", number + 1, shards)
    digest = _write_table(out / ITEMS, _item_table(whole, counts, levels))
    total = sum(one.ratings for one in written)
    sizes = (clients, whole.item_count, total)
    folder = ShardFolder(
        out, whole.name, whole.scale, *sizes, *about, digest, tuple(written), whole.listed, whole.scale_inferred
    )
    folder.write()
    return folder


def _fold_places(ratings: Ratings, folds: int) -> NDArray[np.int64]:
    assert ratings.folds is not None
    return np.where(ratings.folds == NEVER_TESTED, folds, ratings.folds).astype(np.int64)


def _add_statistics(ratings: Ratings, folds: int, counts: NDArray[np.int64], levels: NDArray[np.int64]) -> None:
    """Ratings of each item and the sum of their level numbers, by fold: whole numbers, which add up in any order."""
    places, items = _fold_places(ratings, folds), ratings.items.astype(np.int64)
    for fold in range(folds + 1):
        own = places == fold
        counts[fold] += np.bincount(items[own], minlength=counts.shape[1])
        weights = ratings.codes[own].astype(np.float64)
        levels[fold] += np.bincount(items[own], weights=weights, minlength=counts.shape[1]).astype(np.int64)


def _write_shard(ratings: Ratings, out: Path, number: int, first: int, folds: int) -> Shard:
    columns: dict[str, Any] = {"item": ratings.items, "level": ratings.codes, "fold": ratings.folds}
    if ratings.timestamps is not None:
        columns["timestamp"] = ratings.timestamps
    if ratings.order is not None:
        columns["order"] = ratings.order
    places = _fold_places(ratings, folds)
    who = {"id": ratings.client_ids, "ratings": np.diff(ratings.indptr).astype(np.uint32)}
    for fold in range(folds):
        before = np.concatenate([[0], np.cumsum(places == fold)])
        who[f"fold {fold}"] = np.diff(before[ratings.indptr]).astype(np.uint32)
    names = [f"{kind}-{number:05}.parquet" for kind in ("ratings", "clients")]
    digests = [_write_table(out / name, table) for name, table in zip(names, (columns, who), strict=True)]
    return Shard(number, first, ratings.clients, len(ratings), names[0], digests[0], names[1], digests[1])


def _item_table(whole: Ratings, counts: NDArray[np.int64], levels: NDArray[np.int64]) -> dict[str, Any]:
    columns: dict[str, Any] = {"id": whole.item_ids}
    if whole.catalogue is not None:
        columns |= {"title": list(whole.catalogue.titles), "year": whole.catalogue.years}
        genres = zip(whole.catalogue.genre_names, whole.catalogue.genres.T, strict=True)
        columns |= {f"genre {name}": np.ascontiguousarray(there) for name, there in genres}
    for fold in range(len(counts)):
        columns |= {f"ratings {fold}": counts[fold], f"levels {fold}": levels[fold]}
    return columns


def _write_table(file: Path, columns: dict[str, Any]) -> str:
    """A Parquet file, whole or not at all; returns its digest."""
    import polars as pl  # here: a device's node imports this module, and writes no shards

    with beside(file) as temporary:
        pl.DataFrame(columns).write_parquet(temporary, compression="lz4", statistics=False)
        return digest_of(temporary)
