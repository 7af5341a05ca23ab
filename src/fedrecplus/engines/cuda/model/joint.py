"""CUDA kernels of ``parts/model/joint.py``: both gradients of a client, one weight for both, and their sums."""

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
)
from fedrecplus.engines.cuda.model.ials import add_choices, choice_factors, choice_gradients, choices_of, confidences
from fedrecplus.engines.cuda.ratings import CardRatings, no_pseudo_rows, table_of_rows
from fedrecplus.engines.cuda.round import Cohort, Round
from fedrecplus.engines.cuda.summing import CardSums
from fedrecplus.engines.problem import Problem
from fedrecplus.parts.model.joint import Joint
from fedrecplus.protocol import PublicItems


def train(some: Round) -> tuple[CardSums, Any]:
    """Train these clients and add up their weighted updates and statistics; nothing is kept on devices."""
    model = cast(Joint, some.problem.config.model)
    options = model.settings
    V, W = some.message.V[:, : options.factors], some.message.V[:, options.factors :]
    columns = model.rating_model.item_columns(V, some.message.public).astype(V.dtype, copy=False)
    prior, X = prior_of(some.message.public, model.rating_model, columns), to_card(columns)
    choices = choices_of(W, some.problem, some.message.public)
    sums = some.sums(model.statistic_size)
    for each in batches(some, X.shape[1] + choices.W.shape[1]):
        confidence, used = confidences(some, each, choices), each.used(options.solve_over)
        rows, chosen = gathered(X, each.numbers), gathered(choices.W, each.numbers)
        found = posterior(rows, each.numbers, each.ratings, used, prior)
        of_V = expected_gradients(rows, each.ratings, used, found, options.factors, prior.noise)
        u = choice_factors(chosen, confidence, choices)
        add_choices(sums, each, torch.cat([of_V, choice_gradients(chosen, confidence, u)], dim=2), u)
    return sums, some.private.U


def solve_weights(
    problem: Problem, public: PublicItems, X: NDArray[Any], ratings: CardRatings, cohort: Cohort
) -> Tensor:
    """Weights for ratings of these clients, with a prior mean of V's from what they rated. See ``joint.fold_in``."""
    model = cast(Joint, problem.config.model)
    options = model.settings
    prior, factors = prior_of(public, model.rating_model, X), options.factors
    middle = to_card(model.mean_row(X, public).astype(X.dtype))
    table, rows = to_card(np.ascontiguousarray(X)), no_pseudo_rows(ratings)
    weights = torch.zeros((len(ratings.indptr) - 1, X.shape[1]), dtype=table.dtype, device=DEVICE)
    weights[:, 0] = 1.0
    weights[:, -factors] = options.user_mean
    for each in cohort.classes:
        for part in parts_of(each, X.shape[1]):
            numbers, given = table_of_rows(rows, part, pseudo=False)
            own, there = gathered(table, numbers), numbers >= 0
            count = there.sum(1).to(own.dtype)[:, None]
            V = own[:, :, -factors:]
            lean = options.choice_prior * (V.sum(1) - count * middle) / torch.sqrt(count)
            given = given - torch.bmm(V, lean[:, :, None]).squeeze(2)
            found = posterior(own, numbers, given, there, prior).weights
            found[:, -factors:] += lean
            weights[part.clients] = found
    return weights


def predict(some: Round, steps: int, out: Tensor) -> None:
    """Predictions for pseudo items, from weights solved over rated rows."""
    predict_solved(some, solve_weights, out)
