"""Learning curves, and how long it takes to be so good."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedrecplus.report.elements import Section, plot, table
from fedrecplus.report.runs import grouped, origin

_MOST_SHOWN = 1.15
"""errors up to so many times the worst of the bests are shown: a start at a wrong scale would flatten all the rest"""
_NEAR = 1.005
"""near its best: within half a per cent"""


def curves_section(runs: Sequence[dict[str, Any]]) -> Section | None:
    """RMSE over rounds and seconds, a line per kind of run (mean over folds); None without test errors."""
    groups = grouped([run for run in runs if run["result"]["rmse"] is not None and run["metrics"]])
    if not groups:
        return None
    curves = {name: _curve(own) for name, own in groups.items()}
    rounds = [{**_line(name), "x": curve["round"], "y": curve["rmse"]} for name, curve in curves.items()]
    seconds = [{**_line(name), "x": curve["seconds"], "y": curve["rmse"]} for name, curve in curves.items()]
    y, cut = _errors_axis(list(curves.values()))
    parts = [
        plot(rounds, {"xaxis": {"title": {"text": "round"}}, "yaxis": y}, f"Learning curves, mean over folds.{cut}"),
        plot(
            seconds,
            {"xaxis": {"title": {"text": "seconds of training"}, "type": "log"}, "yaxis": y},
            f"Time to accuracy: the same over seconds of rounds, without evaluation.{cut}",
        ),
        _time_table(curves),
        origin([run for own in groups.values() for run in own]),
    ]
    return Section("curves", "Learning curves and time to accuracy", parts)


def _errors_axis(curves: Sequence[dict[str, list[float]]]) -> tuple[dict[str, Any], str]:
    """The axis of errors, and what the caption says where the beginning of a training lies above it."""
    axis: dict[str, Any] = {"title": {"text": "RMSE on test ratings"}}
    bests, highest = [min(curve["rmse"]) for curve in curves], max(max(curve["rmse"]) for curve in curves)
    top = _MOST_SHOWN * max(bests)
    if highest <= top:
        return axis, ""
    room = 0.05 * (top - min(bests))
    return {**axis, "range": [min(bests) - room, top]}, f" Errors above {top:.2f} are cut off; double-click for all."


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
