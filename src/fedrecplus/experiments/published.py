"""What others report for the same data and protocol: shown below one's own table."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Published:
    """One system's figures on one data set: random five-fold cross-validation, 80/20."""

    system: str
    dataset: str
    mae: float
    rmse: float
    nmse: float | None
    """None where the source doesn't give it"""
    source: str
    """who reports it; ``computed`` for trivial predictors that need no source"""


def published(dataset: str) -> list[Published]:
    """The published figures for a data set, in the order of ``published.csv``; none for data nobody published on.

    >>> best = min(published("ml-100k"), key=lambda row: row.rmse)
    >>> best.system, best.rmse, best.source
    ('FedRec SVD++, hybrid filling, ρ=1', 0.9185, 'logs in GitHub Guanyu-Lin/FedRec')
    >>> published("my-ratings.csv")
    []

    Ours: absolute numbers of the FedRec+ paper are below trivial predictors, so a table needs the others beside them.
    """
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    rows = [row for row in csv.DictReader(text.splitlines()) if row["dataset"] == dataset]
    return [
        Published(row["system"], dataset, float(row["mae"]), float(row["rmse"]), _or_none(row["nmse"]), row["source"])
        for row in rows
    ]


def _or_none(text: str) -> float | None:
    return float(text) if text else None
