"""Delimited text: CSV, TSV, MovieLens' ``::`` and their like.

polars reads the columns; only where something is wrong is the file read again, record by record, to say on which line.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from fedrecplus.data.files.columns import counted, find_columns, has_header
from fedrecplus.data.files.contents import as_utf8
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.table import Table
from fedrecplus.errors import UserError

_SEPARATORS = ("::", "\t", ",", ";", "|", " ")
_UNIT = "\x1f"  # stands in for separators of several characters, which polars doesn't take
_FIRST_LINE_WITHIN = 1 << 16


@dataclass(frozen=True)
class _Text:
    """Text as UTF-8 whose separator is a single character."""

    source: str
    data: bytes
    separator: str

    @property
    def quote(self) -> str | None:
        return None if self.separator == _UNIT else '"'

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Each record that isn't blank, with the number of its first line."""
        lines = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8", newline="")
        reader = csv.reader(
            lines, delimiter=self.separator, quoting=csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE
        )
        line = 1
        try:
            for fields in reader:
                if fields:
                    yield line, fields
                line = reader.line_num + 1
        except csv.Error as error:
            raise UserError(f"{self.source}, line {line}: {error}", "close the quote that is opened there") from None


def read_text(data: bytes, source: str, options: FileOptions) -> Table:
    """The three columns of a text file."""
    text = _prepared(as_utf8(data, source), source, options)
    first = [field.strip() for field in next(text.records())[1]]
    header = has_header(first, options)
    columns = find_columns(first, header, options, source)
    frame = _frame(text, len(first), int(header), set(columns))
    if frame.is_empty():
        raise UserError(f"{source} has a header and no ratings", "give a file with a rating per line")
    users, items, ratings = (frame[f"{at}"] for at in columns)

    def place(row: int) -> str:
        line, _ = next(itertools.islice(text.records(), row + header, None))
        return f"{source}, line {line}"

    return Table(source, users, items, ratings, place)


def _prepared(data: bytes, source: str, options: FileOptions) -> _Text:
    if b"\n" not in data:
        data = data.replace(b"\r", b"\n")  # as old Macs end lines
    if data.isspace():
        raise UserError(f"{source} is empty", "give a file with a rating per line")
    start = _without_blank_lines(data[:_FIRST_LINE_WITHIN]).decode(errors="replace")
    separator = options.given_separator or _sniffed(start.split("\n", 1)[0])
    if len(separator.encode()) > 1:
        return _Text(source, data.replace(separator.encode(), _UNIT.encode()), _UNIT)
    return _Text(source, data, separator)


def _sniffed(line: str) -> str:
    """The first separator that makes three columns, else the one that makes the most."""
    return next((one for one in _SEPARATORS if line.count(one) >= 2), max(_SEPARATORS, key=line.count))


def _frame(text: _Text, width: int, skip: int, wanted: set[int]) -> pl.DataFrame:
    """The wanted columns as strings; refuses a file with lines longer or shorter than the first."""
    last = width - 1
    plain = b'"' not in text.data  # then separators can be counted, and unwanted columns needn't be read
    try:
        frame = pl.read_csv(
            _without_blank_lines(text.data),
            has_header=False,
            skip_rows=skip,
            separator=text.separator,
            quote_char=text.quote,
            schema={f"{at}": pl.String for at in range(width)},
            columns=sorted(wanted | {last}) if plain else None,
        )
    except pl.exceptions.PolarsError as error:
        _refuse_ragged(text, width)
        reason = str(error).splitlines()[0]
        raise UserError(
            f"{text.source} can't be read as a table: {reason}", "check its quotes and separators"
        ) from None
    expected = last * (frame.height + skip)
    too_long = plain and text.data.count(text.separator.encode()) != expected
    if too_long or frame[f"{last}"].null_count():
        _refuse_ragged(text, width)
    return frame


def _without_blank_lines(data: bytes) -> bytes:
    data = data.lstrip(b"\r\n")
    if b"\n\n" in data or b"\n\r\n" in data:
        data = re.sub(rb"\n(\r?\n)+", b"\n", data)
    return data


def _refuse_ragged(text: _Text, width: int) -> None:
    for line, fields in text.records():
        if len(fields) != width:
            raise UserError(
                f"{text.source}, line {line}: {counted(len(fields))} where the first line has {width}: "
                f"{' '.join(fields)[:60]!r}",
                "give every line the same columns; close quotes, and put them around values that hold the separator",
            )
