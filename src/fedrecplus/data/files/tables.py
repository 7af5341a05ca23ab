"""The columns of a file that matter: delimited text (CSV, TSV, MovieLens' ``::`` and their like) or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from fedrecplus.data.files.columns import counted, find_columns, has_header
from fedrecplus.data.files.contents import as_utf8
from fedrecplus.data.files.options import FileOptions
from fedrecplus.errors import UserError

_SEPARATORS = ("::", "\t", ",", ";", "|", " ")
_NOWHERE = "\x1e"  # as a separator, it lets polars read whole lines


@dataclass(frozen=True)
class Table:
    """Users, items and, where there are any, ratings, a row per rating, unchecked."""

    source: str
    """what errors call the file"""
    users: pl.Series
    items: pl.Series
    ratings: pl.Series | None
    """None in a file of likes, clicks or purchases"""
    place: Callable[[int], str]
    """where a row, from 0, stands: ``ratings.csv, line 7``"""


def read_text(data: bytes, source: str, options: FileOptions) -> Table:
    """The columns of a text file; refuses lines with more or fewer columns than the first."""
    data = as_utf8(data, source)
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # as old Macs end lines
    if not data or data.isspace():
        raise UserError(f"{source} is empty", "give a file with a rating per line")
    first_line = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode()
    separator = options.given_separator or _sniffed(first_line)
    # csv.reader knows quotes, polars is ten times as fast
    quoted = b'"' in data and len(separator) == 1
    records = _quoted_records(data, separator, source) if quoted else _records(data, separator)
    first = [field.strip() for field in records.head(1).collect()["fields"][0]]
    header = has_header(first, options)
    columns = find_columns(first, header, options, source)
    fields = pl.col("fields").list
    there = {role: at for role, at in columns._asdict().items() if at is not None}
    wanted = (fields.get(at, null_on_oob=True).alias(role) for role, at in there.items())
    frame = records.select("line", *wanted, width=fields.len()).collect()
    ragged = (frame["width"] != len(first)).arg_true()
    if len(ragged):
        found = records.slice(ragged[0], 1).collect()["fields"][0]
        raise UserError(
            f"{source}, line {frame['line'][ragged[0]]}: {counted(len(found))} where the first line has {len(first)}: "
            f"{' '.join(found)[:60]!r}",
            "give every line the same columns; close quotes, and put them around values that hold the separator",
        )
    frame = frame[header:]
    if frame.is_empty():
        raise UserError(f"{source} has a header and no ratings", "give a file with a rating per line")
    users, items, lines = (frame[name] for name in ("user", "item", "line"))
    ratings = frame["rating"] if "rating" in frame.columns else None
    return Table(source, users, items, ratings, lambda row: f"{source}, line {lines[row]}")


def _sniffed(line: str) -> str:
    """The first separator that makes three columns, else the one that makes the most."""
    return next((one for one in _SEPARATORS if line.count(one) >= 2), max(_SEPARATORS, key=line.count))


def _records(data: bytes, separator: str) -> pl.LazyFrame:
    """Each line that isn't blank, with its number, split at the separator."""
    data = data.replace(_NOWHERE.encode(), b" ")
    lines = pl.read_csv(data, has_header=False, separator=_NOWHERE, quote_char=None, schema={"fields": pl.String})
    text = pl.col("fields").str.strip_chars_end("\r")
    return lines.lazy().with_row_index("line", 1).filter(text != "").with_columns(text.str.split(separator))


def _quoted_records(data: bytes, separator: str, source: str) -> pl.LazyFrame:
    """The same where quotes may hold separators and line breaks; a record's number is that of its first line."""
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator)
    numbers, records, line = [], [], 1
    try:
        for fields in reader:
            if fields:
                numbers.append(line)
                records.append(fields)
            line = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"{source}, line {line}: {error}", "close the quote that is opened there") from None
    return pl.LazyFrame({"line": numbers, "fields": records})


def read_parquet(data: bytes, source: str, options: FileOptions) -> Table:
    """The columns of a Parquet file. Rows are numbered from 1, as lines are."""
    try:
        names = list(pl.read_parquet_schema(io.BytesIO(data)))
        wanted = [names[at] for at in find_columns(names, True, options, source) if at is not None]
        frame = pl.read_parquet(io.BytesIO(data), columns=wanted)
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{source} is a damaged Parquet file: {reason}", "copy or write it again") from None
    if frame.is_empty():
        raise UserError(f"{source} has no rows", "give a file with a rating per row")
    users, items, *rated = (_textual(frame[name], source) for name in wanted)
    ratings = rated[0] if rated else None
    return Table(source, users, items, ratings, lambda row: f"{source}, row {row + 1}")


def _textual(column: pl.Series, source: str) -> pl.Series:
    """As text, so that Parquet passes the same checks as CSV; 12.0 as an id is 12 and a float32's 3.7 is 3.7."""
    if column.dtype.is_nested():
        raise UserError(f"{source}: column {column.name!r} holds {column.dtype}", "give a column of single values")
    if column.dtype.is_float() and (column.drop_nulls().is_finite() & (column.drop_nulls() % 1 == 0)).all():
        return column.cast(pl.Int64, strict=False).cast(pl.String)
    return column.cast(pl.String)
