"""Data frames in and out: pandas, polars, pyarrow and whatever else narwhals knows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

from fedrecplus.data.files.contents import read_bytes
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.read import checked_ratings
from fedrecplus.data.files.tables import ITEMS, Table, read_table, table_of_frame
from fedrecplus.data.ratings import Ratings
from fedrecplus.errors import UserError, unknown_name

BACKENDS = ("pandas", "polars", "pyarrow")
_from_dict: Any = nw.from_dict  # its types list the names, which are checked here


def is_frame(source: object) -> bool:
    """Whether it is a data frame that can be read.

    >>> is_frame(pl.DataFrame({"user": [1]})), is_frame([1, 2])
    (True, False)
    """
    found = nw.from_native(source, pass_through=True)
    return isinstance(found, nw.DataFrame | nw.LazyFrame)


def ratings_of_frame(
    frame: Any, options: FileOptions, name: str = "frame", items: Any = None, *, few: bool = False
) -> Ratings:
    """The ratings in a frame, checked as those of a file are; ``items`` is a frame or a file of items."""
    of_items = items_table(items, options)
    # titles, genres and years are looked for in one of the two tables
    table = table_of_frame(as_polars(frame, name), name, options if of_items is None else replace(options, items=name))
    return checked_ratings(table, name, options, of_items, few=few)


def items_table(items: Any, options: FileOptions) -> Table | None:
    """What a frame or a file tells of the items."""
    items = options.items if items is None else items
    if items is None:
        return None
    if isinstance(items, str | Path):
        return read_table(read_bytes(Path(items).expanduser()), str(items), options, ITEMS)
    return table_of_frame(as_polars(items, "items"), "items", options, ITEMS)


def as_polars(frame: Any, name: str) -> pl.DataFrame:
    """A frame of any library as one of polars; what pandas calls NaN is missing."""
    found = nw.from_native(frame, pass_through=True)
    if isinstance(found, nw.LazyFrame):
        found = found.collect()
    if not isinstance(found, nw.DataFrame):
        raise UserError(
            f"{name} is a {type(frame).__name__}, not a data frame", "give a frame of pandas, polars or pyarrow"
        )
    if isinstance(native := found.to_native(), pl.DataFrame):
        return native
    return pl.DataFrame([_series(found[column]) for column in found.columns])


def _series(column: Any) -> pl.Series:
    """A column of pandas or another library; whole arrays where that is possible, since lists are slow."""
    name = str(column.name)
    if column.dtype.is_numeric():
        return pl.Series(name, column.to_numpy(), nan_to_null=True)
    values = column.to_list()
    try:
        return pl.Series(name, [None if isinstance(value, float) and math.isnan(value) else value for value in values])
    except (TypeError, pl.exceptions.PolarsError):  # numbers and texts in one column
        return pl.Series(name, [None if value is None else str(value) for value in values])


def frame_of(columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]], backend: str = "polars") -> Any:
    """Columns as a frame of the library that is asked for.

    >>> frame_of({"item": [1, 2]}).columns
    ['item']
    """
    if backend not in BACKENDS:
        raise unknown_name("data frame library", backend, BACKENDS)
    try:
        return _from_dict(dict(columns), backend=backend).to_native()
    except ModuleNotFoundError:
        raise UserError(f"{backend} isn't installed", f"pip install {backend}, or take backend='polars'") from None


def backend_of(frame: Any) -> str:
    """The library that a frame is of, in which an answer to it should be; polars, if it is of none of those known."""
    found = nw.from_native(frame, pass_through=True)
    if not isinstance(found, nw.DataFrame | nw.LazyFrame):
        return "polars"
    name = found.implementation.value
    return name if name in BACKENDS else "polars"


def to_frame(ratings: Ratings, backend: str = "polars") -> Any:
    """Ratings as a frame, in the ids of their source."""
    columns: dict[str, Any] = {
        "user": ratings.client_ids[ratings.client_of_rating],
        "item": ratings.item_ids[ratings.items],
        "rating": ratings.values,
    }
    if ratings.timestamps is not None:
        columns["timestamp"] = ratings.timestamps
    return frame_of(columns, backend)
