"""Tables as Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, with a line break at its end.

    >>> print(markdown_table(["name", "RMSE"], [["fedmf", "0.91"]]), end="")
    | name | RMSE |
    | --- | --- |
    | fedmf | 0.91 |
    """
    return "".join(f"| {' | '.join(row)} |\n" for row in [headings, ["---"] * len(headings), *rows])
