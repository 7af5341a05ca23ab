"""A study of heterogeneity in words and tables. Every sentence is made from the numbers beside it."""

from __future__ import annotations

from typing import Any

from fedrecplus.experiments.heterogeneity.study import BASELINE, FIGURES, RULES, SCENARIOS, Study, StudyCell
from fedrecplus.markdown import csv_table, markdown_table

SIGNIFICANT = 0.05
LEAST_DIFFERENCE = 1e-3
"""smaller differences of RMSE are called none, however significant"""


def verdict(cell: StudyCell) -> str:
    """What a rule does against uniform weights: helps, harms, makes no difference, diverges."""
    if cell.rule == BASELINE:
        return "reference"
    if cell.mean() is None:
        return "diverges"
    test = cell.test
    if test is None or test.p >= SIGNIFICANT or abs(test.difference) < LEAST_DIFFERENCE or not test.one_way:
        return "no difference"
    return "helps" if test.difference < 0 else "harms"


def findings(study: Study) -> list[str]:
    """How far attackers got. Where rules help is in the table."""
    return [line for scenario in study.scenarios for line in _attackers(study, scenario)]


def _attackers(study: Study, scenario: str) -> list[str]:
    """How far the promoted item was raised, and which share of the weight attackers got."""
    lines, clean = [], study.cell("clean", BASELINE)
    before, after = clean.mean("target_rating") if clean else None, _means(study, scenario, "target_rating")
    if SCENARIOS[scenario].pushes and before is not None and after:
        change = _extremes({rule: rating - before for rule, rating in after.items()}, "+.2f")
        lines.append(f"{scenario}: the promoted item is predicted {change} from clean.")
    shares = {rule: share for rule, share in _means(study, scenario, "weight_share").items() if rule != BASELINE}
    if shares:
        lines.append(f"{scenario}: {study.share:.0%} of the clients get {_extremes(shares, '.0%')} of the weight.")
    return lines


def _means(study: Study, scenario: str, figure: str) -> dict[str, float]:
    """A figure by rule, of trainings that didn't diverge."""
    cells = [(cell.rule, cell.mean(figure)) for cell in study.cells if cell.scenario == scenario]
    return {rule: value for rule, value in cells if value is not None}


def _extremes(values: dict[str, float], shown: str) -> str:
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return f"{values[low]:{shown}} ({low}) to {values[high]:{shown}} ({high})"


def to_dict(study: Study) -> dict[str, Any]:
    """For JSON."""
    return {
        "kind": "heterogeneity",
        **vars(study),
        "scenarios": {name: SCENARIOS[name].summary for name in study.scenarios},
        "rules": study.rules,
        "settings": {
            "scenarios": {name: SCENARIOS[name].settings for name in study.scenarios},
            "rules": {name: RULES[name] for name in study.rules},
        },
        "cells": [{**cell.to_dict(), "verdict": verdict(cell)} for cell in study.cells],
        "findings": findings(study),
    }


def table(content: dict[str, Any], corner: str = "rule") -> tuple[list[str], list[list[str]]]:
    """From the JSON: a row per rule, a column per scenario, and in how many of them the rule helps and harms.

    Of uniform weights the RMSE of honest clients; of a rule what it changes, in the mean over clients, and its verdict.
    """
    marks = {"helps": " ↓", "harms": " ↑"}
    rows = []
    for rule in content["rules"]:
        own = [cell for cell in content["cells"] if cell["rule"] == rule]
        verdicts = [cell["verdict"] for cell in own]
        counts = ["", ""] if rule == BASELINE else [str(verdicts.count(verdict)) for verdict in marks]
        rows.append([rule, *(_change(cell) + marks.get(cell["verdict"], "") for cell in own), *counts])
    return [corner, *content["scenarios"], *marks], rows


def _change(cell: dict[str, Any]) -> str:
    if cell["rmse"] is None:
        return "diverged"
    test = cell["against_uniform"]
    return f"{cell['rmse']['mean']:.4f}" if test is None else f"{test['difference']:+.4f}"


def to_csv(study: Study) -> str:
    """A line per scenario and rule."""
    rows = [
        {**vars(cell), **{name: cell.mean(name) for name in FIGURES}, **(vars(cell.test) if cell.test else {}),
         "verdict": verdict(cell)}
        for cell in study.cells
    ]  # fmt: skip
    return csv_table(["scenario", "rule", *FIGURES, "difference", "p", "verdict"], rows)


def to_markdown(study: Study) -> str:
    """The table and what it says."""
    title = f"## heterogeneity: {study.algorithm} on {study.dataset}, RMSE of honest clients, and changes of it"
    return f"{title}\n\n{table_and_findings(to_dict(study))}"


def table_and_findings(content: dict[str, Any], corner: str = "rule") -> str:
    """From the JSON, as Markdown."""
    said = "".join(f"- {line}\n" for line in content["findings"])
    return f"{markdown_table(*table(content, corner))}\n{said}"
