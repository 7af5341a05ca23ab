"""Columns of a file: delimited text (CSV, TSV, MovieLens' ``::`` and their like), JSON, Parquet or Excel."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fedrecplus.data.files.columns import (
    OF_ITEMS,
    Positions,
    counted,
    has_header,
    item_columns,
    names_items,
    rating_columns,
    usual_column,
)
from fedrecplus.data.files.contents import PARQUET_MAGIC, as_utf8, is_excel
from fedrecplus.data.files.options import FileOptions
from fedrecplus.errors import UserError

_SEPARATORS = ("::", "\t", ",", ";", "|", " ")
_WHOLE_FLOATS = 2.0**53
_NOWHERE = "\x1e"  # as a separator, it lets polars read whole lines
_SAID = re.compile(rb'^\s*"?sep=(.)"?\s*?(?=\r?\n)')
"""how Excel notes the separator in the first line"""
_MOST_ABOVE = 20
"""lines in which the names of columns are looked for, where the first has none"""
_WHOLE = r"^-?\d+\.0$"
_JSON = re.compile(rb"\s*(\{|\[\s*[\[{])")


@dataclass(frozen=True)
class Table:
    """Columns by what they hold, a row per rating or per item, unchecked."""

    source: str
    """what errors call the file"""
    columns: dict[str, pl.Series]
    """as text, apart from times and genres, which may be of another type; likes, clicks and purchases have no rating"""
    place: Callable[[int], str]
    """where a row, from 0, stands: ``ratings.csv, line 7``"""
    names: dict[str, str]
    """what the file calls the columns"""
    faults: Mapping[int, str] = field(default_factory=dict)
    """rows, from 0, with other columns than the first line"""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def rows(self, kept: NDArray[np.int64]) -> Table:
        """Some of its rows, which keep their places."""
        columns = {role: column[kept] for role, column in self.columns.items()}
        return Table(self.source, columns, lambda row: self.place(int(kept[row])), self.names)

    def named(self, role: str) -> str:
        """A column, for errors: ``(column 'stars')``."""
        return f"(column {self.names[role]})"


@dataclass(frozen=True)
class FileKind:
    """What a file is about: how its header is recognised and its columns are found."""

    has_header: Callable[[Sequence[str], FileOptions], bool]
    find: Callable[[Sequence[str], bool, FileOptions, str], Positions]
    line: str


RATINGS = FileKind(has_header, rating_columns, "rating")
ITEMS = FileKind(names_items, item_columns, "item")


def read_table(data: bytes, source: str, options: FileOptions, kind: FileKind = RATINGS) -> Table:
    """The columns that matter; the first bytes say what sort of file it is.

    Of text, lines with more or fewer columns than the first are noted as faults.
    """
    if data.startswith(PARQUET_MAGIC):
        return _read_parquet(data, source, options, kind)
    if is_excel(data):
        return table_of_frame(_excel_frame(data, source), source, options, kind)
    data = as_utf8(data, source)
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # as old Macs end lines
    said = _SAID.match(data)
    data = data[said.end() :] if said else data  # its line break stays, so that lines keep their numbers
    if not data or data.isspace():
        raise UserError(f"{source} is empty", f"give a file with a {kind.line} per line")
    if _JSON.match(data):
        return table_of_frame(_json_frame(data, source), source, options, kind)
    first_line = data.lstrip(b"\r\n").split(b"\n", 1)[0].decode()
    separator = options.given_separator or (said[1].decode() if said else _sniffed(first_line))
    # csv.reader knows quotes, polars is ten times as fast
    quoted = b'"' in data and len(separator) == 1
    records = _quoted_records(data, separator, source) if quoted else _records(data, separator)
    first = [field.strip() for field in records.head(1).collect()["fields"][0]]
    header = kind.has_header(first, options)
    try:
        columns = kind.find(first, header, options, source)
    except UserError as error:
        raise _line_above(data, source, options, kind) or error from None
    fields = pl.col("fields").list
    wanted = (fields.get(at, null_on_oob=True).alias(role) for role, at in columns.items())
    frame = records.select("line", *wanted, width=fields.len()).collect()
    frame = frame[header:]
    faults = _ragged(records.slice(header), frame["width"], len(first))
    if frame.is_empty():
        raise UserError(f"{source} has a header and no {kind.line}s", f"give a file with a {kind.line} per line")
    lines = frame["line"]
    names = {role: repr(first[at]) if header else str(at + 1) for role, at in columns.items()}
    series = {role: _whole_ids(frame[role]) if role in ("user", "item") else frame[role] for role in columns}
    return Table(source, series, lambda row: f"{source}, line {lines[row]}", names, faults)


def _whole_ids(ids: pl.Series) -> pl.Series:
    """12.0 as 12 where all ids are like that or missing: so pandas writes whole numbers if one is missing."""
    plain = ids.str.strip_chars()
    whole = (plain.str.contains(_WHOLE) | (plain == "")).all()
    return plain.str.strip_suffix(".0") if whole else ids


def _line_above(data: bytes, source: str, options: FileOptions, kind: FileKind) -> UserError | None:
    """Where a later line names the columns, those above it are a title or comments."""
    lines = data.lstrip(b"\r\n").split(b"\n", _MOST_ABOVE)[1:_MOST_ABOVE]
    for number, line in enumerate((line.decode().strip() for line in lines), 2):
        names = [name.strip(' "') for name in line.split(options.given_separator or _sniffed(line))]
        try:
            kind.find(names, True, options, source)
        except UserError:
            continue
        problem = f"{source}: the columns are named in line {number}, {line[:60]!r}"
        return UserError(problem, "remove the lines above it")
    return None


def _ragged(records: pl.LazyFrame, widths: pl.Series, columns: int) -> dict[int, str]:
    """Rows with other columns than the first line, and what is in them."""
    rows = (widths != columns).arg_true()
    if not len(rows):
        return {}
    fields = records.select(pl.col("fields").gather(rows)).collect()["fields"]
    return {
        row: f"{counted(len(width))} where the first line has {columns}: {' '.join(width)[:60]!r}"
        for row, width in zip(rows, fields, strict=True)
    }


def _sniffed(line: str) -> str:
    """The first separator that makes three columns, else the one that makes the most."""
    return next((one for one in _SEPARATORS if line.count(one) >= 2), max(_SEPARATORS, key=line.count))


def _records(data: bytes, separator: str) -> pl.LazyFrame:
    """Each line that isn't blank, with its number, split at the separator."""
    data = data.replace(_NOWHERE.encode(), b" ")
    lines = pl.read_csv(data, has_header=False, separator=_NOWHERE, quote_char=None, schema={"fields": pl.String})
    text = pl.col("fields").str.strip_chars_end("\r")
    if separator == " ":  # columns may be lined up by several
        text = text.str.strip_chars(" ").str.replace_all(" +", " ")
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


