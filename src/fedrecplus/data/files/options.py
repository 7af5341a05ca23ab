"""What a user may say about a file of ratings."""

from __future__ import annotations

from dataclasses import dataclass

from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError, unknown_name

DUPLICATES = ("error", "last", "mean")
MISSING = ("error", "drop")
ON_ERROR = ("error", "skip")
_SPOKEN_SEPARATORS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}
_COLUMNS = ("user", "item", "rating", "timestamp", "fold", "title", "genres", "year", "test")


@dataclass(frozen=True)
class FileOptions:
    """How to read a file of ratings. What isn't given is found out from the file.

    >>> FileOptions(rating="stars", scale="1:5:1").given_scale
    Scale(low=1.0, high=5.0, step=1.0)
    """

    user: str | int | None = None
    """the column of user ids, by name or by position: the first column is 1"""
    item: str | int | None = None
    """the column of item ids, by name or position"""
    rating: str | int | None = None
    """the column of ratings, by name or position; ``none`` where each line is a like, a click or a purchase"""
    separator: str | None = None
    """what stands between columns, of any length; ``tab`` may be spelled out"""
    scale: Scale | str | None = None
    """the rating scale, or how it is written: ``low:high:step``"""
    duplicates: str = "error"
    """what to do where a user rated an item more than once: ``error`` refuses the file, ``last`` keeps the latest
    rating or, without times, the one furthest down in the file, ``mean`` takes the mean, rounded to the nearest level
    of the scale (halves up)"""
    timestamp: str | int | None = None
    """the column of times: numbers, or dates such as 2024-05-31 or 2024-05-31 12:00:00"""
    fold: str | int | None = None
    """the column that says which fold a rating belongs to: whole numbers, or ``train`` and ``test``"""
    title: str | int | None = None
    """the column of the items' titles, in this file or in that of the items"""
    genres: str | int | None = None
    """the column of their genres, with ``|``, ``;`` or ``,`` between several"""
    year: str | int | None = None
    """the column of their years; without one, a year in brackets at the end of a title counts"""
    items: str | None = None
    """a second file: a line per item, with its id and what is known of it"""
    listed: bool = False
    """the items are those of ``items``, a list that was public before anybody rated: one that nobody rated is there,
    and ratings of others are left out. Without it, the list of items tells what somebody rated"""

    test: str | int | None = None
    """the column that says of each rating whether it is tested on: 1, true, yes or test; all else is for training"""
    missing: str = "error"
    """what to do with rows without a user, an item or a rating: ``error`` refuses the file, ``drop`` leaves them out;
    ``drop`` takes NA, null and their like, and marks such as −99, for missing ratings"""
    on_error: str = "error"
    """what to do with rows that are no ratings for whatever reason: ``skip`` leaves them out, and says how many"""

    def __post_init__(self) -> None:
        if self.missing not in MISSING:
            raise unknown_name("way to treat missing values", self.missing, MISSING)
        if self.on_error not in ON_ERROR:
            raise unknown_name("way to treat errors", self.on_error, ON_ERROR)
        if self.test is not None and self.fold is not None:
            raise UserError("a column of folds and one of tests both cut the ratings", "give one of them")
        if self.duplicates not in DUPLICATES:
            raise unknown_name("way to treat duplicates", self.duplicates, DUPLICATES)
        if self.separator == "":
            raise UserError("an empty separator separates nothing", "give the character between the columns")
        _ = self.given_scale

    @property
    def columns(self) -> dict[str, str | int]:
        """The columns that were given, by what they hold."""
        return {role: getattr(self, role) for role in _COLUMNS if getattr(self, role) is not None}

    @property
    def given_scale(self) -> Scale | None:
        """The scale, if one was given."""
        return Scale.parse(self.scale) if isinstance(self.scale, str) else self.scale

    @property
    def given_separator(self) -> str | None:
        """The separator itself, if one was given."""
        return None if self.separator is None else _SPOKEN_SEPARATORS.get(self.separator, self.separator)
