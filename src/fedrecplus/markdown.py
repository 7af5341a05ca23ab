"""Tables as Markdown, as CSV and, for notebooks, as HTML."""

from __future__ import annotations

import csv
import html
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


def html_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "", below: Sequence[str] = ()
) -> str:
    """A table for a notebook, with sentences below it; everything in it is text, never markup.

    >>> html_table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    said = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in below)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{said}"
