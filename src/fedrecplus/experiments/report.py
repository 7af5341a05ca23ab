"""A comparison as JSON, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fedrecplus.experiments.compare import FIGURES, GROUPS, RANKING, Comparison, Summary
from fedrecplus.experiments.statistics import FoldMean
from fedrecplus.experiments.trivial import ADDED, LIST_NAMES, TRIVIAL
from fedrecplus.markdown import csv_table, markdown_table

SPARE = ("NMSE", "RMSE, 95 % interval", "p")
"""columns of the first table that a narrow terminal goes without: the second table has them"""
_ROW = ("dataset", "algorithm", "fold", "seed", *FIGURES, *(f"{group}_rmse" for group in GROUPS), *RANKING)
_SHOWN = ("ndcg@10", "hr@10", "recall@10", "coverage@10")
_ALSO_SHOWN = ("map@10", "mrr@10", "popularity@10")
_LISTS = ("lists", "MAP@10", "MRR@10", "popularity", "few ratings", "many", "tail items", "difference", "p")
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
        "splits": {comparison.dataset: comparison.split for comparison in comparisons},
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
        empty = [""] * (len(headings) - 5)
        others = [[*row[:3], "", row[3], *empty] for row in published_table(comparison)[1]]
        parts += [f"## {comparison.title}\n", markdown_table(headings, rows + others)]
        parts += [markdown_table(*table) for table in details_tables(comparison)]
    return "\n".join(parts)


def errors_table(comparison: Comparison) -> Table:
    """A row per algorithm: errors and costs, means ± standard deviations over folds."""
    headings = ("algorithm", "MAE", "RMSE", "NDCG@10", *SPARE, "rounds", "seconds", "KB up", "KB down")
    rows = []
    for summary in comparison.summaries:
        mae, rmse, nmse, *costs = (summary.figures[name] for name in FIGURES)
        figures = [mae, rmse, summary.ranking["ndcg@10"], nmse]
        rounds, seconds, up, down = (cost.mean if cost else 0.0 for cost in costs)
        ends = [f"{rounds:.0f}", f"{seconds:.1f}", f"{up / 1000:.1f}", f"{down / 1000:.1f}"]
        rows.append([summary.algorithm, *map(_cell, figures), *_test_cells(summary), *ends])
    return headings, rows


def notes(comparison: Comparison) -> list[str]:
    """What a reader must know to read the tables: rows that nobody asked for, and errors that mean nothing."""
    asked = list(dict.fromkeys(row["algorithm"] for row in comparison.rows))
    added = [name for name in ADDED if name not in asked]
    lines = []
    if added:
        names = " and ".join(added)
        lines.append(f"{names} {'are' if len(added) > 1 else 'is'} added to every comparison: a floor to beat")
    if "global-mean" in {summary.algorithm for summary in comparison.summaries}:
        lines.append("as a list, global-mean is the most popular items")
    ndcg = {summary.algorithm: summary.ranking["ndcg@10"] for summary in comparison.summaries}
    floor = ndcg.get("global-mean")
    worse = [name for name in asked if (found := ndcg[name]) and floor and found.mean < floor.mean]
    if worse:
        lines.append(f"the most popular items are a better list than those of {', '.join(worse)}")
    errors = {summary.algorithm: summary.figures["rmse"] for summary in comparison.summaries}
    biases = errors.get("bias-only")
    trained = [name for name in asked if name not in TRIVIAL]
    lost = [name for name in trained if biases and (own := errors[name]) and own.mean > biases.mean]
    if lost:
        lines.append(f"bias-only, which knows means alone, predicts ratings better than {', '.join(lost)}")
    if _is_of_likes(comparison):
        counts = "there is no rating to predict, so NDCG@10 is what counts, and p is of it"
        lines.append(f"all ratings are the same (likes alone): {counts}")
    return lines


def _is_of_likes(comparison: Comparison) -> bool:
    return all(row["rmse"] is None for row in comparison.rows)


def _cell(figure: FoldMean | None) -> str:
    return "–" if figure is None else str(figure)


def _test_cells(summary: Summary) -> list[str]:
    """The interval of the RMSE, and p; of likes alone, p is that of NDCG@10."""
    rmse = summary.figures["rmse"]
    test = summary.list_test if rmse is None else summary.test
    return ["–" if rmse is None else rmse.interval, "baseline" if test is None else f"{test.p:.2g}"]


def details_tables(comparison: Comparison) -> list[Table]:
    """Tests, groups and ranking measures.

    A difference is a client's RMSE less the baseline's, negative where better; of NDCG@10, positive where better.
    """
    tests, groups, ranking, lists = [], [], [], []
    for summary in comparison.summaries:
        test, name = summary.test, LIST_NAMES.get(summary.algorithm, summary.algorithm)
        interval, p = _test_cells(summary)
        found = [f"{test.difference:+.4f}", f"{test.clients:,}"] if test else ["", ""]
        tests.append([summary.algorithm, _cell(summary.figures["nmse"]), interval, *found, p])
        groups.append([summary.algorithm, *map(_cell, summary.groups.values())])
        ranking.append([name, *(_cell(summary.ranking[figure]) for figure in _SHOWN)])
        judged = summary.list_test
        found = [f"{judged.difference:+.4f}", f"{judged.p:.2g}"] if judged else ["", "baseline"]
        means = [summary.ranking[figure] for figure in _ALSO_SHOWN]
        short = ["–" if mean is None else f"{mean.mean:.4f}" for mean in (*means, *summary.ranking_groups.values())]
        lists.append([name, *short, *found])
    errors: list[Table] = [
        (("algorithm", *SPARE[:2], "mean difference", "clients", "p"), tests),
        (("RMSE of", "few ratings", "tail items", "worst tenth"), groups),
    ]
    return [
        *([] if _is_of_likes(comparison) else errors),
        (("ranking", "NDCG@10", "HR@10", "recall@10", "coverage@10"), ranking),
        (_LISTS, lists),
    ]


def published_table(comparison: Comparison) -> Table:
    """What others report."""
    rows = [
        [f"{row.system} ({row.source})", *("" if x is None else f"{x:.4f}" for x in (row.mae, row.rmse, row.nmse))]
        for row in comparison.published
    ]
    return ("published", "MAE", "RMSE", "NMSE"), rows
