"""CUDA kernels of ``parts/model/ials.py``: solve for clients' factors, weigh their updates, add them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray

from fedrecplus.engines.cuda.card import Tensor, to_card
from fedrecplus.engines.cuda.model._predicting import predict_solved
from fedrecplus.engines.cuda.model._solving import (
    Batch,
    CardPrior,
    batches,
    gathered,
    inverse_root,
    solved,
    wide,
)
from fedrecplus.engines.cuda.model.reconstruction import solve_with
from fedrecplus.engines.cuda.ratings import CardRatings, table_of_rows
from fedrecplus.engines.cuda.round import Cohort, Round
from fedrecplus.engines.cuda.summing import CardSums
from fedrecplus.engines.fast.model.ials import choices_of as fast_choices_of
from fedrecplus.engines.fast.model.ials import no_doubt
from fedrecplus.engines.problem import Problem
from fedrecplus.parts.model.ials import statistic_size
from fedrecplus.protocol import PublicItems


class CardChoices(NamedTuple):
    """What the choice scores of a round come from. See ``ChoiceTerms`` of the fast engine."""

    W: Tensor
    gram: Tensor
    moment: Tensor
    confidences: Tensor
    ridge: float
    cells: float


def choices_of(W: NDArray[Any], problem: Problem, public: PublicItems) -> CardChoices:
    """On the card."""
    terms = fast_choices_of(W, problem, public)
    gram, moment = to_card(terms.gram), to_card(terms.moment)
    levels = to_card(terms.confidences)
    return CardChoices(to_card(terms.W), gram, moment, levels, float(terms.ridge), float(terms.cells))


def choice_factors(W: Tensor, confidence: Tensor, choices: CardChoices) -> Tensor:
    """u of each client, from the gathered rows of its items and their confidences. See ``ials.person_factors``."""
    weighted = confidence[:, :, None] * W
    gram = choices.gram + torch.bmm(weighted.transpose(1, 2), W)
    ridge = choices.ridge * torch.sqrt(choices.cells + confidence.sum(1))
    gram.diagonal(dim1=1, dim2=2).add_(ridge[:, None])
    return solved(inverse_root(gram), (choices.moment + weighted.sum(1))[:, :, None])


def choice_gradients(W: Tensor, confidence: Tensor, u: Tensor) -> Tensor:
    """c_j (1 − s_j)u of each row."""
    e = confidence * (1.0 - torch.bmm(W, u[:, :, None]).squeeze(2))
    return e[:, :, None] * u[:, None, :]


def confidences(some: Round, each: Batch, choices: CardChoices) -> Tensor:
    """c of each row, 0 for pseudo rows."""
    _, found = table_of_rows(some.rows, each.clients, pseudo=True, levels=choices.confidences)
    return torch.where(each.is_rated, found, 0.0)


def add_choices(sums: CardSums, each: Batch, moved: Tensor, u: Tensor) -> None:
    """Add updates up, and u uᵀ with the same weights."""
    clients, rows = each.clients.clients, wide(moved, sums.total.shape[1])
    sums.add_statistic(clients, sums.add(clients, each.numbers, rows, each.rated, each.summed), u)


def train(some: Round) -> tuple[CardSums, Any]:
    """Train these clients and add up their weighted updates and statistics; nothing is kept on devices."""
    choices = choices_of(some.message.V, some.problem, some.message.public)
    sums = some.sums(statistic_size(some.problem.config.model.options))
    for each in batches(some, choices.W.shape[1]):
        rows, confidence = gathered(choices.W, each.numbers), confidences(some, each, choices)
        u = choice_factors(rows, confidence, choices)
        add_choices(sums, each, choice_gradients(rows, confidence, u), u)
    return sums, some.private.U


def solve_weights(
    problem: Problem, public: PublicItems, X: NDArray[Any], ratings: CardRatings, cohort: Cohort
) -> Tensor:
    """Weights for predicted ratings of these clients, solved over their rated rows."""
    prior = CardPrior.of(no_doubt(public, problem.config.model.options, X))
    return solve_with(X, prior, ratings, cohort, 0.0)


def predict(some: Round, steps: int, out: Tensor) -> None:
    """Predictions for pseudo items, from weights solved over rated rows."""
    predict_solved(some, solve_weights, out)
