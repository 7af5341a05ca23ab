"""Content features for encoders."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data.catalogue import Catalogue


def content_features(catalogue: Catalogue | None, items: int) -> NDArray[np.float64]:
    """The catalogue's features; no columns where there is no catalogue."""
    return np.zeros((items, 0)) if catalogue is None else catalogue.features()