def _read_parquet(data: bytes, source: str, options: FileOptions, kind: FileKind) -> Table:
    """Only the columns that matter are read."""
    try:
        names = list(pl.read_parquet_schema(io.BytesIO(data)))
        wanted = kind.find(names, True, options, source)
        frame = pl.read_parquet(io.BytesIO(data), columns=sorted({names[at] for at in wanted.values()}))
    except pl.exceptions.PolarsError as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{source} is a damaged Parquet file: {reason}", "copy or write it again") from None
    return _table(frame, {role: names[at] for role, at in wanted.items()}, source, kind)


def _json_frame(data: bytes, source: str) -> pl.DataFrame:
    """An object per line, as reviews are often given away, or an array of objects."""
    whole = data.lstrip().startswith(b"[")
    try:
        frame = (pl.read_json if whole else pl.read_ndjson)(data, infer_schema_length=None)
    except pl.exceptions.PolarsError:
        line, reason = _no_json(data, whole)
        remedy = 'write an object per line, such as {"user": "ann", "item": 7, "rating": 4}, or an array of objects'
        raise UserError(f"{source}, line {line}: {reason}", remedy) from None
    if len(frame) == 1 and any(kind.is_nested() for kind in frame.dtypes):
        raise UserError(
            f"{source} is a single JSON object that holds lists or objects",
            "write an object per rating: frame.to_json(file, orient='records') with pandas",
        )
    return frame


