"""What a setting is worth: the same training with it varied, on the same folds."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, assign, change, check, dumps, value_of
from fedrecplus.data import Ratings
from fedrecplus.errors import UserError
from fedrecplus.experiments.comparison import Table
from fedrecplus.experiments.jobs import (
    FIGURES,
    JobOutcome,
    Monitor,
    against,
    cross_validation,
    over_folds,
    require_federation,
    require_ratings,
)
from fedrecplus.experiments.statistics import FoldMean, PairedTest
from fedrecplus.markdown import csv_table, markdown_table

STUDIES: dict[str, tuple[str, ...]] = {
    "pseudo-items": ("pseudo_items.ratio=0.5,1,2,3,5",),
    "two-by-two": ("pseudo_items.rule=random,similar", "aggregation.rule=uniform,wasserstein"),
}
"""the paper's figure, and its two ideas with and without each other"""

Vary = dict[str, list[Any]]


@dataclass(frozen=True)
class Cell:
    """One choice of the varied settings, over all folds."""

    settings: dict[str, Any]
    figures: dict[str, FoldMean]
    rows: list[dict[str, Any]]
    """one per fold, as in ``result.json``"""
    test: PairedTest | None
    """against the first cell; None for that one"""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        figures = {name: asdict(value) for name, value in self.figures.items()}
        test = asdict(self.test) if self.test else None
        head = {"settings": self.settings, "name": label(self.settings)}
        return {**head, **figures, "against_first": test, "rows": self.rows}


@dataclass(frozen=True)
class Ablation:
    """What ``ablate`` found."""

    study: str
    dataset: str
    algorithm: str
    vary: Vary
    folds: int
    config: str
    """the settings that all cells share, as TOML"""
    cells: list[Cell]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"kind": "ablation", **vars(self), "cells": [cell.to_dict() for cell in self.cells]}


def label(settings: Mapping[str, Any]) -> str:
    """Settings in a line.

    >>> label({"pseudo_items.ratio": 0.5, "aggregation.rule": "uniform"})
    'pseudo_items.ratio=0.5, aggregation.rule=uniform'
    """
    return ", ".join(f"{path}={value}" for path, value in settings.items())


def parse_vary(texts: Sequence[str], config: Config) -> Vary:
    """``part.option=v1,v2`` texts as setting → values, each read as the setting's type.

    >>> parse_vary(["model.factors=5,10"], Config())
    {'model.factors': [5, 10]}
    """
    given: dict[str, list[str]] = {}
    for text in texts:
        path, _, values = text.partition("=")
        path = path.strip()
        if path in given:
            raise UserError(f"{path} is varied twice", "give all its values in one --vary")
        given[path] = [value.strip() for value in values.split(",") if value.strip()]
        if not given[path]:
            raise UserError(f"--vary {text!r} names no values", "write --vary part.option=value,value")
    vary: Vary = {}
    for path, values_given in given.items():
        read = [value_of(change(_start(config, given, path), path, value, "--vary"), path) for value in values_given]
        vary[path] = list(dict.fromkeys(read))
    return vary


def _start(config: Config, given: Mapping[str, list[str]], path: str) -> Config:
    """The config in which a value is read: where the rule is varied too, its first value brings the option."""
    rule = f"{path.partition('.')[0]}.rule"
    return change(config, rule, given[rule][0], "--vary") if rule in given and path != rule else config


def grid(config: Config, vary: Vary) -> list[tuple[dict[str, Any], Config]]:
    """Every combination of the values, with its config."""
    cells = []
    for values in itertools.product(*vary.values()):
        settings = dict(zip(vary, values, strict=True))
        cells.append((settings, check(assign(config, [f"{path}={value}" for path, value in settings.items()]))))
    return cells


def ablate(
    ratings: Ratings,
    config: Config,
    vary: Sequence[str],
    *,
    study: str = "grid",
    folds: int = 5,
    workers: int = 0,
    out: str | Path | None = None,
    monitor: Monitor = Monitor(),  # noqa: B008 -- it can't be changed
) -> Ablation:
    """Train every combination of the values in ``vary`` on every fold."""
    require_ratings(ratings)
    values = parse_vary(vary, config)
    if not values:
        raise UserError("nothing is varied", "give --vary part.option=value,value")
    cells = {label(settings): (settings, changed) for settings, changed in grid(config, values)}

    def folder_of(name: str, fold: int) -> Path | None:
        short = "-".join(f"{path.rpartition('.')[2]}={value}" for path, value in cells[name][0].items())
        return Path(out) / short / f"fold-{fold}" if out else None

    configs = {name: changed for name, (_, changed) in cells.items()}
    outcomes = cross_validation(ratings, configs, folds, workers, folder_of, monitor)
    first = next(iter(outcomes.values()))
    cells_of = [_cell(settings, outcomes[name], first) for name, (settings, _) in cells.items()]
    return Ablation(study, ratings.name, config.algorithm, values, folds, dumps(config), cells_of)


def _cell(settings: dict[str, Any], own: list[JobOutcome], first: list[JobOutcome]) -> Cell:
    return Cell(settings, over_folds(own), [outcome.row for outcome in own], against(first, own))


def study_of(name: str, config: Config) -> tuple[Config, tuple[str, ...]]:
    """A study by name: what it starts from and what it varies. Where a preset has no pseudo items, similar ones come
    in, since both studies are about them."""
    require_federation(config)
    if config.pseudo_items.rule == "none":
        config = assign(config, ["pseudo_items.rule=similar"])
    return config, STUDIES[name]


def table(study: Mapping[str, Any]) -> Table:
    """From the JSON: a row per cell."""
    rows = []
    for cell in study["cells"]:
        mae, rmse, nmse, _, seconds, up = (FoldMean(**cell[name]) for name in FIGURES)
        p = f"{cell['against_first']['p']:.2g}" if cell["against_first"] else "first"
        errors = [str(mae), str(rmse), str(nmse), rmse.interval, p]
        rows.append([*map(str, cell["settings"].values()), *errors, f"{seconds.mean:.1f}", f"{up.mean / 1000:.1f}"])
    return [*study["vary"], "MAE", "RMSE", "NMSE", "RMSE, 95 % interval", "p", "seconds", "KB up"], rows


def to_csv(ablation: Ablation) -> str:
    """A line per cell and fold."""
    rows = ({**row, **cell.settings} for cell in ablation.cells for row in cell.rows)
    return csv_table(["dataset", *ablation.vary, "fold", "seed", *FIGURES], rows)


def to_markdown(ablation: Ablation) -> str:
    """The table, with what it is about above it."""
    title = f"## {ablation.study}: {ablation.algorithm} on {ablation.dataset}, {ablation.folds} folds"
    return f"{title}\n\n{markdown_table(*table(ablation.to_dict()))}"
