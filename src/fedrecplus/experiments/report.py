"""A comparison as JSON, CSV and Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fedrecplus.experiments.compare import FIGURES, GROUPS, RANKING, Comparison, Summary
from fedrecplus.markdown import markdown_table

HEADINGS = ("algorithm", "MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "p", "rounds", "seconds", "KB up", "KB down")
PAIRED_HEADINGS = ("algorithm", "RMSE, 95 % interval", "mean difference", "clients", "p")
GROUP_HEADINGS = ("RMSE of", "few ratings", "tail items", "worst tenth")
RANKING_HEADINGS = ("ranking", "NDCG@10", "HR@10", "recall@10")
_ROW = ("dataset", "algorithm", "fold", "seed", *FIGURES, *(f"{group}_rmse" for group in GROUPS), *RANKING)


def to_json(comparisons: Sequence[Comparison], made: dict[str, Any] | None = None) -> dict[str, Any]:
    """``rows`` one per algorithm and fold; trivial predictors and published figures stand apart.

    ``made`` says where the whole comes from; every row says it of itself, since a resumed comparison has older ones.
    """
    return {
        "rows": [row for comparison in comparisons for row in comparison.rows],
        "trivial": [row for comparison in comparisons for row in comparison.trivial],
        "summary": [summary.to_dict() for comparison in comparisons for summary in comparison.summaries],
        "published": [asdict(row) for comparison in comparisons for row in comparison.published],
        "made": made,
    }


def to_csv(comparisons: Sequence[Comparison]) -> str:
    """A line per algorithm and fold, trivial predictors included."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _ROW, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for comparison in comparisons:
        writer.writerows(_flat(row) for row in [*comparison.trivial, *comparison.rows])
    return text.getvalue()


def to_markdown(comparisons: Sequence[Comparison]) -> str:
    """A table per data set, published figures below one's own."""
    parts: list[str] = []
    for comparison in comparisons:
        summaries = comparison.summaries
        rows = [*map(cells, summaries), *published_cells(comparison)]
        parts += [
            f"## {comparison.dataset}\n",
            markdown_table(HEADINGS, rows),
            markdown_table(PAIRED_HEADINGS, [*map(paired_cells, summaries)]),
            markdown_table(GROUP_HEADINGS, [*map(group_cells, summaries)]),
            markdown_table(RANKING_HEADINGS, [*map(ranking_cells, summaries)]),
        ]
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


def paired_cells(summary: Summary) -> list[str]:
    """One row of the table of tests; a difference is a client's RMSE less the baseline's, negative where better."""
    rmse, test = summary.figures["rmse"], summary.test
    found = ["", "", "baseline"] if test is None else [f"{test.difference:+.4f}", f"{test.clients:,}", f"{test.p:.2g}"]
    return [summary.algorithm, f"{rmse.low:.4f} – {rmse.high:.4f}", *found]


def group_cells(summary: Summary) -> list[str]:
    """One row of the table of groups."""
    return [summary.algorithm, *(str(spread) if spread else "–" for spread in summary.groups.values())]


def ranking_cells(summary: Summary) -> list[str]:
    """One row of the table of ranking metrics."""
    return [summary.algorithm, *map(str, summary.ranking.values())]


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


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its groups and ranking metrics beside the other figures."""
    return {**row, **{f"{group}_rmse": row["groups"][group]["rmse"] for group in GROUPS}, **row["ranking"]}
