"""What a setting is worth: the same training with it varied, on the same folds."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, assign, change, check, dumps
from fedrecplus.data import Ratings, folds
from fedrecplus.errors import UserError
from fedrecplus.experiments.jobs import Bench, Job, Outcome, run_jobs
from fedrecplus.experiments.statistics import PairedTest, Spread, mean_over_folds, paired_test, spread
from fedrecplus.training import Progress
from fedrecplus.training.progress import silent
from fedrecplus.workers import Stop

FIGURES = ("mae", "rmse", "nmse", "rounds", "seconds", "bytes_up_per_client_round")
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
    figures: dict[str, Spread]
    rows: list[dict[str, Any]]
    """one per fold, as in ``result.json``"""
    test: PairedTest | None
    """against the first cell; None for that one"""

    @property
    def name(self) -> str:
        """The choice in a line."""
        return label(self.settings)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        figures = {name: value.to_dict() for name, value in self.figures.items()}
        against = self.test.to_dict() if self.test else None
        return {"settings": self.settings, "name": self.name, **figures, "against_first": against, "rows": self.rows}


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
        head = {"kind": "ablation", "study": self.study, "dataset": self.dataset, "algorithm": self.algorithm}
        cells = [cell.to_dict() for cell in self.cells]
        return {**head, "vary": self.vary, "folds": self.folds, "config": self.config, "cells": cells}


def label(settings: Mapping[str, Any]) -> str:
    """Settings in a line.

    >>> label({"pseudo_items.ratio": 0.5, "aggregation.rule": "uniform"})
    'pseudo_items.ratio=0.5, aggregation.rule=uniform'
    """
    return ", ".join(f"{path}={value}" for path, value in settings.items())


def parse_vary(texts: Sequence[str], config: Config) -> Vary:
    """``part.option=v1,v2`` texts as setting → values, each read as the setting's type.

    >>> parse_vary(["pseudo_items.ratio=0.5,1"], Config())
    {'pseudo_items.ratio': [0.5, 1.0]}
    """
    vary: Vary = {}
    for text in texts:
        path, equals, values = text.partition("=")
        path = path.strip()
        if not equals or not values.strip(", "):
            raise UserError(f"--vary {text!r} names no values", "write --vary part.option=value,value")
        if path in vary:
            raise UserError(f"{path} is varied twice", "give all its values in one --vary")
        given = [value.strip() for value in values.split(",") if value.strip()]
        vary[path] = list(dict.fromkeys(_value(change(config, path, value, "--vary"), path) for value in given))
    return vary


def _value(config: Config, path: str) -> Any:
    section, _, option = path.rpartition(".")
    return getattr(getattr(config, section) if section else config, option)


def grid(config: Config, vary: Vary) -> list[tuple[dict[str, Any], Config]]:
    """Every combination of the values, with its config."""
    cells = []
    for values in itertools.product(*vary.values()):
        settings = dict(zip(vary, values, strict=True))
        changed = config
        for path, value in settings.items():
            changed = change(changed, path, value)
        cells.append((settings, check(changed)))
    return cells


def ablate(
    ratings: Ratings,
    config: Config,
    vary: Sequence[str],
    *,
    study: str = "grid",
    folds_count: int = 5,
    workers: int = 0,
    out: str | Path | None = None,
    progress: Callable[[Job], Progress] = lambda _: silent,
    done: Callable[[Outcome], None] = lambda _: None,
    stop: Stop = lambda: False,
) -> Ablation:
    """Train every combination of the values in ``vary`` on every fold."""
    values = parse_vary(vary, config)
    if not values:
        raise UserError("nothing is varied", "give --vary part.option=value,value")
    cells = grid(config, values)
    folds(ratings, folds_count, config.seed)  # a wrong number of folds is found before anything is trained
    jobs = [
        Job(label(settings), fold, changed, Path(out) / _folder(settings) / f"fold-{fold}" if out else None)
        for fold in range(folds_count)
        for settings, changed in cells
    ]
    outcomes: dict[tuple[str, int], Outcome] = {}
    for outcome in run_jobs(Bench(ratings, folds_count), jobs, workers, progress, stop):
        outcomes[outcome.job.algorithm, outcome.job.fold] = outcome
        done(outcome)
    by_cell = [[outcomes[label(settings), fold] for fold in range(folds_count)] for settings, _ in cells]
    found = [_cell(settings, own, by_cell[0]) for (settings, _), own in zip(cells, by_cell, strict=True)]
    return Ablation(study, ratings.name, config.algorithm, values, folds_count, dumps(config), found)


def _folder(settings: Mapping[str, Any]) -> str:
    return "-".join(f"{path.rpartition('.')[2]}={value}" for path, value in settings.items())


def _cell(settings: dict[str, Any], own: list[Outcome], first: list[Outcome]) -> Cell:
    rows = [outcome.row for outcome in own]
    figures = {figure: spread([row[figure] for row in rows]) for figure in FIGURES}
    if own is first:
        return Cell(settings, figures, rows, None)
    errors = [mean_over_folds([outcome.client_rmse for outcome in some]) for some in (own, first)]
    return Cell(settings, figures, rows, paired_test(errors[0], errors[1], first[0].job.algorithm))


def study_of(name: str, config: Config) -> tuple[Config, tuple[str, ...]]:
    """A study by name: what it starts from and what it varies. Where a preset has no pseudo items, similar ones come
    in, since both studies are about them."""
    if config.trainer != "federated":
        raise UserError(f"{config.algorithm} trains in one place: it uploads nothing", "name a federated preset")
    if config.pseudo_items.rule == "none":
        config = assign(config, ["pseudo_items.rule=similar"])
    return config, STUDIES[name]
