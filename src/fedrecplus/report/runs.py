"""Run folders: which of them are runs of one thing on several folds, and what they came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrecplus.experiments.statistics import spread
from fedrecplus.report.elements import Section, paragraph, table
from fedrecplus.report.origins import made_of_runs

_MOST_NAMED = 3
"""so many differing settings make a name; with more, the folder is clearer"""
Run = dict[str, Any]


def runs_section(runs: Sequence[Run], comparisons: Sequence[dict[str, Any]]) -> Section | None:
    """The errors of runs that are in no comparison of this page; None where there is none."""
    compared = {_identity(row) for content in comparisons for row in content["rows"]}
    own = [run for run in runs if _identity(run["result"]) not in compared]
    if not own:
        return None
    headings = ["run", "data", "folds", "MAE", "RMSE", "NMSE", "rounds", "seconds", "KB up per client and round"]
    rows = [_row(name, group) for name, group in grouped(own).items()]
    parts = [
        paragraph(
            "Mean ± standard deviation over folds. A run without test ratings has the error on what it was trained on,",
            "where it is known, marked (fit).",
        ),
        table(headings, rows),
        origin(own),
    ]
    return Section("runs", "Runs", parts)


def origin(runs: Sequence[Run]) -> str:
    """Where the runs come from, and their configs."""
    configs = {f"config of {run['folder']}": run["config"] for run in runs if run["config"]}
    return made_of_runs([run["result"] for run in runs], configs)


def grouped(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that differ in fold and seed alone, under a name that tells them from the others."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(repr((run["result"]["dataset"], _settings(run))), []).append(run)
    firsts = [group[0] for group in groups.values()]
    names = _unique([_name(run, firsts) for run in firsts])
    return dict(zip(names, groups.values(), strict=True))


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("dataset", "algorithm", "fold", "seed", "rmse"))


def _settings(run: Run) -> dict[str, Any]:
    """Setting → value, without the seed."""
    flat: dict[str, Any] = {}
    for name, value in run["result"]["config"].items():
        flat |= {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
    flat.pop("seed", None)
    return flat


def _name(run: Run, others: Sequence[Run]) -> str:
    """The algorithm; what sets it apart from others of that name; the data set where there are several."""
    result, own = run["result"], _settings(run)
    alike = [_settings(other) for other in others if other["result"]["algorithm"] == result["algorithm"]]
    differing = [key for key in own if any(other.get(key) != own[key] for other in alike)]
    name = str(result["algorithm"])
    if len(differing) > _MOST_NAMED:
        name += f" in {run['folder']}"
    elif differing:
        name += f", {', '.join(f'{key}={own[key]}' for key in differing)}"
    several = len({other["result"]["dataset"] for other in others}) > 1
    return f"{name}, {result['dataset']}" if several else name


def _unique(names: Sequence[str]) -> list[str]:
    return [f"{name} ({names[: n + 1].count(name)})" if names.count(name) > 1 else name for n, name in enumerate(names)]


def _row(name: str, runs: Sequence[Run]) -> list[str]:
    results = [run["result"] for run in runs]
    folds = ", ".join("all" if result["fold"] is None else str(result["fold"]) for result in results)
    costs = [spread([float(result[cost]) for result in results]).mean for cost in ("rounds", "seconds")]
    sent = spread([result["bytes_up_per_client_round"] for result in results]).mean / 1000
    errors = [_error(results, figure) for figure in ("mae", "rmse", "nmse")]
    return [name, str(results[0]["dataset"]), folds, *errors, f"{costs[0]:.0f}", f"{costs[1]:.1f}", f"{sent:.1f}"]


def _error(results: Sequence[Mapping[str, Any]], figure: str) -> str:
    tested = [result[figure] for result in results if result[figure] is not None]
    if tested:
        return _shown(tested)
    fitted = [result["fit"][figure] for result in results if result.get("fit") and result["fit"][figure] is not None]
    return f"{_shown(fitted)} (fit)" if fitted else "–"


def _shown(values: Sequence[float]) -> str:
    return str(spread(values)) if len(values) > 1 else f"{values[0]:.4f}"
