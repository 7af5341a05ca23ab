"""Boosted trees in the place of the logistic regression: scikit-learn's, imported where they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.errors import UserError

Array = NDArray[np.float64]
_TREES, _RATE, _LEAVES, _FEWEST = 150, 0.06, 12, 60


def fit(X: Array, y: NDArray[np.bool_], known: Array) -> Any:
    """Trees over all inputs and the log odds that are known beforehand."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ImportError:
        raise UserError(
            "boosted trees need scikit-learn, which is not installed", "pip install scikit-learn, or learner=logistic"
        ) from None
    trees = HistGradientBoostingClassifier(
        max_iter=_TREES, learning_rate=_RATE, max_leaf_nodes=_LEAVES, min_samples_leaf=_FEWEST, l2_regularization=5.0,
        early_stopping=False, random_state=0,
    )  # fmt: skip
    return trees.fit(np.column_stack([X, known]), y)


def log_odds(trees: Any, X: Array, known: Array) -> Array:
    """What the trees say of rows, the known log odds included."""
    return np.asarray(trees.decision_function(np.column_stack([X, known])), dtype=np.float64)
