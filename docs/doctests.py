"""Shows the examples of docstrings as code: Markdown takes ``>>>`` for quotations of quotations."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^[ \t]*>>> .*(?:\n[ \t]*\S.*)*\n?)+", re.M)
"""from a prompt to the next empty line"""


class Doctests(griffe.Extension):
    """A fence around every example."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called by griffe for each module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(example: re.Match[str]) -> str:
    return f"```pycon\n{example[0].rstrip()}\n```\n"
