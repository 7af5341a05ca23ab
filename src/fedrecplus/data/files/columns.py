"""Which columns hold the user, the item and the rating."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from fedrecplus.data.files.options import FileOptions
from fedrecplus.errors import UserError, unknown_name

# Compared in lower case, letters and digits only; where a file has several, the first named here is taken.
_NAMES = {
    "user": "userid user uid username reviewerid customerid customer clientid client memberid member visitorid "
    "profileid userindex useridx",
    "item": "itemid item iid movieid movie bookid isbn book productid product parentasin asin articleid article "
    "trackid track songid song albumid artistid artist businessid gameid game animeid jokeid recipeid beerid hotelid "
    "courseid showid filmid film contentid itemindex itemidx movietitle booktitle title",
    "rating": "rating ratings stars star score overall bookrating starrating userrating reviewoverall reviewrating "
    "ratingvalue value",
}
_TIMES = {
    *("timestamp", "time", "ts", "date", "datetime", "day", "unixtime"),
    *("unixreviewtime", "reviewtime", "createdat", "eventtime"),
}
NO_RATING = "none"
"""what a user says of a file without a column of ratings"""


class Columns(NamedTuple):
    """The positions, from 0, of the columns that matter."""

    user: int
    item: int
    rating: int | None
    """None in a file of likes, clicks or purchases: each line says that a user chose an item"""


def has_header(first: Sequence[str], options: FileOptions) -> bool:
    """Whether a file's first line names the columns.

    It does if the user names columns, if a usual name is in it, or if nothing in it is a number.

    >>> has_header(["userId", "movieId", "7"], FileOptions()), has_header(["ann", "dune", "5"], FileOptions())
    (True, False)
    """
    given = (options.user, options.item, options.rating)
    named = any(isinstance(column, str) and not column.isdigit() and column != NO_RATING for column in given)
    usual = any(_usual_position(first, role) is not None for role in ("user", "rating"))
    return named or usual or not any(_is_number(field) for field in first)


def find_columns(names: Sequence[str], header: bool, options: FileOptions, source: str) -> Columns:
    """The columns the user gave, else those with usual names, else the first three of a file without header.

    There is no rating in a file of two columns, of user, item and time, or where the user says so.
    """
    user, item = (_position(role, names, header, options, source) for role in ("user", "item"))
    unrated = _is_unrated(names, header, options, (user, item))
    found = Columns(user, item, None if unrated else _position("rating", names, header, options, source))
    if len(set(found)) < len(found):
        raise UserError(f"{source}: user, item and rating can't share a column", _which("user", names, header))
    return found


def _is_unrated(names: Sequence[str], header: bool, options: FileOptions, others: tuple[int, int]) -> bool:
    if options.rating is not None:
        return options.rating == NO_RATING and NO_RATING not in names
    if not header:
        return len(names) == 2
    rest = {_plain(name) for place, name in enumerate(names) if place not in others}
    return _usual_position(names, "rating") is None and rest <= _TIMES


def _position(role: str, names: Sequence[str], header: bool, options: FileOptions, source: str) -> int:
    given = getattr(options, role)
    if given is not None:
        return _given_position(given, names, header, source)
    position = _usual_position(names, role) if header else list(_NAMES).index(role)
    if position is None:
        raise UserError(f"{source}: no column has a usual name for the {role}", _which(role, names, header))
    if position >= len(names):
        raise UserError(
            f"{source}: {counted(len(names))} in the first line, where the {role} is column {position + 1}",
            "give the separator with --separator, or FileOptions(separator=…)",
        )
    return position


def _given_position(column: str | int, names: Sequence[str], header: bool, source: str) -> int:
    """The position of a column that the user gave by name, or by number from 1."""
    if header and column in names:
        return list(names).index(str(column))
    if not str(column).lstrip("-").isdigit():
        remedy = unknown_name("column", str(column), names).remedy
        raise UserError(f"{source}: there is no column {column!r}", remedy)
    if not 1 <= int(column) <= len(names):
        raise UserError(f"{source}: there is no column {column}", f"the columns are numbered 1 to {len(names)}")
    return int(column) - 1


def _usual_position(names: Sequence[str], role: str) -> int | None:
    plain = [_plain(name) for name in names]
    return next((plain.index(usual) for usual in _NAMES[role].split() if usual in plain), None)


def _plain(name: str) -> str:
    # RecBole writes the type behind a colon: user_id:token
    return re.sub(r"[^a-z0-9]", "", name.lower().partition(":")[0])


def _which(role: str, names: Sequence[str], header: bool) -> str:
    found = f"the columns are {', '.join(map(repr, names))}" if header else f"the first line has {counted(len(names))}"
    none = f"; --rating-column {NO_RATING} where each line is a like, click or purchase" if role == "rating" else ""
    return f"say which it is: --{role}-column NAME-OR-NUMBER, or FileOptions({role}=…){none}; {found}"


def counted(columns: int) -> str:
    """A number of columns, in words."""
    return "1 column" if columns == 1 else f"{columns} columns"


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
