"""A user's own file of ratings: read it, and refuse what isn't one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fedrecplus.data.files.contents import PARQUET_MAGIC, read_bytes
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.scale_inference import infer_scale
from fedrecplus.data.files.tables import Table, read_parquet, read_text
from fedrecplus.data.ratings import Ratings, narrowest
from fedrecplus.data.scale import LIKES, Scale
from fedrecplus.errors import UserError


def read_file(path: Path, options: FileOptions | None = None) -> Ratings:
    """Read delimited text or Parquet, gzipped or not. Its first bytes and first line say which it is."""
    options = options or FileOptions()
    data = read_bytes(path)
    read = read_parquet if data.startswith(PARQUET_MAGIC) else read_text
    return checked_ratings(read(data, str(path), options), path.name, options)


def checked_ratings(table: Table, name: str, options: FileOptions) -> Ratings:
    """The ratings in a table, or an error that says on which line what is wrong."""
    client_ids, clients = _numbered(table, table.users, "user")
    item_ids, items = _numbered(table, table.items, "item")
    if table.ratings is None:
        scale = options.given_scale or Scale.parse(LIKES)
        values = np.full(len(table.users), scale.high)
    else:
        values = _numbers(table, table.ratings)
        scale = options.given_scale or infer_scale(values, table.source)
        _refuse_off_scale(table, values, scale)
    cell = clients.astype(np.int64) * len(item_ids) + items
    order = np.argsort(cell, kind="stable")  # stable: duplicates stay in the file's order
    cell, values = cell[order], values[order]
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    if len(starts) < len(cell):
        if options.duplicates == "error" and table.ratings is not None:  # who clicks twice says nothing new
            raise _duplicate(table, order, cell)
        ends = np.append(starts[1:], len(cell))
        last = options.duplicates != "mean"
        values = values[ends - 1] if last else np.add.reduceat(values, starts) / (ends - starts)
        cell = cell[starts]
    counts = np.bincount(cell // len(item_ids), minlength=len(client_ids))
    return Ratings(
        name=name,
        scale=scale,
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        items=(cell % len(item_ids)).astype(narrowest(len(item_ids))),
        codes=scale.codes(values),  # rounds the mean of duplicates
        client_ids=client_ids,
        item_ids=item_ids,
    )


def _numbered(table: Table, column: pl.Series, role: str) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The different ids in ascending order, and for each row the number of its id."""
    ids = column.str.strip_chars()
    missing = (ids.is_null() | (ids == "")).arg_true()
    if len(missing):
        remedy = f"write the {role}'s id, or remove the line"
        raise UserError(f"{table.place(missing[0])}: the {role} is missing", remedy)
    whole = ids.cast(pl.Int64, strict=False)
    if whole.null_count() == 0 and (whole.cast(pl.String) == ids).all():  # not 007, which isn't 7
        ids = whole
    different = ids.unique().sort()
    if len(different) == 1:
        raise UserError(
            f"{table.source} has a single {role}, {different[0]!r}",
            f"check the {role} column; recommending needs at least two users and two items",
        )
    numbers = (ids.rank("dense") - 1).to_numpy().astype(np.int32)
    as_array = different.to_numpy() if different.dtype == pl.Int64 else np.array(different.to_list(), dtype=np.str_)
    return as_array, numbers


def _numbers(table: Table, ratings: pl.Series) -> NDArray[np.float64]:
    """The ratings as finite numbers."""
    text = ratings.str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    wrong = (numbers.is_null() | ~numbers.is_finite()).fill_null(True).arg_true()
    if not len(wrong):
        return numbers.to_numpy()
    row = wrong[0]
    if text[row] in (None, ""):
        raise UserError(f"{table.place(row)}: the rating is missing", "write a number, or remove the line")
    kind = "is not a number" if numbers[row] is None or np.isnan(numbers[row]) else "is infinite"
    raise UserError(f"{table.place(row)}: rating {text[row]!r} {kind}", "write a finite number, such as 3.5")


def _refuse_off_scale(table: Table, values: NDArray[np.float64], scale: Scale) -> None:
    off = np.flatnonzero(~scale.holds(values))
    if len(off):
        raise UserError(
            f"{table.place(int(off[0]))}: rating {values[off[0]]:g} is not on the scale {scale}",
            "correct it, or give the scale that it is on: --scale LOW:HIGH:STEP, or FileOptions(scale=…)",
        )


def _duplicate(table: Table, order: NDArray[np.int64], cell: NDArray[np.int64]) -> UserError:
    """The error for the duplicate that comes first in the file."""
    again = np.flatnonzero(cell[1:] == cell[:-1]) + 1
    second = again[np.argmin(order[again])]
    row, before = int(order[second]), int(order[second - 1])
    pair = f"user {table.users[row].strip()!r} rated item {table.items[row].strip()!r}"
    earlier = table.place(before).removeprefix(table.source).lstrip(", ")
    return UserError(
        f"{table.place(row)}: {pair} before, on {earlier}",
        "remove one, or choose: --duplicates last or --duplicates mean, FileOptions(duplicates=…)",
    )
