"""The paper's figure, its two ideas apart, and any other setting that was varied."""

from __future__ import annotations

from typing import Any

from fedrecplus.report.elements import Section, bullets, paragraph, plot, table
from fedrecplus.report.origins import made

_TITLES = {
    "pseudo-items": "The figure: how many pseudo items",
    "two-by-two": "The two ideas apart: which items, which weights",
    "grid": "Settings varied",
}


def ablation_sections(content: dict[str, Any]) -> list[Section]:
    """A section per study."""
    return [_section(study, content) for study in content["studies"]]


def _section(study: dict[str, Any], content: dict[str, Any]) -> Section:
    about = f"{study['algorithm']} on {study['dataset']}, {study['folds']} folds, mean ± standard deviation."
    parts = [
        paragraph(about, "p: Wilcoxon's signed-rank test over clients against the first row."),
        _plot(study),
        table([*study["vary"], "MAE", "RMSE", "NMSE", "p", "KB up per client and round"], _rows(study)),
        bullets(_says(study)),
        made(content.get("made"), {"config that all rows share": study["config"]}),
    ]
    return Section(study["study"], _TITLES.get(study["study"], study["study"]), parts)


def _rows(study: dict[str, Any]) -> list[list[str]]:
    rows = []
    for cell in study["cells"]:
        figures = [f"{cell[name]['mean']:.4f} ± {cell[name]['sd']:.4f}" for name in ("mae", "rmse", "nmse")]
        test = cell["against_first"]
        kilobytes = f"{cell['bytes_up_per_client_round']['mean'] / 1000:.1f}"
        settings = [str(value) for value in cell["settings"].values()]
        rows.append([*settings, *figures, f"{test['p']:.2g}" if test else "first", kilobytes])
    return rows


def _plot(study: dict[str, Any]) -> str:
    """A line where one setting with numbers is varied, else points: the first setting along x, a trace per rest."""
    first, *rest = study["vary"]
    numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in study["vary"][first])
    traces: dict[str, dict[str, Any]] = {}
    for cell in study["cells"]:
        name = ", ".join(str(cell["settings"][path]) for path in rest) or study["algorithm"]
        trace = traces.setdefault(name, {"type": "scatter", "mode": "lines+markers", "name": name, "x": [], "y": []})
        trace.setdefault("error_y", {"type": "data", "array": []})
        trace["x"].append(cell["settings"][first] if numeric else str(cell["settings"][first]))
        trace["y"].append(cell["rmse"]["mean"])
        trace["error_y"]["array"].append(cell["rmse"]["sd"])
    layout = {
        "xaxis": {"title": {"text": first}, **({} if numeric else {"type": "category"})},
        "yaxis": {"title": {"text": "RMSE"}},
        "showlegend": bool(rest),
    }
    return plot(list(traces.values()), layout, f"RMSE by {' and '.join(study['vary'])}, mean ± sd over folds.")


def _says(study: dict[str, Any]) -> list[str]:
    """What the numbers say, made from them."""
    cells = study["cells"]
    best = min(cells, key=lambda cell: float(cell["rmse"]["mean"]))
    lines = [f"Lowest RMSE: {best['name']}, {best['rmse']['mean']:.4f}."]
    if len(study["vary"]) == 1:
        ends = cells[0], cells[-1]
        change = ends[1]["rmse"]["mean"] - ends[0]["rmse"]["mean"]
        lines.append(f"From {ends[0]['name']} to {ends[1]['name']}, RMSE changes by {change:+.4f}.")
    if study["study"] == "two-by-two" and len(cells) == 4:
        a, b, c, d = (cell["rmse"]["mean"] for cell in cells)
        lines.append(
            f"Similar instead of random items: {c - a:+.4f} with uniform weights, {d - b:+.4f} with Wasserstein."
        )
        lines.append(
            f"Wasserstein instead of uniform weights: {b - a:+.4f} with random items, {d - c:+.4f} with similar."
        )
    return lines
