"""A model from outside with weights for lists: ``reconstruction``, whose lists prefer what is popular."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.parts.model import Model
from fedrecplus.parts.model.reconstruction import POPULARITY, Reconstruction


class Popular(Reconstruction):
    """Half of the rating's weights, and popularity by the number of ratings."""

    scores_lists = True
    list_weight_shares = Model.list_weight_shares

    def list_weights(self, w: Any, X: Any, items: Any, ratings: Any, public: Any, recency: Any = None) -> Any:
        rated = (np.asarray(items) >= 0).sum(axis=-1)
        assert (rated > 0).all(), "asked of nobody without ratings"
        z = 0.5 * np.asarray(w)
        z[..., POPULARITY] += 5.0 * rated
        return z
