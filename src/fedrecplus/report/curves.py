"""Learning curves, and how long it takes to be so good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.report.elements import Section, plot, table
from fedrecplus.report.origins import made_of_runs

_NEAR = 1.005
"""near its best: within half a per cent"""


def curves_section(runs: Sequence[dict[str, Any]]) -> Section | None:
    """RMSE over rounds and seconds, a line per algorithm and data set (mean over folds); None without test errors."""
    groups = _groups(runs)
    if not groups:
        return None
    curves = {name: _curve(own) for name, own in groups.items()}
    rounds = [{**_line(name), "x": curve["round"], "y": curve["rmse"]} for name, curve in curves.items()]
    seconds = [{**_line(name), "x": curve["seconds"], "y": curve["rmse"]} for name, curve in curves.items()]
    y = {"title": {"text": "RMSE on test ratings"}}
    parts = [
        plot(rounds, {"xaxis": {"title": {"text": "round"}}, "yaxis": y}, "Learning curves, mean over folds."),
        plot(
            seconds,
            {"xaxis": {"title": {"text": "seconds of training"}, "type": "log"}, "yaxis": y},
            "Time to accuracy: the same over seconds of rounds, without evaluation.",
        ),
        _time_table(curves),
        _origin([run for own in groups.values() for run in own]),
    ]
    return Section("curves", "Learning curves and time to accuracy", parts)


def _groups(runs: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    sets = {run["result"]["dataset"] for run in runs}
    for run in runs:
        result = run["result"]
        if result["rmse"] is not None and run["metrics"]:
            name = result["algorithm"] if len(sets) == 1 else f"{result['algorithm']}, {result['dataset']}"
            groups.setdefault(name, []).append(run)
    return groups


def _line(name: str) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines", "name": name}


def _curve(runs: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """Means over runs at the rounds that all of them evaluated."""
    by_run = [{line["round"]: line for line in run["metrics"]} for run in runs]
    shared = sorted(set.intersection(*(set(lines) for lines in by_run)))
    names = ("rmse", "seconds", "bytes_up_per_client_round")
    means = {name: [sum(lines[t][name] for lines in by_run) / len(by_run) for t in shared] for name in names}
    return {"round": [float(t) for t in shared], **means}


def _time_table(curves: dict[str, dict[str, list[float]]]) -> str:
    """To within half a per cent of one's own best, and to the worst of these bests, which everybody reaches."""
    shared = max(min(curve["rmse"]) for curve in curves.values())
    rows = []
    for name, curve in curves.items():
        best = min(curve["rmse"])
        rows.append([name, f"{best:.4f}", *_cost(curve, _NEAR * best), *_cost(curve, shared)])
    what = ("rounds", "seconds", "MB up per client")
    headings = ["algorithm", "best RMSE", *(f"{each} to within 0.5 %" for each in what)]
    headings += [f"{each} to {shared:.4f}" for each in what]
    return table(headings, rows, "What it takes to come near one's own best, and to an error that all reach.")


def _cost(curve: dict[str, list[float]], target: float) -> list[str]:
    place = next(place for place, rmse in enumerate(curve["rmse"]) if rmse <= target)
    sent = curve["bytes_up_per_client_round"][place] * curve["round"][place] / 1e6
    return [f"{curve['round'][place]:.0f}", f"{curve['seconds'][place]:.2f}", f"{sent:.2f}"]


def _origin(runs: Sequence[dict[str, Any]]) -> str:
    results = [run["result"] for run in runs]
    return made_of_runs(results, {f"config of {run['folder']}": run["config"] for run in runs if run["config"]})
