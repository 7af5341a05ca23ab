"""What stands behind one error and one NDCG: every ranking measure, and figures by group of clients and items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrecplus.web.report.elements import details, table

_MEASURES = ("ndcg@10", "recall@10", "precision@10", "hr@10", "map@10", "mrr@10", "coverage@10", "popularity@10")
_LIST_GROUPS = {"few_ratings": "few ratings", "many_ratings": "many ratings", "tail_items": "tail items"}
_ERROR_GROUPS = {"few_ratings": "few ratings", "tail_items": "tail items", "worst_tenth": "worst tenth"}
_ERRORS = {"rmse": "RMSE", "mae": "MAE"}
Results = Sequence[Mapping[str, Any]]
"""``result.json`` of every fold"""


def breakdown(named: Mapping[str, Results], list_names: Mapping[str, str] | None = None) -> str:
    """Tables that a reader may open, means over folds; nothing where no result has any of it.

    ``list_names`` are other names for lists: that of ``global-mean`` is the most popular items.
    """
    lists: list[tuple[str, ...]] = [("ranking", name) for name in _MEASURES]
    lists += [("ranking", "groups", group, "ndcg@10") for group in _LIST_GROUPS]
    headings = [*(name.replace("ndcg", "NDCG") for name in _MEASURES)]
    headings += [f"NDCG@10, {name}" for name in _LIST_GROUPS.values()]
    errors = [("groups", group, error) for error in _ERRORS for group in _ERROR_GROUPS]
    of_errors = [f"{error}, {name}" for error in _ERRORS.values() for name in _ERROR_GROUPS.values()]
    renamed = {(list_names or {}).get(name, name): results for name, results in named.items()}
    parts = [_table(renamed, headings, lists), _table(named, of_errors, errors)]
    return details("ranking measures, and figures by group", *parts) if any(parts) else ""


def _table(named: Mapping[str, Results], headings: Sequence[str], paths: Sequence[tuple[str, ...]]) -> str:
    rows = [[name, *(_mean(results, path) for path in paths)] for name, results in named.items()]
    known = [row for row in rows if set(row[1:]) != {"–"}]
    return table(["", *headings], known) if known else ""


def _mean(results: Results, path: Sequence[str]) -> str:
    found = [_at(result, path) for result in results]
    known = [value for value in found if value is not None]
    return f"{sum(known) / len(known):.4f}" if known else "–"


def _at(result: Any, path: Sequence[str]) -> float | None:
    for name in path:
        result = (result or {}).get(name)
    return None if result is None else float(result)
