"""What is publicly known of the items."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_ERAS = 6
_YEAR_WEIGHT = 0.7
_YEAR = re.compile(r"\s*\((\d{4})\s*[-–]?\s*(?:\d{4})?\s*\)\s*(?:\(V\))?\s*$")  # (V): straight to video


@dataclass(frozen=True)
class Catalogue:
    """Row i describes item i. Empty strings, zeros and no genres are unknown."""

    titles: tuple[str, ...]
    years: NDArray[np.int16]
    genres: NDArray[np.bool_]
    """items × genre names"""
    genre_names: tuple[str, ...]

    def features(self) -> NDArray[np.float64]:
        """Content features, items × columns: genres by inverse document frequency, and soft memberships in eras.

        After: Salton and Buckley 1988, tf-idf, since half of all films are dramas.
        """
        genres = self.genres.astype(np.float64)
        idf = np.log((len(genres) + 1.0) / (genres.sum(axis=0) + 1.0))
        return np.hstack([genres * idf, _YEAR_WEIGHT * _eras(self.years.astype(np.float64))])


def _eras(years: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gaussian bumps at quantiles of the known years; no columns where all items are of one year."""
    known = years > 0
    if len(np.unique(years[known])) < 2:
        return np.zeros((len(years), 0))
    centres = np.quantile(years[known], np.linspace(0.0, 1.0, _ERAS))
    width = max((centres[-1] - centres[0]) / _ERAS, 1.0)
    near = np.exp(-0.5 * ((years[:, None] - centres) / width) ** 2)
    return np.where(known[:, None], near, 0.0)


def title_and_year(text: str) -> tuple[str, int]:
    """Split the year off a title; 0 where there is none.

    >>> title_and_year("Toy Story (1995)"), title_and_year("Babylon 5")
    (('Toy Story', 1995), ('Babylon 5', 0))
    """
    year = _YEAR.search(text)
    return (text[: year.start()].strip(), int(year[1])) if year else (text.strip(), 0)
