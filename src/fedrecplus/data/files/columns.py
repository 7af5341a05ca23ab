"""Which columns hold the user, the item, the rating, and what else a file may tell."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from fedrecplus.data.files.options import FileOptions
from fedrecplus.errors import DataWarning, UserError, unknown_name

# Compared in lower case, letters and digits only; where a file has several, the first named here is taken.
_NAMES = {
    "user": "userid user uid username reviewerid customerid customer clientid client memberid member visitorid "
    "profileid userindex useridx accountid account reviewer listenerid listener readerid reader personid person "
    "viewerid viewer playerid player username email useremail customeremail emailaddress",
    "item": "itemid item iid movieid movie bookid isbn book productid product parentasin asin articleid article "
    "trackid track songid song albumid artistid artist businessid gameid game animeid jokeid recipeid beerid hotelid "
    "courseid showid filmid film contentid restaurantid placeid venueid poiid locationid mangaid stockcode sku "
    "itemindex itemidx anime joke recipe beer hotel course manga restaurant venue videoid video appid app "
    "storyid story movietitle booktitle filmtitle title",
    "rating": "rating ratings stars star score overall bookrating starrating userrating reviewoverall reviewrating "
    "ratingvalue value like liked",
    "timestamp": "timestamp time ts unixtime datetime date day ratedat createdat eventtime unixreviewtime reviewtime "
    "reviewdate dateadded addedat listenedat orderdate invoicedate purchasedate when",
    "title": "title movietitle booktitle itemtitle producttitle itemname moviename productname name",
    "genres": "genres genre categories category tags subjects",
    "year": "year releaseyear yearofrelease yearofpublication publicationyear originalpublicationyear",
}
OF_RATINGS = ("user", "item", "rating")
OF_ITEMS = ("title", "genres", "year")
FURTHER = ("timestamp", "fold", "test", *OF_ITEMS)
"""what a file of ratings may have besides"""
NO_RATING = "none"
"""what a user says of a file without a column of ratings"""
_ORDER = {
    "ratings": ("user", "item", "rating", "timestamp"),
    "likes": ("user", "item", "timestamp"),
    "items": ("item", "title", "genres"),
}
"""the columns of files without a header, as in MovieLens' own"""
_MOST_NAMED = 20
"""columns that an error names"""
_WIDE = 8
"""columns from which a table may have one for each item"""
_MELT = "if it has a column for each item, make a line of user, item and rating of each cell first (melt, in a frame)"
Positions = dict[str, int]
"""role → position, from 0"""


def has_header(first: Sequence[str], options: FileOptions) -> bool:
    """Whether a file's first line names the columns.

    It does if the user names columns, if a usual name is in it, or if nothing in it is a number.

    >>> has_header(["userId", "movieId", "7"], FileOptions()), has_header(["ann", "dune", "5"], FileOptions())
    (True, False)
    """
    given = [column for column in options.columns.values() if column != NO_RATING]
    named = any(isinstance(column, str) and not column.isdigit() for column in given)
    usual = any(_usual_positions(first, role) for role in ("user", "rating"))
    return named or usual or not any(_is_number(field) for field in first)


def names_items(first: Sequence[str], options: FileOptions) -> bool:
    """The same of a file of items, in which numbers are years and ids at most.

    >>> names_items(["movieId", "title"], FileOptions()), names_items(["1", "Toy Story (1995)"], FileOptions())
    (True, False)
    """
    given = {column for role, column in options.columns.items() if role in ("item", *OF_ITEMS)}
    return bool(given & set(first)) or any(_usual_positions(first, role) for role in ("item", *OF_ITEMS))


def rating_columns(names: Sequence[str], header: bool, options: FileOptions, source: str) -> Positions:
    """The columns the user gave, else those with usual names, else the first ones of a file without header.

    There is no rating in a file of two columns, in one of user, item, time and what describes items, or where the user
    says so: each line then says that a user chose an item.
    """
    if not header and len(names) > _WIDE and not options.columns:
        raise UserError(f"{source}: {len(names)} columns and no header", f"{_which(['user'], names, header)}; {_MELT}")
    _check_named(names, header, options, source)
    positions = {role: _position(role, names, header, options, source) for role in ("user", "item")}
    unrated = _is_unrated(names, header, options, positions)
    if not unrated:
        positions["rating"] = _position("rating", names, header, options, source)
    if len(set(positions.values())) < len(positions):
        raise UserError(f"{source}: user, item and rating can't share a column", _which(["user"], names, header))
    told_elsewhere = OF_ITEMS if options.items else ()
    roles = [role for role in FURTHER if role not in told_elsewhere]
    positions |= _further(roles, "likes" if unrated else "ratings", names, header, options, source, positions)
    if header:
        _warn_of_rivals(names, options, source, positions)
    return positions


def _is_unrated(names: Sequence[str], header: bool, options: FileOptions, others: Positions) -> bool:
    if options.rating is not None:
        return options.rating == NO_RATING and NO_RATING not in names
    if not header:
        return len(names) == 2
    described = {at for role in ("timestamp", *OF_ITEMS) for at in _usual_positions(names, role)}
    described |= {list(names).index(str(column)) for column in options.columns.values() if column in names}
    return not _usual_positions(names, "rating") and set(range(len(names))) <= described | set(others.values())


