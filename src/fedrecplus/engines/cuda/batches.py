"""Models on the card: their own functions over torch arrays, so many clients of a size class at once as fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import torch

from fedrecplus.arrays import NOTHING
from fedrecplus.device import Device, Rows, every_item
from fedrecplus.engines.cuda.arrays import CardArray
from fedrecplus.engines.cuda.card import DEVICE, NUMBERS_AT_ONCE, Tensor, to_card
from fedrecplus.engines.cuda.ratings import CardRatings, SizeClass, no_pseudo_rows, table_of_rows
from fedrecplus.engines.cuda.round import Cohort, Round
from fedrecplus.engines.cuda.summing import CardSums
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.protocol import Broadcast


class CardBatch(NamedTuple):
    """Some clients, a line each: rated rows, pseudo rows after these, and item −1 beyond the last."""

    device: Device
    rows: Rows
    rated: Tensor
    """how many rows of each client are rated"""
    summed: Tensor
    """how many go into the sums"""


def train(card_round: Round) -> tuple[CardSums, Any]:
    """Train the round's clients and add up their weighted updates and statistics; everybody's U besides."""
    model: Any = card_round.problem.config.model
    message = card_round.told
    sums, U = card_round.sums(model.statistic_size), to_card(card_round.private.U).clone()
    for batch in _batches(card_round, message, U):
        clients: Any = batch.device.client
        items: Any = batch.rows.items
        trained = model.local_training(batch.device, batch.rows, message)
        U[clients] = trained.U
        client_weights = None
        if not card_round.weighing.is_known:
            place = torch.arange(items.shape[1], device=DEVICE)[None, :]
            counted = torch.where(place < batch.summed[:, None], items, NOTHING)
            rule: Any = card_round.problem.config.aggregation
            client_weights = rule.weight(counted, trained.delta, message)
        moved = _wide(trained.delta, sums.total.shape[1])
        weights = sums.add(clients, items, moved, batch.rated, batch.summed, client_weights)
        sums.add_statistic(clients, weights, trained.statistic)
    return sums, CardArray(U)


def user_weights(problem: Problem, private: PrivateState, X: Any, ratings: CardRatings, cohort: Cohort) -> Tensor:
    """The weights for predictions of these clients."""
    model: Any = problem.config.model
    table, U = to_card(X), to_card(private.U)
    weights = torch.zeros((len(U), model.weight_count(table.shape[1], len(table))), dtype=table.dtype, device=DEVICE)
    for part in _parts(cohort.classes, table.shape[1]):
        items, given = table_of_rows(no_pseudo_rows(ratings), part, pseudo=False)
        weights[part.clients] = model.user_weights(U[part.clients], table, items, given, problem.public)
    return weights


def _batches(card_round: Round, message: Broadcast, U: Tensor) -> Iterator[CardBatch]:
    """The round's clients; with rows of all items where the model uploads these."""
    problem, known, count = card_round.problem, card_round.rows.ratings, len(message.V)
    model: Any = problem.config.model
    columns = model.item_columns(message.V, message.public).shape[1]
    for part in _parts(card_round.classes, columns, count if model.ALL_ITEMS else 0):
        items, ratings = table_of_rows(card_round.rows, part, pseudo=True)
        rated, present = (known.counts(pseudo)[part.clients] for pseudo in (False, card_round.rows.has_pseudo))
        is_rated = torch.arange(items.shape[1], device=DEVICE)[None, :] < rated[:, None]
        secrets, step = problem.secrets[part.clients.cpu().numpy()], problem.ratings.scale.standard_step
        ages = None if known.ages is None else table_of_rows(known.in_order, part, pseudo=False)[1]
        rated_items = torch.where(is_rated, items, NOTHING)
        device = Device(*cast(Any, (part.clients, rated_items, ratings, step, U[part.clients], secrets, None, ages)))
        rows = Rows(*cast(Any, (items, ratings, is_rated)))
        if model.ALL_ITEMS:
            rows = every_item(device, count)
            every: Any = rows.items
            rows = rows._replace(items=every.to(torch.int32).contiguous())  # as kernels read it
            rated = present = torch.full_like(rated, count)
        yield CardBatch(device, rows, rated, rated if card_round.weighing.rated_rows_only else present)


def _parts(classes: list[SizeClass], columns: int, rows: int = 0) -> Iterator[SizeClass]:
    """Size classes in runs that fit into memory, where a client has tables of so many columns."""
    for size_class in classes:
        yield from size_class.parts(NUMBERS_AT_ONCE // (max(size_class.rows, rows, columns) * columns * 2))


def _wide(moved: Any, columns: int) -> Tensor:
    """Updates with zero columns up to those of the tables on the card."""
    if moved.shape[2] == columns:
        same: Tensor = moved.contiguous()
        return same
    table = torch.zeros((*moved.shape[:2], columns), dtype=moved.dtype, device=DEVICE)
    table[:, :, : moved.shape[2]] = moved
    return table
