"""Three columns as they were read, and Parquet files, which hold them ready."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from fedrecplus.data.files.columns import find_columns
from fedrecplus.data.files.options import FileOptions
from fedrecplus.errors import UserError


@dataclass(frozen=True)
class Table:
    """Users, items and ratings, a row per rating, unchecked."""

    source: str
    """what errors call the file"""
    users: pl.Series
    items: pl.Series
    ratings: pl.Series
    place: Callable[[int], str]
    """where a row, from 0, stands: ``ratings.csv, line 7``"""


def read_parquet(data: bytes, source: str, options: FileOptions) -> Table:
    """The three columns of a Parquet file. Rows are numbered from 1, as lines are."""
    try:
        names = list(pl.read_parquet_schema(io.BytesIO(data)))
        wanted = [names[at] for at in find_columns(names, True, options, source)]
        frame = pl.read_parquet(io.BytesIO(data), columns=wanted)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{source} is a damaged Parquet file: {reason}", "copy or write it again") from None
    if frame.is_empty():
        raise UserError(f"{source} has no rows", "give a file with a rating per row")
    users, items, ratings = (_textual(frame[name], source) for name in wanted)
    return Table(source, users, items, ratings, lambda row: f"{source}, row {row + 1}")


def _textual(column: pl.Series, source: str) -> pl.Series:
    """As text, so that Parquet passes the same checks as CSV; 12.0 as an id is 12 and a float32's 3.7 is 3.7."""
    if column.dtype.is_nested():
        raise UserError(f"{source}: column {column.name!r} holds {column.dtype}", "give a column of single values")
    if column.dtype.is_float() and (column.drop_nulls().is_finite() & (column.drop_nulls() % 1 == 0)).all():
        return column.cast(pl.Int64, strict=False).cast(pl.String)
    return column.cast(pl.String)
