"""CUDA kernels of ``parts/model/reconstruction.py``: solve for clients' weights, weigh their updates, add them up."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from fedrecplus.engines.cuda.card import DEVICE, Tensor, to_card
from fedrecplus.engines.cuda.model._predicting import predict_solved
from fedrecplus.engines.cuda.model._solving import (
    batches,
    expected_gradients,
    gathered,
    parts_of,
    posterior,
    prior_of,
    wide,
)
from fedrecplus.engines.cuda.ratings import CardRatings, no_pseudo_rows, table_of_rows
from fedrecplus.engines.cuda.round import Cohort, Round
from fedrecplus.engines.cuda.summing import CardSums
from fedrecplus.engines.problem import Problem
from fedrecplus.parts.model.reconstruction import Reconstruction
from fedrecplus.protocol import PublicItems


def train(some: Round) -> tuple[CardSums, Any]:
    """Train these clients and add up their weighted updates; nothing is kept on devices."""
    model = cast(Reconstruction, some.problem.config.model)
    options, message = model.settings, some.message
    columns = model.item_columns(message.V, message.public).astype(message.V.dtype, copy=False)
    prior, X, sums = prior_of(message.public, model, columns), to_card(columns), some.sums()
    for each in batches(some, X.shape[1]):
        rows, used = gathered(X, each.numbers), each.used(options.solve_over)
        found = posterior(rows, each.numbers, each.ratings, used, prior)
        moved = expected_gradients(rows, each.ratings, used, found, options.factors, prior.noise)
        sums.add(each.clients.clients, each.numbers, wide(moved, sums.total.shape[1]), each.rated, each.summed)
    return sums, some.private.U


def solve_weights(
    problem: Problem, public: PublicItems, X: NDArray[Any], ratings: CardRatings, cohort: Cohort
) -> Tensor:
    """Weights for predictions of these clients, solved over their rated rows; the prior's for all others."""
    model = problem.config.model
    return solve_with(X, prior_of(public, model, X), ratings, cohort, model.settings.user_mean)


def solve_with(X: NDArray[Any], prior: Any, ratings: CardRatings, cohort: Cohort, user_mean: float) -> Tensor:
    """Posterior means over rated rows."""
    table, rows = to_card(np.ascontiguousarray(X)), no_pseudo_rows(ratings)
    weights = torch.zeros((len(ratings.indptr) - 1, X.shape[1]), dtype=table.dtype, device=DEVICE)
    weights[:, 0] = 1.0
    weights[:, 1 + prior.first] = user_mean
    for each in cohort.classes:
        for part in parts_of(each, X.shape[1]):
            numbers, given = table_of_rows(rows, part, pseudo=False)
            own = gathered(table, numbers)
            weights[part.clients] = posterior(own, numbers, given, numbers >= 0, prior).weights
    return weights


def predict(some: Round, steps: int, out: Tensor) -> None:
    """Predictions for pseudo items, from weights solved over rated rows; ``steps`` add nothing to a solution."""
    predict_solved(some, solve_weights, out)
