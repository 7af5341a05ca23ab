"""A model from outside with weights for lists: ``reconstruction``, whose lists prefer what is popular."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.parts.model.reconstruction import (
    PREDICTS_COLD_ITEMS,
    Settings,
    fold_in,
    item_columns,
    local_training,
    predict,
    start_items,
    start_users,
    tables,
    update_items,
    user_columns,
    user_weights,
)

__all__ = [
    "PREDICTS_COLD_ITEMS", "Settings", "fold_in", "item_columns", "list_weights", "local_training", "predict",
    "start_items", "start_users", "tables", "update_items", "user_columns", "user_weights",
]  # fmt: skip

POPULARITY = 2
"""column of X"""


def list_weights(w: Any, X: Any, items: Any, ratings: Any, settings: Any, public: Any) -> Any:
    """Half of the rating's weights, and popularity by the number of ratings."""
    assert len(items) > 0, "asked of nobody without ratings"
    z = 0.5 * np.asarray(w)
    z[POPULARITY] += 5.0 * len(items)
    return z
