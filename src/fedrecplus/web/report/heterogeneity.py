"""Aggregation rules side by side where clients are heterogeneous, faulty or malicious."""

from __future__ import annotations

import tomllib
from typing import Any

from fedrecplus.experiments.heterogeneity import tables
from fedrecplus.web.report.elements import Section, axis, bullets, figure_axis, heatmap, paragraph, plot, table, trace
from fedrecplus.web.report.inputs import made

_EPOCHS = "model.local_epochs="
_FULL_COLOUR = 0.02
"""differences of RMSE beyond this have the full colour"""


def heterogeneity_section(content: dict[str, Any]) -> Section:
    """Errors by scenario and rule, drift over local epochs, and how far attackers got."""
    grid = _Grid(content)
    changed = content.get("settings", {})
    settings = {
        f"settings of {kind}": "".join(f"{name}: {', '.join(own) or 'none'}\n" for name, own in changed[kind].items())
        for kind in changed
    }
    parts = [
        paragraph(
            f"{content['algorithm']} on {content['dataset']}, {content['folds']} of 5 folds;",
            f"where clients are affected, it is {content['share']:.0%} of them.",
            "Errors are those of honest, unaffected clients on clean test ratings.",
            "Coloured cells differ from uniform weights: p < 0.05 over clients and at least 0.001.",
        ),
        bullets([f"{name}: {summary}." for name, summary in content["scenarios"].items()]),
        _errors(content),
        _map(grid),
        _drift(content, grid),
        _attackers(grid),
        bullets(content["findings"]),
        made(content.get("made"), {"config that all cells share": content["config"], **settings}),
    ]
    return Section("heterogeneity", "Heterogeneity and robustness", parts)


class _Grid:
    """Cells by scenario and rule."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.scenarios, self.rules = list(content["scenarios"]), list(content["rules"])
        self.cells = {(cell["scenario"], cell["rule"]): cell for cell in content["cells"]}

    def value(self, scenario: str, rule: str, name: str = "rmse") -> float | None:
        """A figure's mean; None where the training diverged, or the rule was not tried."""
        cell = self.cells.get((scenario, rule))
        return float(cell[name]["mean"]) if cell and cell[name] else None


def _errors(content: dict[str, Any]) -> str:
    rules, scenarios = list(content["rules"]), list(content["scenarios"])
    colours = {"helps": "helps", "harms": "harms", "diverges": "harms"}
    classes = {
        (rules.index(cell["rule"]), scenarios.index(cell["scenario"]) + 1): colours[cell["verdict"]]
        for cell in content["cells"]
        if cell["verdict"] in colours
    }
    return table(
        *tables.table(content, "RMSE"),
        "RMSE under uniform weights, and what rules change of it in the mean over clients; ↓ better, ↑ worse.",
        classes,
    )


def _map(grid: _Grid) -> str:
    """Differences to uniform as colours."""
    shown = [rule for rule in grid.rules if rule != "uniform"]
    pairs = [[(grid.value(each, rule), grid.value(each, "uniform")) for each in grid.scenarios] for rule in shown]
    values = [[None if a is None or b is None else a - b for a, b in row] for row in pairs]
    drawn = heatmap(grid.scenarios, dict(zip(shown, values, strict=True)), "+.4f", _FULL_COLOUR, "RMSE − uniform")
    caption = "RMSE of honest clients less that under uniform weights: blue is better, orange worse."
    return plot(*drawn, caption, height=90 + 34 * len(shown))


def _drift(content: dict[str, Any], grid: _Grid) -> str:
    """Error over local epochs, where at least three were tried; the clean scenario has the preset's own."""
    own = tomllib.loads(content["config"])["model"].get("local_epochs")  # read, not run: rules might be anybody's
    epochs = {"clean": own} if own is not None and "clean" in grid.scenarios else {}
    for scenario, settings in content.get("settings", {}).get("scenarios", {}).items():
        for each in settings:
            if each.startswith(_EPOCHS):
                epochs[scenario] = int(each.removeprefix(_EPOCHS))
    x = sorted(epochs.values())
    if len(set(x)) < 3:
        return ""
    order = sorted(epochs, key=lambda scenario: epochs[scenario])
    traces = [trace(rule, x, [grid.value(name, rule) for name in order], "lines+markers") for rule in grid.rules]
    layout = {"xaxis": axis("K, local epochs", tickvals=sorted(set(x))), "yaxis": figure_axis("RMSE")}
    return plot(traces, layout, "Client drift: RMSE by the number of local epochs.")


def _attackers(grid: _Grid) -> str:
    """How far attackers got: the promoted item's predicted rating, and their share of the weight."""
    pushed = [name for name in grid.scenarios if name in ("clean", "promotion", "copycat-push")]
    weighed = [name for name in grid.scenarios if any(grid.value(name, rule, "weight_share") for rule in grid.rules)]
    if len(pushed) < 2 and not weighed:
        return ""
    columns = [
        *((f"promoted item, {name}", name, "target_rating", ".2f") for name in pushed),
        *((f"attackers' weight, {name}", name, "weight_share", ".0%") for name in weighed),
    ]
    rows = []
    for rule in grid.rules:
        values = [(grid.value(scenario, rule, figure), form) for _, scenario, figure, form in columns]
        rows.append([rule, *("" if value is None else f"{value:{form}}" for value, form in values)])
    caption = "Attackers' success: mean predicted rating of their item, and their share of the weight."
    return table(["rule", *(heading for heading, *_ in columns)], rows, caption)
