"""A second, private U: fitted on the device to the rated items alone, used for predictions, never for an upload."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config.settings import Config
from fedrecplus.model import Shape, prior, typical

Array = NDArray[np.float64]


def refit_prior(V: Array, popularity: NDArray[Any], rating: float, mean: float, settings: Config) -> Array:
    """What refits shrink to, for the whole table V; ``rating`` is the mean of all ratings, one public number."""
    if settings.prediction.shrink_to == "typical":
        return typical(V, popularity, rating, settings.model, mean)
    return prior(settings.model, mean)[0]


def refit(V: Array, ratings: Array, mean: float, settings: Config, U_prior: Array) -> Array:
    """argmin_U Σ (r − U·V)² + (λn + floor)‖U − prior‖² over the n rated rows V, in closed form.

    It needs V and the person's ratings, nothing else, so it is also how a newcomer gets factors without a round of
    training (fold-in). Ours: a U stepped over rated rows alone predicts better, and would give them away if an upload
    came from it.
    """
    shape = Shape.of(settings.model)
    U = U_prior.copy()
    targets = ratings - mean
    if shape.biases:
        U[shape.factors] = 1.0
        targets = targets - V[:, shape.factors]
    X = np.hstack([V[:, : shape.factors], np.ones((len(V), int(shape.biases)))])
    free = shape.u_trained.astype(bool)
    decay = settings.prediction.regularisation * len(V) + settings.prediction.floor
    gram = X.T @ X + max(decay, 1e-9) * np.eye(X.shape[1])
    U[free] = U_prior[free] + np.linalg.solve(gram, X.T @ (targets - X @ U_prior[free]))
    return U
