"""A comparison as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fedrecplus.experiments.compare import FIGURES, Comparison, Summary

HEADINGS = ("algorithm", "MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "p", "rounds", "seconds", "KB up", "KB down")
_ROW = ("dataset", "algorithm", "fold", "seed", *FIGURES)


def to_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """``rows`` one per algorithm and fold; trivial predictors and published figures stand apart."""
    return {
        "rows": [row for comparison in comparisons for row in comparison.rows],
        "trivial": [row for comparison in comparisons for row in comparison.trivial],
        "summary": [summary.to_dict() for comparison in comparisons for summary in comparison.summaries],
        "published": [asdict(row) for comparison in comparisons for row in comparison.published],
    }


def to_csv(comparisons: Sequence[Comparison]) -> str:
    """A line per algorithm and fold, trivial predictors included."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _ROW, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for comparison in comparisons:
        writer.writerows([*comparison.trivial, *comparison.rows])
    return text.getvalue()


def to_markdown(comparisons: Sequence[Comparison]) -> str:
    """A table per data set, published figures below one's own."""
    parts: list[str] = []
    for comparison in comparisons:
        lines = [f"## {comparison.dataset}", "", _line(HEADINGS), _line(["---"] * len(HEADINGS))]
        lines += [_line(cells(summary)) for summary in comparison.summaries]
        lines += [_line(row) for row in published_cells(comparison)]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def cells(summary: Summary) -> list[str]:
    """One row of a table."""
    figures, test = summary.figures, summary.test
    rmse = figures["rmse"]
    return [
        summary.algorithm,
        str(figures["mae"]),
        str(rmse),
        str(figures["nmse"]),
        f"{rmse.low:.4f} – {rmse.high:.4f}",
        "baseline" if test is None else f"{test.p:.2g}",
        f"{figures['rounds'].mean:.0f}",
        f"{figures['seconds'].mean:.1f}",
        f"{figures['bytes_up_per_client_round'].mean / 1000:.1f}",
        f"{figures['bytes_down_per_client_round'].mean / 1000:.1f}",
    ]


def published_cells(comparison: Comparison) -> list[list[str]]:
    """Rows of a table for what others report."""
    return [
        [
            f"{row.system} ({row.source})",
            f"{row.mae:.4f}",
            f"{row.rmse:.4f}",
            "" if row.nmse is None else f"{row.nmse:.4f}",
            *[""] * (len(HEADINGS) - 4),
        ]
        for row in comparison.published
    ]


def _line(row: Sequence[str]) -> str:
    return "| " + " | ".join(row) + " |"
