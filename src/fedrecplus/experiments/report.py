"""A comparison as JSON, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from fedrecplus.experiments.comparison import (
    FIGURES,
    GROUPS,
    RANKING,
    SPARE,
    Comparison,
    Table,
    errors_table,
    figure_cell,
    is_of_likes,
    test_cells,
)
from fedrecplus.experiments.trivial import LIST_NAMES
from fedrecplus.markdown import csv_table, markdown_table

_ROW = ("dataset", "algorithm", "fold", "seed", *FIGURES, *(f"{group}_rmse" for group in GROUPS), *RANKING)
_SHOWN = ("ndcg@10", "hr@10", "recall@10", "coverage@10")
_ALSO_SHOWN = ("map@10", "mrr@10", "popularity@10")
_LISTS = ("lists", "MAP@10", "MRR@10", "popularity", "few ratings", "many", "tail items", "difference", "p")


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


def details_tables(comparison: Comparison) -> list[Table]:
    """Tests, groups and ranking measures.

    A difference is a client's RMSE less the baseline's, negative where better; of NDCG@10, positive where better.
    """
    tests, groups, ranking, lists = [], [], [], []
    for summary in comparison.summaries:
        test, name = summary.test, LIST_NAMES.get(summary.algorithm, summary.algorithm)
        interval, p = test_cells(summary)
        found = [f"{test.difference:+.4f}", f"{test.clients:,}"] if test else ["", ""]
        tests.append([summary.algorithm, figure_cell(summary.figures["nmse"]), interval, *found, p])
        groups.append([summary.algorithm, *map(figure_cell, summary.groups.values())])
        ranking.append([name, *(figure_cell(summary.ranking[figure]) for figure in _SHOWN)])
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
        *([] if is_of_likes(comparison) else errors),
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
