"""Rules side by side where clients differ, err or lie."""

from __future__ import annotations

from typing import Any

from fedrecplus.config import loads
from fedrecplus.report.elements import Section, bullets, paragraph, plot, table
from fedrecplus.report.origins import made

_EPOCHS = "client.local_epochs="
_MOST_SHOWN = 0.02
"""differences of RMSE beyond this have the full colour"""


def heterogeneity_section(content: dict[str, Any]) -> Section:
    """What the aggregation is for."""
    scenarios, rules = list(content["scenarios"]), content["rules"]
    cells = {(cell["scenario"], cell["rule"]): cell for cell in content["cells"]}
    parts = [
        paragraph(
            f"{content['algorithm']} on {content['dataset']}, {content['folds']} of 5 folds;",
            f"where clients are affected, it is {content['share']:.0%} of them.",
            "Errors are those of honest, unaffected clients on clean test ratings.",
            "Coloured cells differ from uniform weights: p < 0.05 over clients and at least 0.001.",
        ),
        bullets([f"{name}: {summary}." for name, summary in content["scenarios"].items()]),
        _errors(scenarios, rules, cells),
        _map(scenarios, rules, cells),
        _drift(content, rules, cells),
        _attacks(scenarios, rules, cells),
        bullets(content["findings"]),
        made(content.get("made"), {"config that all cells share": content["config"], **_settings(content)}),
    ]
    return Section("heterogeneity", "What the aggregation is for", parts)


def _settings(content: dict[str, Any]) -> dict[str, str]:
    """What rules and scenarios change in the shared config."""
    changed = content.get("settings", {})
    return {
        f"settings of {kind}": "".join(f"{name}: {', '.join(own) or 'none'}\n" for name, own in changed[kind].items())
        for kind in changed
    }


def _errors(scenarios: list[str], rules: list[str], cells: dict[tuple[str, str], Any]) -> str:
    rows, classes = [], {}
    for r, rule in enumerate(rules):
        row = [rule]
        for c, scenario in enumerate(scenarios, start=1):
            cell = cells.get((scenario, rule))
            row.append("" if cell is None else "diverged" if cell["diverged"] else f"{cell['rmse']['mean']:.4f}")
            if cell and cell["verdict"] in ("helps", "harms", "diverges"):
                classes[r, c] = "helps" if cell["verdict"] == "helps" else "harms"
        rows.append(row)
    return table(["RMSE", *scenarios], rows, classes=classes)


def _map(scenarios: list[str], rules: list[str], cells: dict[tuple[str, str], Any]) -> str:
    """Differences to uniform as colours."""
    shown = [rule for rule in rules if rule != "uniform"]
    values = [[_difference(cells, scenario, rule) for scenario in scenarios] for rule in shown]
    labels = [["" if value is None else f"{value:+.3f}" for value in row] for row in values]
    trace = {
        "type": "heatmap", "meta": "diverging", "x": scenarios, "y": shown, "z": values, "text": labels,
        "texttemplate": "%{text}", "zmid": 0, "zmin": -_MOST_SHOWN, "zmax": _MOST_SHOWN, "hoverongaps": False,
        "colorbar": {"title": {"text": "RMSE − uniform"}, "thickness": 12},
    }  # fmt: skip
    layout = {
        "yaxis": {"automargin": True, "autorange": "reversed"},
        "xaxis": {"side": "top", "type": "category", "tickangle": -40},
    }
    caption = "RMSE of honest clients less that under uniform weights: blue is better, orange worse."
    return plot([trace], layout, caption, height=90 + 34 * len(shown))


def _difference(cells: dict[tuple[str, str], Any], scenario: str, rule: str) -> float | None:
    cell, uniform = cells.get((scenario, rule)), cells.get((scenario, "uniform"))
    if not cell or not uniform or cell["diverged"] or uniform["diverged"]:
        return None
    return float(cell["rmse"]["mean"] - uniform["rmse"]["mean"])


def _drift(content: dict[str, Any], rules: list[str], cells: dict[tuple[str, str], Any]) -> str:
    """Error over local epochs, where several of them were tried; the clean scenario has the preset's own."""
    epochs = {"clean": loads(content["config"]).client.local_epochs} if "clean" in content["scenarios"] else {}
    for scenario, settings in content.get("settings", {}).get("scenarios", {}).items():
        for each in settings:
            if each.startswith(_EPOCHS):
                epochs[scenario] = int(each.removeprefix(_EPOCHS))
    if len(set(epochs.values())) < 3:
        return ""
    order = sorted(epochs, key=lambda scenario: epochs[scenario])
    traces = []
    for rule in rules:
        known = [(epochs[name], _value(cells, name, rule, "rmse")) for name in order]
        x, y = zip(*known, strict=True)
        traces.append({"type": "scatter", "mode": "lines+markers", "name": rule, "x": x, "y": y})
    layout = {
        "xaxis": {"title": {"text": "K, local epochs"}, "tickvals": sorted(set(epochs.values()))},
        "yaxis": {"title": {"text": "RMSE"}},
    }
    return plot(traces, layout, "Drift: the more clients train before they upload, the further apart they are.")


def _attacks(scenarios: list[str], rules: list[str], cells: dict[tuple[str, str], Any]) -> str:
    """How far attackers got: the promoted item's predicted rating, and their share of the weight."""
    pushed = [name for name in scenarios if name in ("clean", "promotion", "copycat-push")]
    weighed = [name for name in scenarios if any(_value(cells, name, rule, "weight_share") for rule in rules)]
    if len(pushed) < 2 and not weighed:
        return ""
    headings = [
        "rule",
        *(f"promoted item, {name}" for name in pushed),
        *(f"attackers' weight, {name}" for name in weighed),
    ]
    rows = []
    for rule in rules:
        ratings = [_value(cells, name, rule, "target_rating") for name in pushed]
        shares = [_value(cells, name, rule, "weight_share") for name in weighed]
        shown = ["" if value is None else f"{value:.2f}" for value in ratings]
        rows.append([rule, *shown, *("" if value is None else f"{value:.0%}" for value in shares)])
    return table(
        headings, rows, "How far attackers got: mean predicted rating of their item, and the weight they earned."
    )


def _value(cells: dict[tuple[str, str], Any], scenario: str, rule: str, name: str) -> float | None:
    cell = cells.get((scenario, rule))
    return cell[name]["mean"] if cell and cell[name] else None
