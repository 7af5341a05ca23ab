"""A study of heterogeneity in words and tables. Every sentence is made from the numbers beside it."""

from __future__ import annotations

import csv
import io
from typing import Any

from fedrecplus.experiments.heterogeneity import REFERENCE, Cell, Study
from fedrecplus.experiments.heterogeneity_scenarios import RULES, SCENARIOS
from fedrecplus.markdown import markdown_table

SIGNIFICANT = 0.05
WORTH_SAYING = 1e-3
"""smaller differences of RMSE are called none, however sure a test is of them"""


def verdict(cell: Cell) -> str:
    """What a rule does against uniform weights: helps, harms, makes no difference, diverges."""
    if cell.rule == REFERENCE:
        return "reference"
    if cell.rmse is None:
        return "diverges"
    if cell.test is None or cell.test.p >= SIGNIFICANT or abs(cell.test.difference) < WORTH_SAYING:
        return "no difference"
    return "helps" if cell.test.difference < 0 else "harms"


def findings(study: Study) -> list[str]:
    """Where Wasserstein weights help and where they don't, and which rule did best, scenario by scenario."""
    return [
        *(_about_rule(study, rule) for rule in study.rules if rule != REFERENCE),
        *_by_scenario(study),
        *_pushes(study),
    ]


def _about_rule(study: Study, rule: str) -> str:
    groups: dict[str, list[str]] = {"helps": [], "no difference": [], "harms": [], "diverges": []}
    for scenario in study.scenarios:
        cell = study.cell(scenario, rule)
        if cell:
            change = f" ({cell.test.difference:+.4f})" if cell.test else ""
            groups[verdict(cell)].append(scenario + (change if verdict(cell) in ("helps", "harms") else ""))
    said = [f"{what}: {', '.join(names)}" for what, names in groups.items() if names]
    return f"{rule} against uniform. {'. '.join(said)}."


def _by_scenario(study: Study) -> list[str]:
    lines = []
    for scenario in study.scenarios:
        ended = [cell for cell in study.cells if cell.scenario == scenario and cell.rmse]
        if not ended:
            lines.append(f"{scenario}: every rule diverged.")
            continue
        best = min(ended, key=_error)
        uniform = study.cell(scenario, REFERENCE)
        beside = f", uniform {_error(uniform):.4f}" if uniform and uniform.rmse and best.rule != REFERENCE else ""
        lines.append(
            f"{scenario} ({SCENARIOS[scenario].summary}): lowest error {best.rule}, {_error(best):.4f}{beside}."
        )
    return lines


def _error(cell: Cell) -> float:
    return cell.rmse.mean if cell.rmse else float("inf")


def _pushes(study: Study) -> list[str]:
    """How far attackers got with their item, and which share of the weight they earned."""
    clean, lines = study.cell("clean", REFERENCE), []
    for scenario in study.scenarios:
        cells = [cell for cell in study.cells if cell.scenario == scenario and cell.rmse]
        if SCENARIOS[scenario].pushes and clean and clean.target_rating:
            rated = {cell.rule: cell.target_rating.mean for cell in cells if cell.target_rating}
            lifts = {rule: rating - clean.target_rating.mean for rule, rating in rated.items()}
            if lifts:  # not where every rule diverged
                lines.append(f"{scenario}: the promoted item is predicted {_ends(lifts, '+.2f')} from clean.")
        earned = {cell.rule: cell.weight_share.mean for cell in cells if cell.weight_share and cell.rule != REFERENCE}
        if earned:
            lines.append(f"{scenario}: {study.share:.0%} of the clients earn {_ends(earned, '.0%')} of the weight.")
    return lines


def _ends(values: dict[str, float], shown: str) -> str:
    """The smallest and the largest, with their rules."""
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return f"{values[low]:{shown}} ({low}) to {values[high]:{shown}} ({high})"


def to_dict(study: Study) -> dict[str, Any]:
    """For JSON."""
    return {
        "kind": "heterogeneity",
        "dataset": study.dataset,
        "algorithm": study.algorithm,
        "share": study.share,
        "folds": study.folds,
        "config": study.config,
        "scenarios": {name: SCENARIOS[name].summary for name in study.scenarios},
        "rules": study.rules,
        "settings": {
            "scenarios": {name: SCENARIOS[name].settings for name in study.scenarios},
            "rules": {name: RULES[name] for name in study.rules},
        },
        "cells": [{**cell.to_dict(), "verdict": verdict(cell)} for cell in study.cells],
        "findings": findings(study),
    }


def table(study: Study) -> tuple[list[str], list[list[str]]]:
    """A row per rule, a column per scenario: RMSE of honest clients, marked where it differs from uniform."""
    marks = {"helps": " ↓", "harms": " ↑"}
    rows = []
    for rule in study.rules:
        cells = [study.cell(scenario, rule) for scenario in study.scenarios]
        shown = [
            "" if c is None else f"{c.rmse.mean:.4f}{marks.get(verdict(c), '')}" if c.rmse else "diverged"
            for c in cells
        ]
        rows.append([rule, *shown])
    return ["rule", *study.scenarios], rows


def to_csv(study: Study) -> str:
    """A line per scenario and rule."""
    text = io.StringIO()
    names = ["scenario", "rule", "rmse", "rmse_affected", "target_rating", "weight_share", "difference", "p", "verdict"]
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for cell in study.cells:
        row: dict[str, Any] = {"scenario": cell.scenario, "rule": cell.rule, "verdict": verdict(cell)}
        for name in names[2:6]:
            value = getattr(cell, name)
            row[name] = value.mean if value else ""
        row |= {"difference": cell.test.difference, "p": cell.test.p} if cell.test else {}
        writer.writerow(row)
    return text.getvalue()


def to_markdown(study: Study) -> str:
    """The table and what it says."""
    headings, rows = table(study)
    title = f"## heterogeneity: {study.algorithm} on {study.dataset}, RMSE of honest clients"
    said = "".join(f"- {line}\n" for line in findings(study))
    return f"{title}\n\n{markdown_table(headings, rows)}\n{said}"