def _no_json(data: bytes, whole: bool) -> tuple[int, str]:
    """The first line at fault, and what is wrong with it."""
    texts = [(1, data)] if whole else enumerate(data.split(b"\n"), 1)
    for line, text in texts:
        try:
            json.loads(text if text.strip() else b"{}", parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            return line + error.lineno - 1, f"no JSON: {error.msg}"
        except _Constant as constant:
            return line, f"{constant} is no JSON; write null, or leave the object out"
    return 1, "JSON that is no table: fields with the same name hold different things"


class _Constant(Exception):
    """NaN or Infinity, which Python writes and reads and nobody else."""


def _refuse_constant(name: str) -> None:
    raise _Constant(name)


def _excel_frame(data: bytes, source: str) -> pl.DataFrame:
    """The first sheet of a workbook."""
    try:
        import fastexcel  # noqa: F401 -- polars reads workbooks with it
    except ImportError:
        raise UserError(
            f"{source} is an Excel file, for which the extra `excel` is missing",
            "install it from your clone: pip install -e '.[excel]'; or save the sheet as CSV",
        ) from None
    try:
        return pl.read_excel(io.BytesIO(data), engine="calamine", infer_schema_length=None)
    except Exception as error:  # whatever calamine meets, the workbook is what is wrong
        reason = str(error).splitlines()[0]
        raise UserError(f"{source} can't be read as an Excel file: {reason}", "save the sheet as CSV") from None


def table_of_frame(frame: pl.DataFrame, source: str, options: FileOptions, kind: FileKind = RATINGS) -> Table:
    """The columns of a frame."""
    columns = kind.find(frame.columns, True, options, source)
    return _table(frame, {role: frame.columns[at] for role, at in columns.items()}, source, kind)


def pair_columns(frame: pl.DataFrame, options: FileOptions) -> tuple[list[Any], list[Any]]:
    """The ids of users and items in a frame of pairs: by the names given or usual ones, else the first two columns."""
    names = frame.columns
    columns = [usual_column(names, role, options) for role in ("user", "item")]
    if None in columns:
        if len(names) != 2:
            raise UserError(
                f"a frame of pairs has the columns {', '.join(map(repr, names))}",
                "name them user and item, or give two columns",
            )
        columns = [0, 1]
    ids = (_textual(frame[names[at]], "X", "id") for at in columns if at is not None)
    users, items = (as_ids(column).to_list() for column in ids)
    return users, items


def as_ids(ids: pl.Series) -> pl.Series:
    """Ids as whole numbers, where all of them are; otherwise the text that they are."""
    whole = ids.cast(pl.Int64, strict=False)
    # not 007, which isn't 7
    return whole if whole.null_count() == 0 and (whole.cast(pl.String) == ids).all() else ids


def different_ids(ids: pl.Series) -> NDArray[Any]:
    """The different ones of such ids, ascending."""
    different = ids.unique().sort()
    return different.to_numpy() if different.dtype == pl.Int64 else np.array(different.to_list(), dtype=np.str_)


def _table(frame: pl.DataFrame, names: dict[str, str], source: str, kind: FileKind) -> Table:
    """Rows are numbered from 1, as lines are."""
    if frame.is_empty():
        raise UserError(f"{source} has no rows", f"give a {kind.line} per row")
    columns = {
        role: frame[name] if role in ("timestamp", *OF_ITEMS) else _textual(frame[name], source, role)
        for role, name in names.items()
    }
    shown = {role: repr(name) for role, name in names.items()}
    return Table(source, columns, lambda row: f"{source}, row {row + 1}", shown)


def _textual(column: pl.Series, source: str, role: str) -> pl.Series:
    """As text, so that Parquet passes the same checks as CSV; 12.0 as an id is 12 and a float32's 3.7 is 3.7."""
    if column.dtype == pl.Object:  # such as uuid.UUID
        return pl.Series(column.name, [None if value is None else str(value) for value in column])
    if column.dtype.is_nested():
        raise UserError(f"{source}: column {column.name!r} holds {column.dtype}", "give a column of single values")
    if column.dtype.is_float() and role != "rating":
        column = column.fill_nan(None)  # it would be beyond all numbers
    if column.dtype.is_float() and role != "rating" and (column.abs() >= _WHOLE_FLOATS).any():
        raise UserError(
            f"{source}: column {column.name!r} holds decimal numbers beyond 2^53, which tell no neighbours apart",
            "give ids as whole numbers or text",
        )
    if column.dtype.is_float() and (column.drop_nulls().is_finite() & (column.drop_nulls() % 1 == 0)).all():
        return column.cast(pl.Int64, strict=False).cast(pl.String)
    return column.cast(pl.String)
