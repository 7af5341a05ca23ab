"""What a file may tell besides ratings: when they were given, which fold they are in, and what the items are."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fedrecplus.data.files.columns import OF_ITEMS
from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.tables import Table
from fedrecplus.data.ratings import NEVER_TESTED, Catalogue, title_and_year
from fedrecplus.errors import DataWarning, UserError

_MARKS = ["1", "true", "yes", "test"]
"""of what is tested on"""
_WORDS = {"test": 0, "train": NEVER_TESTED, "training": NEVER_TESTED}
_BETWEEN_GENRES = ("|", ";", ",")
_NO_GENRE = {"", "unknown", "(no genres listed)"}
_LATEST_YEAR = 9999
_DAYS = ("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_CLOCKS = ("%H:%M", "%H:%M:%S%.f", "%H:%M:%S%.fZ", "%H:%M:%S%.f%:z")
_DATES = [*_DAYS, *(day + gap + clock for day in _DAYS for gap in " T" for clock in _CLOCKS)]
_DATES += ["%m %d, %Y", "%a %b %d %H:%M:%S %z %Y"]
_LATEST_SECOND = 10.0**11
"""the year 5138; what is later is counted in milliseconds, microseconds or nanoseconds"""
Column = pl.Series


def timestamps_of(table: Table, *, given: bool) -> NDArray[Any] | None:
    """When each rating was given: numbers as they are, dates in seconds since 1970; None where nothing tells.

    A column that merely has a usual name and holds something else is passed over; one that the user gave is not.
    """
    column = table.columns.get("timestamp")
    if column is None:
        return None
    times = _epochs(column)
    wrong = times.is_null().arg_true()
    if len(wrong) and given:
        raise UserError(
            f"{table.place(wrong[0])}: {column[wrong[0]]!r} is no time {table.named('timestamp')}",
            "write a number, or a date such as 2024-05-31 or 2024-05-31 12:00:00",
        )
    if len(wrong):
        if table.names["timestamp"].startswith("'"):  # a name, not the position of a column without one
            text = f"{table.source}: not every {table.names['timestamp']} is a time, so ratings are taken to have none"
            warnings.warn(text, DataWarning, stacklevel=2)
        return None
    moments = times.to_numpy()
    fits = len(moments) == 0 or (moments.min() >= -(2**31) and moments.max() < 2**31)
    return moments.astype(np.int32 if fits else np.int64)


def _epochs(column: Column) -> Column:
    """Whole numbers, null for what is no time."""
    if column.dtype.is_temporal():
        return column.cast(pl.Datetime("us")).dt.epoch("s")
    if column.dtype.is_numeric():
        return _seconds(column.cast(pl.Float64))
    text = column.cast(pl.String).str.strip_chars()
    numbers = text.cast(pl.Float64, strict=False)
    if numbers.null_count() < len(numbers):
        return _seconds(numbers)
    some = text.drop_nulls().gather_every(1 + len(text) // 1000)  # the first ones may all be of one day
    form = min(_DATES, key=lambda form: _moments(some, form).null_count())
    moments = _moments(text, form)
    for other in (other for other in _DATES if other[:8] == form[:8]):  # with or without a clock, or a zone
        if not moments.null_count():
            break
        moments = moments.fill_null(_moments(text, other))
    return moments


def _moments(text: Column, form: str) -> Column:
    return text.str.to_datetime(form, strict=False, time_unit="us").dt.epoch("s")


def _seconds(numbers: Column) -> Column:
    """Whole seconds, whatever part of one they are counted in."""
    numbers = numbers.set(~numbers.is_finite(), None)
    largest = np.abs(numbers.drop_nulls().to_numpy()).max(initial=0.0)
    while largest >= _LATEST_SECOND:
        numbers, largest = numbers / 1000, largest / 1000
    return numbers.floor().cast(pl.Int64)


def folds_of(table: Table) -> NDArray[np.uint8] | None:
    """The fold that the file puts each rating into; whole numbers are counted through from 0.

    ``train`` and ``test`` are words for a single fold: what is in ``train`` is never tested on.
    """
    if "test" in table.columns:
        return _tested(table)
    column = table.columns.get("fold")
    if column is None:
        return None
    text = column.str.strip_chars().str.to_lowercase()
    if text.is_in(list(_WORDS)).fill_null(False).all():
        return text.replace_strict(_WORDS, return_dtype=pl.UInt8).to_numpy().astype(np.uint8)
    numbers = text.cast(pl.Int64, strict=False)
    wrong = numbers.is_null().arg_true()
    if len(wrong) or numbers.n_unique() > NEVER_TESTED or numbers.n_unique() < 2:
        place = f"{table.place(wrong[0])}: {column[wrong[0]]!r} is no fold" if len(wrong) else table.source
        raise UserError(
            f"{place} {table.named('fold')}",
            f"write train and test, or 2 to {NEVER_TESTED} different whole numbers",
        )
    return (numbers.rank("dense") - 1).to_numpy().astype(np.uint8)


def _tested(table: Table) -> NDArray[np.uint8]:
    """Fold 0 for what a column marks as tested on; all else is never tested on."""
    marked = table.columns["test"].str.strip_chars().str.to_lowercase().is_in(_MARKS).fill_null(False).to_numpy()
    if not marked.any() or marked.all():
        share = "every rating" if marked.any() else "no rating"
        raise UserError(
            f"{table.source}: {share} is marked as a test {table.named('test')}", f"mark some with {_MARKS[0]}"
        )
    return np.where(marked, 0, NEVER_TESTED).astype(np.uint8)


def catalogue_of(table: Table, item_ids: NDArray[Any], options: FileOptions) -> Catalogue | None:
    """Titles, genres and years of the items; None where the table tells nothing of the kind.

    In a file of ratings, a column describes the items only if it says the same of an item each time: a year may be that
    of the rating, and a title that of the review.
    """
    roles = [role for role in OF_ITEMS if role in table.columns]
    described = {role: values for role in roles if (values := _by_item(table, role, options)) is not None}
    if not described:
        return None
    known: dict[str, dict[str, Any]] = described
    ids = [str(item) for item in item_ids.tolist()]
    if not set(ids) & set().union(*known.values()):
        listed = ", ".join(list(next(iter(known.values())))[:3])
        raise UserError(
            f"{table.source} lists none of the rated items: {listed} there, {', '.join(ids[:3])} in the ratings",
            "give files whose item ids mean the same, or the column of ids: --item-column",
        )
    titled = [title_and_year(str(known.get("title", {}).get(item, "") or "")) for item in ids]
    genres = [_genres(known.get("genres", {}).get(item)) for item in ids]
    years = [_year(known.get("year", {}).get(item)) or year for item, (_, year) in zip(ids, titled, strict=True)]
    names = tuple(sorted(set().union(*genres)))
    flags = [[name in own for name in names] for own in genres]
    return Catalogue(
        titles=tuple(title for title, _ in titled),
        years=np.array(years, dtype=np.int16),
        genres=np.array(flags, dtype=np.bool_).reshape(len(ids), len(names)),
        genre_names=names,
    )


def _by_item(table: Table, role: str, options: FileOptions) -> dict[str, Any] | None:
    """Item id → what a column says of it; None where it says different things of one item."""
    column = table.columns[role]
    if column.dtype.is_nested():
        column = column.cast(pl.List(pl.String)).list.join(_BETWEEN_GENRES[0])
    frame = pl.DataFrame({"item": table.columns["item"].str.strip_chars(), "said": column}).drop_nulls().unique()
    twice = frame["item"].is_duplicated().arg_true()
    if len(twice):
        if role in options.columns:
            item = frame["item"][twice[0]]
            raise UserError(
                f"{table.source}: item {item!r} has more than one {role} {table.named(role)}",
                f"give each item one, or name another column: --{role}-column, FileOptions({role}=…)",
            )
        return None
    return dict(zip(frame["item"].to_list(), frame["said"].to_list(), strict=True))


def _genres(said: Any) -> set[str]:
    """The genres in one cell: text, with something between several."""
    text = "" if said is None else re.sub(r"^\[|\]$", "", str(said))
    between = next((mark for mark in _BETWEEN_GENRES if mark in text), _BETWEEN_GENRES[0])
    return {part.strip().strip("'\"") for part in text.split(between)} - _NO_GENRE


def _year(said: Any) -> int:
    """A year; 0 where there is none."""
    match = re.match(r"\s*(\d{4})\b", str(said))
    return int(match[1]) if match and 0 < int(match[1]) <= _LATEST_YEAR else 0
