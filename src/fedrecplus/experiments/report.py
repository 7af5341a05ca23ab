"""A comparison as JSON, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fedrecplus.experiments.compare import FIGURES, GROUPS, RANKING, Comparison
from fedrecplus.markdown import csv_table, markdown_table

SPARE = ("RMSE, 95 % interval", "p")
"""columns of the first table that a narrow terminal goes without: the second table has them"""
_ROW = ("dataset", "algorithm", "fold", "seed", *FIGURES, *(f"{group}_rmse" for group in GROUPS), *RANKING)
Table = tuple[Sequence[str], list[list[str]]]
"""headings and rows"""


def to_json(comparisons: Sequence[Comparison], made: dict[str, Any] | None = None) -> dict[str, Any]:
    """``rows`` one per algorithm and fold; trivial predictors and published figures apart.

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
    rows = [row for comparison in comparisons for row in (*comparison.trivial, *comparison.rows)]
    groups = [{f"{group}_rmse": row["groups"][group]["rmse"] for group in GROUPS} for row in rows]
    return csv_table(_ROW, ({**row, **group, **row["ranking"]} for row, group in zip(rows, groups, strict=True)))


def to_markdown(comparisons: Sequence[Comparison]) -> str:
    """All tables of each data set, published figures below one's own."""
    parts: list[str] = []
    for comparison in comparisons:
        headings, rows = errors_table(comparison)
        empty = [""] * (len(headings) - 4)
        others = [[*row, *empty] for row in published_table(comparison)[1]]
        parts += [f"## {comparison.dataset}\n", markdown_table(headings, rows + others)]
        parts += [markdown_table(*table) for table in details_tables(comparison)]
    return "\n".join(parts)


def errors_table(comparison: Comparison) -> Table:
    """A row per algorithm: errors and costs, means ± standard deviations over folds."""
    headings = ("algorithm", "MAE", "RMSE", "NMSE", *SPARE, "rounds", "seconds", "KB up", "KB down")
    rows = []
    for summary in comparison.summaries:
        mae, rmse, nmse, rounds, seconds, up, down = (summary.figures[name] for name in FIGURES)
        p = "baseline" if summary.test is None else f"{summary.test.p:.2g}"
        errors = [str(mae), str(rmse), str(nmse), rmse.interval, p]
        costs = [f"{rounds.mean:.0f}", f"{seconds.mean:.1f}", f"{up.mean / 1000:.1f}", f"{down.mean / 1000:.1f}"]
        rows.append([summary.algorithm, *errors, *costs])
    return headings, rows


def details_tables(comparison: Comparison) -> list[Table]:
    """Tests (a difference is a client's RMSE less the baseline's, negative where better), groups, ranking metrics."""
    tests, groups, ranking = [], [], []
    for summary in comparison.summaries:
        test, interval = summary.test, summary.figures["rmse"].interval
        found = [f"{test.difference:+.4f}", f"{test.clients:,}", f"{test.p:.2g}"] if test else ["", "", "baseline"]
        tests.append([summary.algorithm, interval, *found])
        groups.append([summary.algorithm, *(str(value) if value else "–" for value in summary.groups.values())])
        ranking.append([summary.algorithm, *map(str, summary.ranking.values())])
    return [
        (("algorithm", SPARE[0], "mean difference", "clients", "p"), tests),
        (("RMSE of", "few ratings", "tail items", "worst tenth"), groups),
        (("ranking", "NDCG@10", "HR@10", "recall@10"), ranking),
    ]


def published_table(comparison: Comparison) -> Table:
    """What others report."""
    rows = [
        [f"{row.system} ({row.source})", *("" if x is None else f"{x:.4f}" for x in (row.mae, row.rmse, row.nmse))]
        for row in comparison.published
    ]
    return ("published", "MAE", "RMSE", "NMSE"), rows
