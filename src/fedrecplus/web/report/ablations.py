"""Ablations: the pseudo-item ratio, pseudo items × weights, and any other setting that was varied."""

from __future__ import annotations

from typing import Any

from fedrecplus.experiments import ablate
from fedrecplus.web.report.elements import Section, axis, bullets, figure_axis, paragraph, plot, table, trace
from fedrecplus.web.report.inputs import made

_TITLES = {
    "pseudo-items": "Ablation: pseudo-item ratio",
    "two-by-two": "Ablation: pseudo items × aggregation weights",
    "grid": "Ablation: grid of settings",
}


def ablation_sections(content: dict[str, Any]) -> list[Section]:
    """A section per study."""
    return [_section(study, content) for study in content["studies"]]


def _section(study: dict[str, Any], content: dict[str, Any]) -> Section:
    about = f"{study['algorithm']} on {study['dataset']}, {study['folds']} folds, mean ± standard deviation."
    parts = [
        paragraph(about, "p: Wilcoxon's signed-rank test over clients against the first row."),
        _plot(study),
        table(*ablate.table(study), "KB up: of a client in a round."),
        bullets(_findings(study)),
        made(content.get("made"), {"config that all rows share": study["config"]}),
    ]
    return Section(study["study"], _TITLES.get(study["study"], study["study"]), parts)


def _plot(study: dict[str, Any]) -> str:
    """The first setting along x, a trace for each combination of the others."""
    first, *rest = study["vary"]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in study["vary"][first])
    groups: dict[str, list[dict[str, Any]]] = {}
    for cell in study["cells"]:
        name = ", ".join(str(cell["settings"][path]) for path in rest) or study["algorithm"]
        groups.setdefault(name, []).append(cell)
    traces = []
    for name, cells in groups.items():
        x = [cell["settings"][first] if numeric else str(cell["settings"][first]) for cell in cells]
        errors = {"type": "data", "array": [cell["rmse"]["sd"] for cell in cells]}
        traces.append(trace(name, x, [cell["rmse"]["mean"] for cell in cells], "lines+markers", error_y=errors))
    x_axis = axis(first) if numeric else axis(first, type="category")
    layout = {"xaxis": x_axis, "yaxis": figure_axis("RMSE"), "showlegend": bool(rest)}
    return plot(traces, layout, f"RMSE by {' and '.join(study['vary'])}, mean ± sd over folds.")


def _findings(study: dict[str, Any]) -> list[str]:
    """Sentences made from the numbers."""
    cells = study["cells"]
    errors = [cell["rmse"]["mean"] for cell in cells]
    lines = [f"Lowest RMSE: {cells[errors.index(min(errors))]['name']}, {min(errors):.4f}."]
    if len(study["vary"]) == 1:
        change = errors[-1] - errors[0]
        lines.append(f"From {cells[0]['name']} to {cells[-1]['name']}, RMSE changes by {change:+.4f}.")
    if study["study"] == "two-by-two" and len(cells) == 4:
        a, b, c, d = errors
        lines += [
            f"Similar instead of random items: {c - a:+.4f} with uniform weights, {d - b:+.4f} with Wasserstein.",
            f"Wasserstein instead of uniform weights: {b - a:+.4f} with random items, {d - c:+.4f} with similar.",
        ]
    return lines
