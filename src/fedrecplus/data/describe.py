"""A set of ratings in a few figures."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from fedrecplus.data.load import RatingsLike, load
from fedrecplus.data.ratings import Ratings

_FIRST_DATE, _LAST_DATE = 300_000_000, 4_000_000_000
"""seconds since 1970 that are taken for a date: of 1979 to 2096"""
_QUANTILES = {"least": 0.0, "quarter": 0.25, "median": 0.5, "three quarters": 0.75, "most": 1.0}


def describe(ratings: RatingsLike) -> dict[str, Any]:
    """Size, scale, histogram and skew, as plain numbers that JSON takes.

    ``histogram`` maps each rating that occurs to how often; ``activity`` are quantiles of ratings per client;
    ``top_decile_share`` is the share of all ratings that goes to the most popular tenth of the items; ``times`` are the
    first and the last, None where no column of times was found.
    """
    ratings = load(ratings)
    activity = np.diff(ratings.indptr)
    counts = np.bincount(ratings.codes, minlength=ratings.scale.levels)
    levels = ratings.scale.values(np.arange(ratings.scale.levels))
    return {
        "name": ratings.name,
        "clients": ratings.clients,
        "items": ratings.item_count,
        "ratings": len(ratings),
        "density": len(ratings) / (ratings.clients * ratings.item_count),
        "scale": str(ratings.scale),
        "levels": ratings.scale.levels,
        "mean": float(levels @ counts / len(ratings)),
        "histogram": {f"{level:g}": int(count) for level, count in zip(levels, counts, strict=True) if count},
        "activity": {name: float(np.quantile(activity, share)) for name, share in _QUANTILES.items()},
        "mean_activity": float(activity.mean()),
        "top_decile_share": _top_decile_share(ratings),
        "metadata": _metadata(ratings),
        "times": _times(ratings),
    }


def _top_decile_share(ratings: Ratings) -> float:
    popularity = np.sort(ratings.item_counts())[::-1]
    return float(popularity[: max(1, len(popularity) // 10)].sum() / popularity.sum())


def _times(ratings: Ratings) -> dict[str, str] | None:
    """The first and the last time, as dates where they are seconds since 1970; None where the data has no times."""
    if ratings.timestamps is None or len(ratings) == 0:
        return None
    ends = {"first": ratings.timestamps.min(), "last": ratings.timestamps.max()}
    return {name: _date(int(time)) for name, time in ends.items()}


def _date(seconds: int) -> str:
    if not _FIRST_DATE <= seconds <= _LAST_DATE:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _metadata(ratings: Ratings) -> dict[str, float]:
    """The share of items of which the title, the year and a genre are known."""
    catalogue = ratings.catalogue
    if catalogue is None:
        return {"titles": 0.0, "years": 0.0, "genres": 0.0}
    return {
        "titles": float(np.mean([bool(title) for title in catalogue.titles])),
        "years": float(np.mean(catalogue.years > 0)),
        "genres": float(np.mean(catalogue.genres.any(axis=1))),
    }
