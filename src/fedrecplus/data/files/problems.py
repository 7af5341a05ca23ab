"""Rows that are no rating: all of them are named at once, or left out where that is asked for."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fedrecplus.data.files.options import FileOptions
from fedrecplus.data.files.tables import Table
from fedrecplus.data.scale import Scale
from fedrecplus.errors import DataWarning, UserError

MOST_NAMED = 20
"""rows that an error names"""
AGAIN = "a user and an item that were rated before"
_YES_AND_NO = {"true": "1", "yes": "1", "false": "0", "no": "0", "t": "1", "y": "1", "f": "0", "n": "0"}
_MISSING = ("", "na", "n/a", "nan", "null", "none", "?")
_DECIMAL_COMMA = r"^[+-]?\d+,\d+$"
_THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?$"
_SURELY_THOUSANDS = r",.*,|,.*\.|^[+-]?\d{3}(\.|$)"
_ROUNDED = r"^\s*\d([.,]\d+)?[eE]\+\d\d\s*$"
_SENTINELS = tuple(sign * nines for nines in (9, 99, 999, 9999, 99999) for sign in (1.0, -1.0))
_MANY = 0.25
"""this share of zeros, or this share of the highest number above half of all, is unlike ratings"""
_MOST_STARS = 10
_SCALE = "correct it, or give the scale that it is on: --scale LOW:HIGH:STEP"


@dataclass(frozen=True)
class BadRow:
    """What is wrong with a row."""

    row: int
    kind: str
    """for a count of such rows"""
    text: str
    remedy: str
    missing: bool = False


def without_problems(table: Table, options: FileOptions) -> Table:
    """The rows that are ratings. Others are an error, unless ``missing`` or ``on_error`` say that they are left out."""
    if len(table.faults) >= max(len(table) - 1, 2):
        remedy = "remove the first line, if it isn't part of the table; or give the separator: --separator"
        raise UserError(f"{table.source}: no other line has as many columns as the first", remedy)
    others = [one for one in _problems(table, options) if one.row not in table.faults]
    problems = sorted([*ragged(table), *others], key=lambda problem: problem.row)
    if options.on_error != "skip":
        refused = [one for one in problems if not (one.missing and options.missing == "drop")]
        if refused:
            raise refusal(table, refused)
    if problems:
        _warn(table, problems)
        left = np.setdiff1d(np.arange(len(table)), [one.row for one in problems])
        if not len(left):
            raise UserError(f"{table.source}: no line is a rating", "give a file with a rating per line")
        table = table.rows(left)
    return table


def refusal(table: Table, problems: Sequence[BadRow]) -> UserError:
    """The error that names the first problems, and says how many there are."""
    lines = [f"{table.place(one.row)}: {one.text}" for one in problems[:MOST_NAMED]]
    remedies = list(dict.fromkeys(one.remedy for one in problems))
    rows = len({one.row for one in problems})
    if rows > 1:
        duplicates = problems[0].kind == AGAIN  # they are found when all rows are ratings
        kinds = ", ".join(f"{count:,} with {kind}" for kind, count in Counter(one.kind for one in problems).items())
        lines.append(f"{rows:,} of {len(table):,} rows are at fault: {kinds}")
        option = "--missing=drop" if all(one.missing for one in problems) else "--on-error=skip"
        remedies = remedies if len(remedies) == 1 else ["correct them"]
        remedies += [] if duplicates or rows == len(table) else [f"leave them out: {option}"]
    return UserError("\n".join(lines), "; or ".join(remedies))


def numbers_of(table: Table) -> tuple[NDArray[np.float64], bool]:
    """The ratings, of which each is one, as numbers, and whether they are likes: true and false, or yes and no."""
    text = _text(table)
    if _are_likes(text):
        return text.str.to_lowercase().replace_strict(_YES_AND_NO).cast(pl.Float64).to_numpy(), True
    return _parsed(text).to_numpy(), False


def question_ids(table: Table) -> None:
    """Say where a spreadsheet has rounded long ids, as it does with ISBNs: different ones look the same then."""
    for role in ("user", "item"):
        ids = table.columns[role]
        rounded = ids.filter(ids.str.contains(_ROUNDED))
        if len(rounded):
            text = f"{table.source}: {rounded[0].strip()!r} {table.named(role)} looks like an id that a spreadsheet "
            text += f"rounded, as {len(rounded) - 1:,} more do: different ones became one. Save that column as text"
            warnings.warn(text, DataWarning, stacklevel=2)


def question_sentinels(table: Table, values: NDArray[np.float64]) -> None:
    """Refuse a value that looks like a mark for "no rating", such as −99 below ratings of 1 to 5."""
    sentinel = sentinel_of(values)
    if sentinel is None:
        return
    count, others = int((values == sentinel).sum()), values[values != sentinel]
    said = f"1 rating is {sentinel:g}" if count == 1 else f"{count:,} ratings are {sentinel:g}"
    raise UserError(
        f"{table.source}: {said}, the others {others.min():g} to {others.max():g} "
        f"{table.named('rating')}: does {sentinel:g} stand for a missing rating?",
        "leave these lines out: --missing=drop; or, if it is a rating, give --scale LOW:HIGH:STEP",
    )


def question_meaning(table: Table, values: NDArray[np.float64], scale: Scale) -> None:
    """Say what numbers may be instead of ratings: marks for "no rating", as Book-Crossing's zeros are, or counts."""
    levels, times = np.unique(values, return_counts=True)
    median, high = float(np.median(values)), float(levels[-1])
    meaning = None
    if len(levels) > 3 and levels[0] == 0 and times[0] > max(_MANY * len(values), 2 * times[1]):
        meaning = (
            f"{times[0] / len(values):.0%} are 0: if that stands for no rating, leave these out: "
            f"--scale {levels[1]:g}:{scale.high:g}:{scale.step:g} --on-error skip, or scale=… and on_error='skip'"
        )
    elif levels[0] >= 0 and high > _MOST_STARS and median <= _MANY * high and (levels % 1 == 0).all():
        meaning = (
            f"whole numbers up to {high:g}, half of them at most {median:g}, look like counts: if they are, learn who "
            "chose what: --rating-column none, or rating='none'"
        )
    if meaning:
        warnings.warn(f"{table.source}, column {table.names['rating']}: {meaning}", DataWarning, stacklevel=2)


