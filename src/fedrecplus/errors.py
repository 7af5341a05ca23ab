"""The errors a user can cause, each with its remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_PYTHON = {
    "--set ": "",
    "--allow-rule": "allow=[…]",
    "--catalogue FILE": "items=…, listed=True",
    **{
        f"--{name}-column": f"{name}=…"
        for name in ("user", "item", "rating", "timestamp", "fold", "test", "title", "genres", "year")
    },
    **{
        f"--{name}": f"{name.replace('-', '_')}=True"
        for name in ("overwrite", "resume", "simulation-only", "seeded-noise")
    },
    **{
        f"--{name}": f"{name}=…"
        for name in (
            *("after", "algorithm", "by", "canaries", "channel", "delta", "duplicates", "epsilon", "knowing"),
            *("missing", "noise", "objective", "out", "rows", "scale", "separator", "session", "share", "storage"),
            *("vary", "workers"),
        )
    },
    "--on-error": "on_error=…",
}
"""options of the command line, and how Python writes them: the names are the same"""
_OPTION = re.compile(rf"(?:{'|'.join(sorted(map(re.escape, _PYTHON), key=len, reverse=True))})(?!-)")
_VALUE = re.compile(r"=(\[?)…(\]?)[ =]([A-Z][A-Z:-]+\b|(?<==)[\w.:-]*\w)")


def in_python(text: str) -> str:
    """A remedy as Python writes it. An option that Python doesn't have stays as it is.

    >>> in_python("give --scale LOW:HIGH:STEP, or --duplicates=last; --overwrite replaces it; --port 0")
    "give scale='LOW:HIGH:STEP', or duplicates='last'; overwrite=True replaces it; --port 0"
    """
    named = _OPTION.sub(lambda match: _PYTHON[match[0]], text)
    return _VALUE.sub(lambda match: f"={match[1]}{match[3]!r}{match[2]}", named)


class UserError(ValueError):
    """Something the user can put right. The command line prints it without a traceback and exits with 2.

    The message says what is wrong (file, line, field, value); ``remedy`` says what to do about it. Both name options
    as the command line does, and are shown to who writes Python as parameters.

    >>> print(UserError("ratings.csv, line 7: rating 6 is not on the scale 1:5:1", "give --scale LOW:HIGH:STEP"))
    ratings.csv, line 7: rating 6 is not on the scale 1:5:1
      → give scale='LOW:HIGH:STEP'
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy

    @property
    def for_shell(self) -> str:
        """What the command line prints."""
        return f"{self.problem}\n  → {self.remedy}" if self.remedy else self.problem

    def __str__(self) -> str:
        return in_python(self.for_shell)


class NotFittedError(UserError, AttributeError):
    """An estimator was asked before it was fitted; scikit-learn's error of that name has the same ancestors."""


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
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return UnknownName(f"unknown {kind} {name!r}", f"{hint}Known: {', '.join(known)}")
