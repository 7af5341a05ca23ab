"""The privacy–accuracy frontier: error and bytes against the success of every attack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fedrecplus.audit.tables import Row, auc, case_name, cases, frontier_table, line, percent, strongest, summary
from fedrecplus.report.elements import Section, axis, bullets, paragraph, plot, table, trace
from fedrecplus.report.origins import made

_CHANCE = 0.5


def frontier_section(content: dict[str, Any]) -> Section:
    """Scheme × ρ × K against error, bytes and every attack's AUC."""
    rows: list[Row] = [defaultdict(lambda: None, row) for row in content["rows"]]
    watched = [f"{content[name]} {name}" for name in ("users", "rounds") if name in content]
    about = f"{content.get('dataset', 'Data not named')}" + (f", {' and '.join(watched)} watched." if watched else ".")
    caption = (
        "KB up per client and round; the most ratings that an attack reads exactly; the AUC of each attack: "
        "0.5 is chance, 1 is certainty, – where there are no pseudo rows to tell apart."
    )
    parts = [
        paragraph(
            about,
            "Down and to the left is better: lower error, and attacks at chance (0.5).",
            "A scheme without pseudo rows hides nothing: every uploaded row is a rated one, which counts as 1.",
        ),
        _plot(rows),
        table(*frontier_table(rows), caption),
        _ratings_read(rows),
        bullets([f"{sentence}." for sentence in summary(rows)]),
        made(content.get("made"), {f"config of {name}": text for name, text in content.get("configs", {}).items()}),
    ]
    return Section("frontier", "Privacy–accuracy frontier", parts)


def _plot(rows: Sequence[Row]) -> str:
    """A point per case at its strongest attack, named; the legend adds the points of each attack."""
    known = [row for row in rows if row["rmse"] is not None]
    if not known:
        return ""
    worst = [strongest(case) for case in cases(known)]
    traces = [_points("strongest attack", worst, marker={"size": 12})]
    for name in dict.fromkeys(row["attack"] for row in known):
        points = [row for row in known if row["attack"] == name]
        traces.append(_points(name, points, marker={"size": 8}, visible="legendonly"))
    chance = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": _CHANCE, "y1": _CHANCE, "line": {"dash": "dot"}}
    layout = {
        "xaxis": axis("RMSE"),
        "yaxis": axis("AUC: rated rows told from pseudo rows", range=[0.4, 1.1]),
        "annotations": _labels(worst),
        "shapes": [chance],
    }
    return plot(traces, layout, "Accuracy against the strongest attack; the legend adds each attack. Dotted: chance.")


def _points(name: str, rows: Sequence[Row], **look: Any) -> dict[str, Any]:
    hover = [f"{case_name(row)}, {row['attack']}, {line(row)[4]} KB up" for row in rows]
    return trace(name, [row["rmse"] for row in rows], [auc(row) for row in rows], "markers", text=hover, **look)


def _labels(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A name at each scheme's most accurate case; above and below in turn, since neighbours would overlap."""
    best = {(row["scheme"], row["pseudo_ratio"]): row for row in sorted(rows, key=lambda row: -row["rmse"])}
    return [
        {"x": row["rmse"], "y": auc(row), "text": case_name(row), "showarrow": False, "yshift": (14, -16)[number % 2]}
        for number, row in enumerate(sorted(best.values(), key=lambda row: row["rmse"]))
    ]


def _ratings_read(rows: Sequence[Row]) -> str:
    """Shares of ratings that attacks read exactly, beside what guessing the commonest gives."""
    attacks = list(dict.fromkeys(row["attack"] for row in rows if row["rating_exact"] is not None))
    if not attacks:
        return ""
    cells = []
    for case in cases(rows):
        read = {row["attack"]: percent(row["rating_exact"]) for row in case}
        floor = next((row["rating_floor"] for row in case if row["rating_floor"] is not None), None)
        cells.append([case_name(case[0]), percent(floor), *(read.get(name, "–") for name in attacks)])
    return table(["case", "by guessing", *attacks], cells, "Ratings that an attack reads exactly.")
