"""Tables as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, with a line break at its end.

    >>> print(markdown_table(["name", "RMSE"], [["fedmf", "0.91"]]), end="")
    | name | RMSE |
    | --- | --- |
    | fedmf | 0.91 |
    """
    return "".join(f"| {' | '.join(row)} |\n" for row in [headings, ["---"] * len(headings), *rows])


def csv_table(names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Some fields of rows as CSV.

    >>> csv_table(["name", "rmse"], [{"name": "fedmf", "rmse": 0.91, "seconds": 3}])
    'name,rmse\\nfedmf,0.91\\n'
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