def sentinel_of(values: NDArray[np.float64]) -> float | None:
    """A row of nines far from all other values; or −1 where the others are not negative and reach 3 and more.

    >>> sentinel_of(np.array([1.0, 5, -99])), sentinel_of(np.array([-1.0, 0, 1])), sentinel_of(np.array([9.0, 10, 1]))
    (-99.0, None, None)
    """
    levels = np.unique(values)
    for sentinel, others in ((levels[0], levels[1:]), (levels[-1], levels[:-1])):
        if len(others) < 2:
            continue
        gap = min(abs(others - sentinel))
        if sentinel in _SENTINELS and gap > 2.0 * np.ptp(others):
            return float(sentinel)
        if sentinel == -1.0 and others[0] >= 0.0 and others[-1] >= 3.0:
            return float(sentinel)
    return None


def ragged(table: Table) -> list[BadRow]:
    """Rows with other columns than the first line."""
    remedy = "give every line the same columns; close quotes, and put them around values that hold the separator"
    return [BadRow(row, "other columns than the first", text, remedy) for row, text in table.faults.items()]


def _problems(table: Table, options: FileOptions) -> Iterator[BadRow]:
    for role in ("user", "item"):
        ids = table.columns[role].str.strip_chars()
        for row in (ids.is_null() | (ids == "")).arg_true():
            remedy = f"write the {role}'s id, or remove the line"
            yield BadRow(row, f"no {role}", f"the {role} is missing {table.named(role)}", remedy, missing=True)
    if "rating" in table.columns:
        yield from _problems_of_ratings(table, options)


def _problems_of_ratings(table: Table, options: FileOptions) -> Iterator[BadRow]:
    text, column = _text(table), table.named("rating")
    if _are_likes(text.filter(_present(text))):
        numbers = text.str.to_lowercase().replace_strict(_YES_AND_NO, default=None).cast(pl.Float64)
    else:
        numbers = _parsed(text)
    wrong = (numbers.is_null() | ~numbers.is_finite()).fill_null(True)
    scale, write = options.given_scale, "write a finite number, such as 3.5"
    for row in wrong.arg_true():
        if text[row] in (None, ""):
            missing = f"the rating is missing {column}"
            yield BadRow(row, "no rating", missing, "write a number, or remove the line", missing=True)
        else:
            kind = "is not a number" if numbers[row] is None or np.isnan(numbers[row]) else "is infinite"
            marked = text[row].lower() in _MISSING
            yield BadRow(row, "no number for a rating", f"rating {text[row]!r} {kind} {column}", write, marked)
    values = numbers.fill_null(np.nan).to_numpy()
    right = ~wrong.to_numpy()
    if scale is not None:
        yield from _off_scale(table, values, right & ~scale.holds(np.where(right, values, scale.low)), scale)
    elif options.missing == "drop":
        while right.any() and (sentinel := sentinel_of(values[right])) is not None:  # a file may have −1 and 99999
            for row in np.flatnonzero(right & (values == sentinel)):
                yield BadRow(int(row), f"{sentinel:g} for a rating", "", "", missing=True)
            right &= values != sentinel


def _off_scale(table: Table, values: NDArray[np.float64], off: NDArray[np.bool_], scale: Scale) -> Iterator[BadRow]:
    for row in np.flatnonzero(off).tolist():
        text = f"rating {values[row]:g} is not on the scale {scale} {table.named('rating')}"
        yield BadRow(row, "a rating off the scale", text, _SCALE)


def _warn(table: Table, problems: Sequence[BadRow]) -> None:
    kinds = Counter({one.row: one.kind for one in problems}.values())
    left_out = ", ".join(f"{count:,} with {kind}" for kind, count in kinds.items())
    rows = len({one.row for one in problems})
    said = f"{table.source}: {rows:,} of {len(table):,} rows are left out: {left_out}"
    warnings.warn(said, DataWarning, stacklevel=2)


def _text(table: Table) -> pl.Series:
    return table.columns["rating"].str.strip_chars()


def _present(text: pl.Series) -> pl.Series:
    return text.is_not_null() & ~text.str.to_lowercase().is_in(list(_MISSING))


def _are_likes(text: pl.Series) -> bool:
    return len(text) > 0 and bool(text.str.to_lowercase().is_in(list(_YES_AND_NO)).fill_null(False).all())


def _parsed(text: pl.Series) -> pl.Series:
    """Numbers, with a point or, where the file has any such, a decimal comma; null for what is none.

    Commas are those of thousands where all of them could be, and 900 or 1,234,567 beside them says that they are.
    """
    numbers = text.cast(pl.Float64, strict=False)
    if not numbers.null_count():  # the usual case
        return numbers
    commas = text.filter(text.str.contains(",", literal=True))
    thousands = commas.str.contains(_THOUSANDS).all() and text.str.contains(_SURELY_THOUSANDS).any()
    form, point = (_THOUSANDS, "") if thousands else (_DECIMAL_COMMA, ".")
    plain = text.str.replace_all(",", point, literal=True).cast(pl.Float64, strict=False)
    return numbers.fill_null(plain.set(~text.str.contains(form).fill_null(False), None))
