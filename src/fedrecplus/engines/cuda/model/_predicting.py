"""Predictions X·w for clients' pseudo items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton.language as tl
from numpy.typing import NDArray

from fedrecplus.engines.cuda.card import Tensor, kernel, padded, to_card
from fedrecplus.engines.cuda.ratings import CardRatings
from fedrecplus.engines.cuda.round import Cohort, Round
from fedrecplus.engines.problem import Problem
from fedrecplus.protocol import PublicItems

Solve = Callable[[Problem, PublicItems, NDArray[Any], CardRatings, Cohort], Tensor]
_ROWS_AT_ONCE = 32


def predict_solved(some: Round, solve_weights: Solve, out: Tensor) -> None:
    """Predictions for pseudo items, from weights that are solved over rated rows."""
    problem, message = some.problem, some.message
    model = problem.config.model
    X = model.item_columns(message.V, message.public).astype(message.V.dtype, copy=False)
    predict_rows(some, X, solve_weights(problem, message.public, X, some.rows.ratings, some.cohort), out)


def predict_rows(some: Round, X: NDArray[Any], weights: Tensor, out: Tensor) -> None:
    """Write the predictions of the round's clients to the places of their pseudo items."""
    columns, W, known = padded(to_card(X)), padded(weights), some.rows.ratings
    for each in some.classes:
        predict_places[(len(each.clients),)](
            each.clients, known.pseudo_indptr, some.rows.pseudo_items, columns, W, out,
            BLOCK=_ROWS_AT_ONCE, COLUMNS=columns.shape[1],
        )  # fmt: skip


@kernel
def predict_places(
    clients: tl.tensor,
    pseudo_indptr: tl.tensor,
    pseudo_items: tl.tensor,
    X: tl.tensor,
    W: tl.tensor,
    out: tl.tensor,
    BLOCK: tl.constexpr,
    COLUMNS: tl.constexpr,
) -> None:
    """X·w for a client's pseudo items."""
    client = tl.load(clients + tl.program_id(0))
    c = tl.arange(0, COLUMNS)
    own = tl.load(W + client * COLUMNS + c)
    first, last = tl.load(pseudo_indptr + client), tl.load(pseudo_indptr + client + 1)
    for start in range(first, last, BLOCK):
        place = start + tl.arange(0, BLOCK)
        there = place < last
        row = tl.load(pseudo_items + place, mask=there, other=0).to(tl.int64)
        rows = tl.load(X + row[:, None] * COLUMNS + c[None, :], mask=there[:, None], other=0.0)
        tl.store(out + place, tl.sum(rows * own[None, :], axis=1), mask=there)
