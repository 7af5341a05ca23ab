"""Public traits of items, as columns that a person may have a taste for: all items, popular ones, a genre, an era.

The columns are the same for everybody and nothing is trained on them; what a person's taste for each is, the device
finds out by itself, in its private refit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import PredictionSettings
from fedrecplus.protocol import PublicItems
from fedrecplus.similarity import unit_rows

Array = NDArray[np.float64]

_MOST_CONTENT = 32
"""columns of a catalogue at most, the ones that most ratings meet: a refit takes time with the square of the columns"""
_FARTHEST = 3.0
"""standard deviations from the mean that a trait may be: else the rarest items would stand for all of popularity"""
_RIDGE = 1.0
"""rows that say nothing, counted beside the items when rows are foretold: so that few items can't fit many traits"""


def trait_columns(public: PublicItems, settings: PredictionSettings) -> Array:
    """Columns beside V, each times how much it counts; none where the settings ask for none."""
    columns = np.zeros((len(public.popularity), 0))
    if settings.traits > 0:
        columns = np.hstack([columns, settings.traits * _standing(public)])
    if settings.content > 0:
        columns = np.hstack([columns, settings.content * _content(public)])
    return columns


def foretold_rows(V: Array, public: PublicItems, ratings: float) -> Array:
    """The rows that items should have by their traits: a ridge regression of V on these, over all items.

    A row counts as n_i/(n_i + c), c being the ratings that traits are worth: that much of it is more than chance.
    """
    traits = np.hstack([_standing(public), _content(public)])
    weights = public.popularity / (public.popularity + ratings)
    weighted = traits * weights[:, None]
    gram = weighted.T @ traits + _RIDGE * np.eye(traits.shape[1])
    gram[0, 0] -= _RIDGE  # the mean row is free
    rows: Array = traits @ np.linalg.solve(gram, weighted.T @ V)
    return rows


def _standing(public: PublicItems) -> Array:
    """One for every item, how popular it is and, where that is public, how it is liked."""
    counts = public.popularity
    columns = [np.ones(len(counts)), _standardised(np.log1p(counts), counts)]
    if len(public.average):
        columns.append(_standardised(public.average, counts))
    return np.stack(columns, axis=1)


def _content(public: PublicItems) -> Array:
    """The catalogue's features as unit rows."""
    content = unit_rows(public.content)
    met = public.popularity @ content
    most = np.sort(np.argsort(-met, kind="stable")[:_MOST_CONTENT])
    return content[:, most]


def _standardised(values: NDArray[Any], counts: NDArray[Any]) -> Array:
    """Mean 0 and variance 1 over all ratings; zero where all items are the same."""
    weights = counts / max(counts.sum(), 1)
    centred = values - weights @ values
    spread = float(np.sqrt(weights @ centred**2))
    if spread < 1e-9:
        return np.zeros(len(values))
    standardised: Array = np.clip(centred / spread, -_FARTHEST, _FARTHEST)
    return standardised
