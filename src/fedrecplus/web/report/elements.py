"""HTML of a page: sections, tables, plots."""

from __future__ import annotations

import html
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedrecplus.experiments import FoldMean

_numbers = itertools.count(1)
_HINT = '<p class="hint">Scroll sideways: there is more →</p>'
"""shown by ``page.js`` where something is wider than the page"""
_LONGEST_NUMBER = 22
"""longer cells are text that may break"""
PAPER_PRESET = "fedrec+paper"
"""the paper's own algorithm"""


def text(value: object) -> str:
    """Anything as text that is safe in a page."""
    return html.escape(str(value))


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it."""

    name: str
    """for the link in the contents"""
    title: str
    parts: list[str]

    def html(self) -> str:
        """As HTML."""
        return f'<section id="{text(self.name)}"><h2>{text(self.title)}</h2>{"".join(self.parts)}</section>'


def paragraph(*sentences: str) -> str:
    """Sentences, escaped."""
    return f"<p>{text(' '.join(sentences))}</p>"


def bullets(lines: Sequence[str]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{text(line)}</li>' for line in lines)}</ul>" if lines else ""


def details(summary: str, *parts: str) -> str:
    """Something that a reader may open."""
    return f"<details><summary>{text(summary)}</summary>{''.join(parts)}</details>"


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    caption: str = "",
    classes: Mapping[tuple[int, int], str] | None = None,
) -> str:
    """A table that scrolls by itself where the page is narrow; ``classes`` colour single cells by row and column."""
    head = "".join(f'<th scope="col">{text(heading)}</th>' for heading in headings)
    body = []
    for r, row in enumerate(rows):
        cells = [f'<th scope="row">{text(row[0])}</th>']
        for c, cell in enumerate(row[1:], start=1):
            kind = (classes or {}).get((r, c)) or ("words" if len(cell) > _LONGEST_NUMBER and " " in cell else "")
            cells.append(f'<td class="{kind}">{text(cell)}</td>' if kind else f"<td>{text(cell)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    # below the part that scrolls: a caption inside would scroll away with it
    below = f'<p class="caption">{text(caption)}</p>' if caption else ""
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>{_HINT}{below}"
    )


def trace(name: str, x: Sequence[Any], y: Sequence[Any], mode: str = "lines", **look: Any) -> dict[str, Any]:
    """A plotly scatter trace."""
    return {"type": "scatter", "mode": mode, "name": name, "x": x, "y": y, **look}


def axis(title: str, **look: Any) -> dict[str, Any]:
    """A plotly axis."""
    return {"title": {"text": title}, **look}


def figure_axis(title: str, **look: Any) -> dict[str, Any]:
    """An axis of errors or NDCG, which are shown to four decimals beside points as in tables and sentences."""
    return axis(title, hoverformat=".4f", **look)


def plot(
    traces: Sequence[Mapping[str, Any]],
    layout: Mapping[str, Any],
    caption: str,
    height: int = 420,
    least_width: int = 0,
) -> str:
    """A place for a plot, and its data beside it; ``page.js`` draws it. No colours here: they follow the reader's.

    One that is wider than a narrow page (``least_width``, in pixels) scrolls by itself.
    """
    name = f"plot-{next(_numbers)}"
    data = json.dumps({"data": traces, "layout": layout}, allow_nan=False).replace("<", "\\u003c")  # no tag, no comment
    width = f";min-width:{least_width}px" if least_width else ""
    size = f'style="height:{height}px{width}" role="img" aria-label="{text(caption)}"'
    return (
        f'<figure><div class="scroll"><div class="plot" id="{name}" {size}></div></div>{_HINT}'
        f'<script type="application/json" data-for="{name}">{data}</script>'
        f"<figcaption>{text(caption)}</figcaption></figure>"
    )


NAMES = {"automargin": True, "autorange": "reversed", "type": "category"}
"""an axis of names, the first on top"""


def means(name: str, figures: Mapping[str, FoldMean]) -> dict[str, Any]:
    """A trace of means over folds with their spread. Dots, not bars: no zero on the axis hides the differences."""
    spread = {"type": "data", "array": [each.sd for each in figures.values()]}
    places = [each.mean for each in figures.values()]
    return trace(name, places, list(figures), "markers", error_x=spread, marker={"size": 10})


def heatmap(
    columns: Sequence[str], values: Mapping[str, Sequence[float | None]], form: str, full: float, title: str
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Differences by row and column as numbers on colours, which are full from ``full`` on: traces and layout."""
    labels = [["" if value is None else f"{value:{form}}" for value in row] for row in values.values()]
    cells = {
        "type": "heatmap", "meta": "diverging", "x": columns, "y": list(values), "z": list(values.values()),
        "text": labels, "texttemplate": "%{text}", "zmid": 0, "zmin": -full, "zmax": full,
        "hoverongaps": False, "colorbar": {"title": {"text": title}, "thickness": 12},
    }  # fmt: skip
    return [cells], {"yaxis": NAMES, "xaxis": {"side": "top", "type": "category", "tickangle": -40}}


def unique(names: Sequence[str], form: str) -> list[str]:
    """Names that occur several times, numbered.

    >>> unique(["a", "b", "a"], "{}-{}")
    ['a-1', 'b', 'a-2']
    """
    return [
        form.format(name, names[: place + 1].count(name)) if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]