def item_columns(names: Sequence[str], header: bool, options: FileOptions, source: str) -> Positions:
    """The columns of a file of items: the id, and at least one of title, genres and year."""
    # the column that was given may be one of the ratings' file alone
    own = replace(options, item=options.item if header and options.item in names else None)
    positions = {"item": _position("item", names, header, own, source) if header else 0}
    positions |= _further(OF_ITEMS, "items", names, header, options, source, positions)
    if len(positions) == 1 and not options.listed:
        raise UserError(
            f"{source}: no column tells titles, genres or years",
            f"name one: --title-column, --genres-column, --year-column; the columns are {', '.join(map(repr, names))}",
        )
    return positions


def _further(
    roles: Iterable[str],
    kind: str,
    names: Sequence[str],
    header: bool,
    options: FileOptions,
    source: str,
    taken: Mapping[str, int],
) -> Positions:
    """What is there besides, given or by a usual name; a column that is something else already is not taken twice."""
    positions: Positions = {}
    for role in roles:
        given = options.columns.get(role)
        if given is not None:
            positions[role] = _given_position(given, names, header, source)
        elif header:
            free = [at for at in _usual_positions(names, role) if at not in {*taken.values(), *positions.values()}]
            positions |= {role: free[0]} if free else {}
        elif role in _ORDER[kind] and _ORDER[kind].index(role) < len(names):
            positions[role] = _ORDER[kind].index(role)
    return positions


def _check_named(names: Sequence[str], header: bool, options: FileOptions, source: str) -> None:
    """Name all columns that have to be given, where one of users or items has: not one after the other."""
    given = options.columns
    unnamed = [role for role in OF_RATINGS if given.get(role) is None and not _usual_positions(names, role)]
    if header and len(names) > 1 and unnamed and unnamed != ["rating"]:
        raise _unnamed(unnamed, names, header, source)


def _unnamed(roles: Sequence[str], names: Sequence[str], header: bool, source: str) -> UserError:
    sought = ", nor for ".join(f"the {role}" for role in roles)
    return UserError(f"{source}: no column has a usual name for {sought}", _which(roles, names, header))


def _position(role: str, names: Sequence[str], header: bool, options: FileOptions, source: str) -> int:
    given = options.columns.get(role)
    if given is not None:
        return _given_position(given, names, header, source)
    usual = _usual_positions(names, role)
    position = (usual[0] if usual else None) if header else OF_RATINGS.index(role)
    if position is None and len(names) == 1:
        raise UserError(f"{source}: a single column, {names[0][:60]!r}", "give the separator with --separator")
    if position is None:
        raise _unnamed([role], names, header, source)
    if position >= len(names):
        raise UserError(
            f"{source}: {counted(len(names))} in the first line, where the {role} is column {position + 1}",
            "give the separator with --separator",
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


def _usual_positions(names: Sequence[str], role: str) -> list[int]:
    """All columns with a usual name for a role, the most usual first."""
    # RecBole writes the type behind a colon: user_id:token
    plain = [re.sub(r"[^a-z0-9]", "", name.lower().partition(":")[0]) for name in names]
    return [plain.index(usual) for usual in _NAMES[role].split() if usual in plain] if role in _NAMES else []


def usual_column(names: Sequence[str], role: str, options: FileOptions) -> int | None:
    """The position of the column that was given for a role or has a usual name for it; None where there is none."""
    given = options.columns.get(role)
    if given in names:
        return list(names).index(str(given))
    return next(iter(_usual_positions(names, role)), None)


def _warn_of_rivals(names: Sequence[str], options: FileOptions, source: str, positions: Mapping[str, int]) -> None:
    """Say which column was taken where another one could have been meant."""
    for role in (role for role in OF_RATINGS if role in positions):
        others = [at for at in _usual_positions(names, role) if at not in positions.values()]
        if options.columns.get(role) is None and others:
            taken, rivals = names[positions[role]], ", ".join(repr(names[at]) for at in dict.fromkeys(others))
            warnings.warn(
                f"{source}: {taken!r} is taken for the {role}, though {rivals} could be meant; "
                f"say which: --{role}-column, or {role}=…",
                DataWarning,
                stacklevel=2,
            )


def _which(roles: Sequence[str], names: Sequence[str], header: bool) -> str:
    present = f"the first line has {counted(len(names))}"
    if header:
        present = f"the columns are {', '.join(map(repr, names[:_MOST_NAMED]))}"
        present += f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    present += f"; {_MELT}" if header and len(names) > _WIDE else ""
    none = f"; --rating-column={NO_RATING} where each line is a like, click or purchase, or counts them"
    options = ", ".join(f"--{role}-column NAME-OR-NUMBER" for role in roles)
    return f"say which it is: {options}{none if 'rating' in roles else ''}; {present}"


def counted(columns: int) -> str:
    """A number of columns, in words."""
    return "1 column" if columns == 1 else f"{columns} columns"


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
