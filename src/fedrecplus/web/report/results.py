"""Results of comparisons, and what others print of theirs. The paper's own claims are in ``families``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrecplus.config import dumps, from_tables
from fedrecplus.experiments import LIST_NAMES, FoldMean, Published, published
from fedrecplus.web.report.elements import (
    NAMES,
    Section,
    bullets,
    details,
    figure_axis,
    mean_sd,
    means,
    paragraph,
    plot,
    table,
    text,
)
from fedrecplus.web.report.inputs import made_of_runs

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
    figures = [_at(result, path) for result in results]
    known = [value for value in figures if value is not None]
    return f"{sum(known) / len(known):.4f}" if known else "–"


def _at(result: Any, path: Sequence[str]) -> float | None:
    for name in path:
        result = (result or {}).get(name)
    return None if result is None else float(result)


PAPER_PRESET, OURS = "fedrec+paper", "fedrec+"
_HEADINGS = ("", "MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "p", "NDCG@10")


def results_section(comparisons: Sequence[dict[str, Any]]) -> Section:
    """A table per comparison and data set."""
    parts = [
        paragraph(
            "Mean ± standard deviation over folds, predictions clipped to the scale.",
            "NMSE is Σe²/Σr²; the paper gives no formula for its own.",
            "p: Wilcoxon's signed-rank test over clients, each one's RMSE averaged over folds, against the baseline.",
            "NDCG@10 and its like: every item that a client hasn't rated in training competes, none is sampled.",
        )
    ]
    for content in comparisons:
        for name in dict.fromkeys(row["dataset"] for row in content["summary"]):
            parts += _measured(name, content)
    return Section("results", "Results", parts)


def _measured(name: str, content: dict[str, Any]) -> list[str]:
    ours = [row for row in content["summary"] if row["dataset"] == name]
    runs = [row for row in content["rows"] if row["dataset"] == name]
    named = {f"config of {row['algorithm']}": row["config"] for row in runs}
    configs = {name: dumps(from_tables(config, source=name)) for name, config in named.items()}
    trivial = [row for row in content.get("trivial", []) if row["dataset"] == name]
    blocks = [bullets(_findings(ours)), *_plots(name, ours), made_of_runs([*runs, *trivial], configs)]
    results: dict[str, list[dict[str, Any]]] = {row["algorithm"]: [] for row in ours}
    for row in (*trivial, *runs):
        results.setdefault(row["algorithm"], []).append(row)
    return [f"<h3>{text(name)}</h3>", *_tables(name, ours), breakdown(results, LIST_NAMES), *blocks]


def _tables(name: str, ours: Sequence[dict[str, Any]]) -> list[str]:
    rows = []
    for row in ours:
        test, rmse = row["against_baseline"], row["rmse"]
        interval = "–" if rmse is None else FoldMean(**rmse).interval
        p = f"{test['p']:.2g}" if test else "–" if rmse is None else "baseline"
        errors = mean_sd(row, "mae", "rmse", "nmse")
        rows.append([row["algorithm"], *errors, interval, p, *mean_sd(row.get("ranking", {}), "ndcg@10")])
    others = [[f"{row.system} ({row.source})", *_printed(row)] for row in published(name)]
    return [table(_HEADINGS, rows), *([details("what others report", table(_HEADINGS[:4], others))] if others else [])]


def _printed(row: Published) -> list[str]:
    return [f"{row.mae:.4f}", f"{row.rmse:.4f}", "" if row.nmse is None else f"{row.nmse:.4f}"]


def _findings(ours: Sequence[dict[str, Any]]) -> list[str]:
    """Which presets lose to trivial predictors, and what a preset is not: made from the numbers above."""
    errors = {row["algorithm"]: row["rmse"]["mean"] for row in ours if row["rmse"]}
    lines, trivial = _list_findings(ours), errors.get("bias-only")
    worse = [f"{name} ({rmse:.4f})" for name, rmse in errors.items() if trivial and rmse > trivial]
    if worse:
        lines.append(
            f"Means of people and items alone (bias-only) have an RMSE of {trivial:.4f}, below {', '.join(worse)}."
        )
    if OURS in errors:
        own = f"{PAPER_PRESET} is, with {errors[PAPER_PRESET]:.4f}" if PAPER_PRESET in errors else f"{PAPER_PRESET} is"
        lines.append(
            f"{OURS} ({errors[OURS]:.4f}) is not the paper's algorithm: it trains another model, with public means and "
            f"the catalogue. {own}. Presets differ in many settings, so no difference here speaks for one idea."
        )
    return lines


def _ndcg(ours: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Algorithm → NDCG@10 over folds, where there is one; the global mean's list is the most popular items."""
    names = {row["algorithm"]: LIST_NAMES.get(row["algorithm"], row["algorithm"]) for row in ours}
    by_algorithm = {names[row["algorithm"]]: row.get("ranking", {}).get("ndcg@10") for row in ours}
    return {name: figure for name, figure in by_algorithm.items() if figure is not None}


def _list_findings(ours: Sequence[dict[str, Any]]) -> list[str]:
    """Which lists are worse than the most popular items."""
    ndcg = {name: figure["mean"] for name, figure in _ndcg(ours).items()}
    floor = ndcg.get(LIST_NAMES["global-mean"])
    worse = [f"{name} ({value:.4f})" for name, value in ndcg.items() if floor and value < floor]
    lines = []
    if worse:
        lines.append(f"As a list, the most popular items have an NDCG@10 of {floor:.4f}, above {', '.join(worse)}.")
    if not any(row["rmse"] for row in ours):
        lines.append("All ratings are the same (likes alone), so there is no error to report.")
    return lines


def _plots(name: str, ours: Sequence[dict[str, Any]]) -> list[str]:
    about = f"on {name}, mean ± sd over folds"
    shown = [
        ({row["algorithm"]: row["rmse"] for row in ours if row["rmse"]}, figure_axis("RMSE"), f"RMSE {about}."),
        (_ndcg(ours), figure_axis("NDCG@10", rangemode="tozero"), f"NDCG@10 {about}: more is better."),
    ]
    return [
        plot([means("measured", figures)], {"xaxis": x_axis, "yaxis": NAMES}, caption)
        for figures, x_axis, caption in shown
        if figures
    ]
