"""Run folders: their errors, and how fast they converge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedrecplus.config import flat
from fedrecplus.experiments import Summary, figure_cell, measure_tables
from fedrecplus.web.report.elements import Section, axis, figure_axis, paragraph, plot, table, trace, unique
from fedrecplus.web.report.inputs import fold_names, made_of_runs
from fedrecplus.web.report.results import breakdown

_MOST_NAMED = 3
"""so many differing settings make a name; with more, the folder is clearer"""
_HEADINGS = (
    *("run", "data", "folds", "MAE", "RMSE", "NMSE", "NDCG@10"),
    *("rounds", "seconds", "KB up per client and round"),
)
_HIGHEST_SHOWN = 1.15
"""times the worst of the best errors: a start at a wrong scale would flatten everything below"""
_NEAR = 1.005
"""times the best error: within half a per cent"""
_DECADE = 10
"""seconds that differ by less have a linear axis: a logarithmic one would have no label to speak of"""
Run = dict[str, Any]
Curve = dict[str, list[float]]


def runs_section(runs: Sequence[Run], comparisons: Sequence[dict[str, Any]]) -> Section | None:
    """The errors of runs that are in no comparison of this page; None where there is none."""
    compared = {_identity(row) for content in comparisons for row in content["rows"]}
    own = [run for run in runs if _identity(run["result"]) not in compared]
    if not own:
        return None
    about = paragraph(
        "Mean ± standard deviation over folds. A run without test ratings has the error on what it was trained on,",
        "where it is known, marked (fit).",
    )
    results = {name: [run["result"] for run in group] for name, group in _grouped(own).items()}
    summaries = [Summary.of(each[0]["dataset"], name, each) for name, each in results.items()]
    rows = [_row(summary, each) for summary, each in zip(summaries, results.values(), strict=True)]
    tested = [summary for summary in summaries if summary.ranking["ndcg@10"]]
    measures = breakdown(measure_tables(tested)) if tested else ""
    return Section("runs", "Runs", [about, table(_HEADINGS, rows), measures, _origin(own)])


def _origin(runs: Sequence[Run]) -> str:
    """Where the runs come from, and their configs."""
    configs = {f"config of {run['folder']}": run["config"] for run in runs if run["config"]}
    return made_of_runs([run["result"] for run in runs], configs)


def _grouped(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that differ in fold and seed alone, under a name that tells them from the others."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(repr((run["result"]["dataset"], _settings(run))), []).append(run)
    firsts = [group[0] for group in groups.values()]
    return dict(zip(unique([_name(run, firsts) for run in firsts], "{} ({})"), groups.values(), strict=True))


def _identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row.get(name) for name in ("dataset", "algorithm", "fold", "seed", "rmse"))


def _settings(run: Run) -> dict[str, Any]:
    """Setting → value, without the seed."""
    return {name: value for name, value in flat(run["result"]["config"]).items() if name != "seed"}


def _name(run: Run, others: Sequence[Run]) -> str:
    """The algorithm; what sets it apart from others of that name; the data set where there are several."""
    result, own = run["result"], _settings(run)
    alike = [_settings(other) for other in others if other["result"]["algorithm"] == result["algorithm"]]
    differing = [f"{key}={own[key]}" for key in own if any(other.get(key) != own[key] for other in alike)]
    name = str(result["algorithm"])
    if differing:
        name += f" in {run['folder']}" if len(differing) > _MOST_NAMED else f", {', '.join(differing)}"
    several = len({other["result"]["dataset"] for other in others}) > 1
    return f"{name}, {result['dataset']}" if several else name


def _row(summary: Summary, results: Sequence[Mapping[str, Any]]) -> list[str]:
    costs = ("rounds", "seconds", "bytes_up_per_client_round")
    rounds, seconds, sent = (sum(result[cost] for result in results) / len(results) for cost in costs)
    fitted = Summary.of(summary.dataset, summary.algorithm, [{**each, **(each.get("fit") or {})} for each in results])
    errors = []
    for name in ("mae", "rmse", "nmse"):
        tested, fit = summary.figures[name], fitted.figures[name]
        errors.append(str(tested) if tested else f"{fit} (fit)" if fit else "–")
    lists, ends = figure_cell(summary.ranking["ndcg@10"]), [f"{rounds:.0f}", f"{seconds:.1f}", f"{sent / 1000:.1f}"]
    return [summary.algorithm, summary.dataset, fold_names(results), *errors, lists, *ends]


def convergence_section(runs: Sequence[Run]) -> Section | None:
    """RMSE over rounds and seconds, a line per kind of run (mean over folds); None without test errors."""
    groups = _grouped([run for run in runs if run["result"]["rmse"] is not None and run["metrics"]])
    if not groups:
        return None
    curves = {name: _curve(own) for name, own in groups.items()}
    rounds, seconds = (
        [trace(name, curve[over], curve["rmse"], "lines+markers") for name, curve in curves.items()]
        for over in ("round", "seconds")
    )
    errors, cut = _error_axis(list(curves.values()))
    times = [second for curve in curves.values() for second in curve["seconds"] if second > 0]
    wide = bool(times) and max(times) >= _DECADE * min(times)
    time = axis("seconds of training", hoverformat=".2f", **({"type": "log"} if wide else {"rangemode": "tozero"}))
    by_round = {"xaxis": axis("round", rangemode="tozero"), "yaxis": errors}
    parts = [
        plot(rounds, by_round, f"Learning curves, mean over folds.{cut}"),
        plot(seconds, {"xaxis": time, "yaxis": errors}, f"Time to accuracy: seconds without evaluation.{cut}"),
        _cost_table(curves),
        _origin([run for own in groups.values() for run in own]),
    ]
    return Section("convergence", "Convergence", parts)


def _error_axis(curves: Sequence[Curve]) -> tuple[dict[str, Any], str]:
    """The axis of errors, and what the caption says where the beginning of a training lies above it."""
    bests, highest = [min(curve["rmse"]) for curve in curves], max(max(curve["rmse"]) for curve in curves)
    top = _HIGHEST_SHOWN * max(bests)
    if highest <= top:
        return figure_axis("RMSE on test ratings"), ""
    shown = figure_axis("RMSE on test ratings", range=[min(bests) - 0.05 * (top - min(bests)), top])
    return shown, f" Errors above {top:.4f} are cut off; double-click for all."


def _curve(runs: Sequence[Run]) -> Curve:
    """Means over runs at the rounds that all of them evaluated."""
    by_run = [{line["round"]: line for line in run["metrics"]} for run in runs]
    shared = sorted(set.intersection(*(set(lines) for lines in by_run)))
    names = ("rmse", "seconds", "bytes_up_per_client_round")
    means = {name: [sum(lines[t][name] for lines in by_run) / len(by_run) for t in shared] for name in names}
    return {"round": [float(t) for t in shared], **means}


def _cost_table(curves: dict[str, Curve]) -> str:
    """To within half a per cent of one's own best, and to the worst of these bests, which everybody reaches."""
    shared = max(min(curve["rmse"]) for curve in curves.values())
    rows = []
    for name, curve in curves.items():
        best = min(curve["rmse"])
        rows.append([name, f"{best:.4f}", *_cost(curve, _NEAR * best), *_cost(curve, shared)])
    targets = ("within 0.5 %", f"{shared:.4f}")
    costs = [f"{what} to {target}" for target in targets for what in ("rounds", "seconds", "MB up per client")]
    caption = "Cost of coming near one's own best, and of an error that all reach."
    return table(["algorithm", "best RMSE", *costs], rows, caption)


def _cost(curve: Curve, target: float) -> list[str]:
    place = next(place for place, rmse in enumerate(curve["rmse"]) if rmse <= target)
    sent = curve["bytes_up_per_client_round"][place] * curve["round"][place] / 1e6
    return [f"{curve['round'][place]:.0f}", f"{curve['seconds'][place]:.2f}", f"{sent:.2f}"]
