"""The errors a user can cause, each with its remedy."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right. The command line prints it without a traceback and exits with 2.

    The message says what is wrong (file, line, field, value); ``remedy`` says what to do about it.

    >>> print(UserError("ratings.csv, line 7: rating 'good' is not a number", "write a number"))
    ratings.csv, line 7: rating 'good' is not a number
      → write a number
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}\n  → {self.remedy}" if self.remedy else self.problem


class UnknownName(UserError):
    """A name that isn't there: a typing error, or a name of a later version."""


class DataWarning(UserWarning):
    """Something that was assumed about the data and that the user should know before training."""


class EngineWarning(UserWarning):
    """Something that an engine does otherwise than was asked, with the same result."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for a name that isn't there, with the nearest one that is.

    >>> print(unknown_name("data set", "ml-100", ["ml-100k", "ml-1m"]))
    unknown data set 'ml-100'
      → did you mean 'ml-100k'? Known: ml-100k, ml-1m
    """
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UnknownName(f"unknown {kind} {name!r}", f"{hint}Known: {', '.join(known)}")
