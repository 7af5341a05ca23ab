"""Three columns as they were read, and where each row stands in its file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True)
class Table:
    """Users, items and ratings, a row per rating, unchecked."""

    source: str
    """what errors call the file"""
    users: pl.Series
    items: pl.Series
    ratings: pl.Series
    place: Callable[[int], str]
    """where a row, from 0, stands: ``ratings.csv, line 7``"""
