"""A user's own file or frame of ratings: read it, and refuse what isn't one."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.files.contents import read_bytes
from fedrecplus.data.files.further import catalogue_of, folds_of, timestamps_of
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.problems import (
    AGAIN,
    BadRow,
    numbers_of,
    question_ids,
    question_meaning,
    question_sentinels,
    ragged,
    refusal,
    without_problems,
)
from fedrecplus.data.files.scale_inference import infer_scale
from fedrecplus.data.files.tables import ITEMS, Table, as_ids, different_ids, read_table, table_of_frame
from fedrecplus.data.frames import as_polars, with_index
from fedrecplus.data.ratings import Ratings, narrowest
from fedrecplus.data.scale import LIKES, Scale
from fedrecplus.errors import DataWarning, UserError


def read_file(path: Path, options: FileOptions | None = None, *, few: bool = False) -> Ratings:
    """Read delimited text, Parquet or Excel, gzipped or not. Its first bytes and first line say which it is.

    ``few`` lets a single user or item pass, of whom a test set may consist.
    """
    options = options or FileOptions()
    table = read_table(read_bytes(path), str(path), options)
    return checked_ratings(table, path.name, options, _items_table(None, options), few=few)


def ratings_of_frame(
    frame: Any, options: FileOptions, name: str = "frame", items: Any = None, *, few: bool = False
) -> Ratings:
    """The ratings in a frame, checked as those of a file are; ``items`` is a frame or a file of items."""
    of_items = _items_table(items, options)
    # titles, genres and years are looked for in one of the two tables
    of_ratings = options if of_items is None else replace(options, items=name)
    table = table_of_frame(as_polars(with_index(frame), name), name, of_ratings)
    return checked_ratings(table, name, options, of_items, few=few)


def _items_table(items: Any, options: FileOptions) -> Table | None:
    """What a frame or a file tells of the items."""
    items = options.items if items is None else items
    if items is None:
        return None
    if isinstance(items, str | Path):
        table = read_table(read_bytes(Path(items).expanduser()), str(items), options, ITEMS)
        if table.faults:
            raise refusal(table, ragged(table))
        return table
    return table_of_frame(as_polars(items, "items"), "items", options, ITEMS)


def checked_ratings(
    table: Table, name: str, options: FileOptions, items_table: Table | None = None, *, few: bool = False
) -> Ratings:
    """The ratings in a table, or an error that says on which line what is wrong."""
    table = without_problems(table, options)
    question_ids(table)
    client_ids, clients = _numbered(table, "user", few)
    item_ids, items = _numbered(table, "item", few)
    rated = "rating" in table.columns
    if rated:
        values, likes = numbers_of(table)
        scale = options.given_scale or (Scale.parse(LIKES) if likes else _scale_of(table, values))
    else:
        scale = options.given_scale or Scale.parse(LIKES)
        values = np.full(len(clients), scale.high)
    timestamps = timestamps_of(table, given=options.timestamp is not None)
    folds = folds_of(table)
    catalogue = catalogue_of(table if items_table is None else items_table, item_ids, options)
    cell = clients.astype(np.int64) * len(item_ids) + items
    order = np.argsort(cell, kind="stable")  # stable: duplicates stay in the file's order
    cell, given, values = cell[order], values, values[order]
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    if len(starts) < len(cell):
        if options.duplicates == "error" and rated:  # who clicks twice says nothing new
            raise _duplicates(table, order, cell)
        if timestamps is not None:  # the last is the latest; of the same time, the one furthest down
            order = order[np.lexsort((timestamps[order], cell))]
            values = given[order]
        ends = np.append(starts[1:], len(cell))
        last = options.duplicates != "mean"
        values = values[ends - 1] if last else np.add.reduceat(values, starts) / (ends - starts)
        cell, order = cell[starts], order[ends - 1]
    counts = np.bincount(cell // len(item_ids), minlength=len(client_ids))
    ratings = Ratings(
        name=name,
        scale=scale,
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        items=(cell % len(item_ids)).astype(narrowest(len(item_ids))),
        codes=scale.codes(values),  # rounds the mean of duplicates
        client_ids=client_ids,
        item_ids=item_ids,
        catalogue=catalogue,
        timestamps=None if timestamps is None else timestamps[order],
        folds=None if folds is None else folds[order],
        order=None if timestamps is None else order.astype(np.int64),
        scale_inferred=rated and options.given_scale is None,
        rated=rated,
    )
    return _over_list(ratings, items_table, options) if options.listed else ratings


def _scale_of(table: Table, values: NDArray[np.float64]) -> Scale:
    """The scale that ratings show, which may mean something else than they seem to."""
    question_sentinels(table, values)
    scale = infer_scale(values, table.source)
    question_meaning(table, values, scale)
    return scale


def _numbered(table: Table, role: str, few: bool) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The different ids in ascending order, and for each row the number of its id."""
    ids = as_ids(table.columns[role].str.strip_chars())
    different = different_ids(ids)
    if len(different) == 1 and not few:
        raise UserError(
            f"{table.source} has a single {role}, {different.tolist()[0]!r} {table.named(role)}",
            f"check the {role} column; recommending needs at least two users and two items",
        )
    numbers = (ids.rank("dense") - 1).to_numpy().astype(np.int32)
    return different, numbers


def _duplicates(table: Table, order: NDArray[np.int64], cell: NDArray[np.int64]) -> UserError:
    """The error for rows whose user rated the item before, in the file's order."""
    again = np.flatnonzero(cell[1:] == cell[:-1]) + 1
    remedy = "remove one, or choose: --duplicates=last or --duplicates=mean"
    pairs = sorted((int(order[place]), int(order[place - 1])) for place in again)
    return refusal(table, [BadRow(row, AGAIN, _rated_before(table, row, before), remedy) for row, before in pairs])


def _rated_before(table: Table, row: int, before: int) -> str:
    user, item = (table.columns[role][row].strip() for role in ("user", "item"))
    earlier = table.place(before).removeprefix(table.source).lstrip(", ")
    return f"user {user!r} rated item {item!r} before, on {earlier}"


def _over_list(ratings: Ratings, table: Table | None, options: FileOptions) -> Ratings:
    """The ratings with exactly the items that a table lists; ratings of other items are left out, with a warning."""
    if table is None:
        raise UserError("a public list of items needs the list", "give it: --catalogue FILE")
    item_ids = different_ids(as_ids(table.columns["item"].str.strip_chars()))
    known, ids = ratings.item_ids, item_ids
    if (known.dtype.kind in "iu") != (ids.dtype.kind in "iu"):
        known, ids = known.astype(str), ids.astype(str)
    places = {name: place for place, name in enumerate(ids.tolist())}
    place_of = np.array([places.get(name, -1) for name in known.tolist()], dtype=np.int64)
    kept = place_of[ratings.items] >= 0
    _say_what_is_left_out(table, ratings, kept)
    ratings, catalogue = ratings.where(kept), catalogue_of(table, item_ids, options)
    listed = {"item_ids": item_ids, "catalogue": catalogue, "listed": True}
    return ratings.renumbered(ratings.client_of_rating, place_of[ratings.items], **listed)


def _say_what_is_left_out(table: Table, ratings: Ratings, kept: NDArray[np.bool_]) -> None:
    if not kept.any():
        raise UserError(f"{table.source} lists none of the rated items", "give a list whose item ids mean the same")
    if not kept.all():
        share = f"{np.count_nonzero(~kept):,} of {len(ratings):,} ratings"
        text = f"{table.source}: {share} are of items that it doesn't list, and are left out"
        warnings.warn(text, DataWarning, stacklevel=2)
