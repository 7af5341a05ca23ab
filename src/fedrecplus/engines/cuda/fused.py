"""Local epochs of ``mf`` and ``biased-mf`` on the card, fused. ``parts/model/mf.py`` is the readable form.

A client is a program. Its rows of V stay in registers through all local epochs; where there are too many, they go
through memory. Updates are weighed and added to the table as they are made or, where sums have a fixed order or are
whole steps, kept apart for ``summing.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import torch

from fedrecplus.engines.cuda import fused_steps
from fedrecplus.engines.cuda.arrays import CardArray
from fedrecplus.engines.cuda.card import DEVICE, NUMBERS_AT_ONCE, Tensor, padded, to_card
from fedrecplus.engines.cuda.ratings import CardRows, SizeClass
from fedrecplus.engines.cuda.round import Round
from fedrecplus.engines.cuda.summing import CardSums
from fedrecplus.engines.problem import Problem
from fedrecplus.parts.model import mf
from fedrecplus.protocol import Broadcast

LARGEST_IN_REGISTERS = 1 << 17
"""bytes of the largest table of rows that a program may keep in registers: half of those that there are"""
NUMBERS_PER_WARP = 1 << 11
REGISTERS = 128
"""of a thread that holds 64 numbers of the rows"""


class CardSteps(NamedTuple):
    """How a client trains."""

    numbers: Tensor
    """mean, rate, decay: plain numbers would come in 32 bits"""
    trained: Tensor
    epochs: int
    rated_only: bool
    biases: bool
    scaled: bool
    """whether rows may be kept divided by (1 − η_L λ)^k"""


def train(card_round: Round) -> tuple[CardSums, Any]:
    """Train these clients and add up their weighted updates; everybody's U besides."""
    steps, sums = steps_of(card_round.problem, card_round.message), card_round.sums()
    V, U, moved_U = tables_of(card_round)
    fused = [size_class for size_class in card_round.classes if _fused(size_class, V, sums)]
    for size_class in fused:
        train_at_once(size_class, card_round.rows, steps, V, U, moved_U, sums)
    for size_class in card_round.classes[len(fused) :]:  # the longest
        for part in size_class.parts(NUMBERS_AT_ONCE // (size_class.rows * V.shape[1])):
            _train_apart(part, card_round, steps, V, U, moved_U, sums)
    if fused and not sums.weighing.distances:
        sums.per_item += card_round.row_counts(fused)
    return sums, CardArray(moved_U)


def tables_of(card_round: Round) -> tuple[Tensor, Tensor, Tensor]:
    """V, U, and where the trained U go."""
    U = to_card(card_round.private.U)
    return padded(to_card(card_round.message.V)), U, U.clone()


def steps_of(problem: Problem, message: Broadcast) -> CardSteps:
    """How clients train in a round."""
    model = cast(mf.Mf, problem.config.model)
    options = model.settings
    numbers = [
        model.global_mean(message.public),
        model.local_rate(message.round),
        options.regularisation,
    ]
    return CardSteps(
        to_card(np.array(numbers).astype(message.V.dtype)),
        to_card(model.trained_columns().astype(message.V.dtype)),
        options.local_epochs,
        options.user_step == "rated",
        model.BIASES,
        0.1 < abs(1.0 - numbers[1] * numbers[2]) ** options.local_epochs < 10.0,
    )


def _fused(size_class: SizeClass, V: Tensor, sums: CardSums) -> bool:
    """Whether the updates of a size class are added up as they are made."""
    return _in_registers(size_class, V) and not sums.deterministic and not sums.weighing.in_steps


def _in_registers(size_class: SizeClass, V: Tensor) -> bool:
    """Whether a program can keep the rows of a client of this size class in registers."""
    return size_class.rows * V.shape[1] * V.element_size() <= LARGEST_IN_REGISTERS


def _warps(numbers: int) -> int:
    """Warps of a program for a table of so many numbers."""
    return min(32, max(1, numbers // NUMBERS_PER_WARP))


def _shape(numbers: int, V: Tensor) -> dict[str, int]:
    """Warps of a program and, where it pays, registers of a thread: fewer let more clients be under way at once."""
    warps = _warps(numbers)
    narrow = V.dtype == torch.float32 and numbers == warps * NUMBERS_PER_WARP
    return {"num_warps": warps, "maxnreg": REGISTERS} if narrow else {"num_warps": warps}


def train_at_once(
    size_class: SizeClass, rows: CardRows, steps: CardSteps, V: Tensor, U: Tensor, moved_U: Tensor, sums: CardSums
) -> None:
    """Train the clients of a size class and add up their updates as they are made."""
    weights = torch.ones(len(size_class.clients), dtype=torch.float64, device=DEVICE)
    _launch(size_class, rows, steps, V, U, moved_U, sums, sums.total, weights, weights, keep=False)
    sums.overall += weights.sum()
    sums.clients += len(size_class.clients)


def _train_apart(
    size_class: SizeClass, card_round: Round, steps: CardSteps, V: Tensor, U: Tensor, moved_U: Tensor, sums: CardSums
) -> None:
    rows = card_round.rows
    count, columns = len(size_class.clients), V.shape[1]
    moved = torch.empty((count, size_class.rows, columns), dtype=V.dtype, device=DEVICE)
    numbers = torch.empty((count, size_class.rows), dtype=torch.int32, device=DEVICE)
    if _in_registers(size_class, V):
        _launch(size_class, rows, steps, V, U, moved_U, sums, moved, numbers, numbers, keep=True)
    else:
        known = rows.ratings
        fused_steps.train_long[(count,)](
            size_class.clients, known.indptr, known.items, known.codes, known.levels, known.pseudo_indptr,
            rows.pseudo_items, rows.virtual_ratings, V, U, moved_U, steps.trained, steps.numbers, moved, numbers,
            steps.epochs, sums.width, ROWS=size_class.rows, BLOCK=min(size_class.rows, 4096 // min(columns, 256)),
            COLUMNS=columns, RATED_ONLY=steps.rated_only, PSEUDO=rows.has_pseudo, num_warps=4,
        )  # fmt: skip
    rated = rows.ratings.counts(pseudo=False)[size_class.clients]
    all_rows = rows.ratings.counts(pseudo=rows.has_pseudo)[size_class.clients]
    summed = rated if sums.weighing.rated_rows_only else all_rows
    weights = card_round.weights(numbers, moved[:, :, : sums.width], summed)
    sums.add(size_class.clients, numbers, moved, weights, rated, summed)


def _launch(
    size_class: SizeClass,
    rows: CardRows,
    steps: CardSteps,
    V: Tensor,
    U: Tensor,
    moved_U: Tensor,
    sums: CardSums,
    table: Tensor,
    numbers: Tensor,
    weights: Tensor,
    keep: bool,
) -> None:
    known = rows.ratings
    fused_steps.train_clients[(len(size_class.clients),)](
        size_class.clients, known.indptr, known.items, known.codes, known.levels, known.pseudo_indptr,
        rows.pseudo_items, rows.virtual_ratings, V, U, moved_U, steps.trained, steps.numbers, sums.step,
        sums.step_sizes, sums.numbers, table, sums.per_item, numbers, weights, steps.epochs, sums.width,
        ROWS=size_class.rows, COLUMNS=V.shape[1], BIASES=steps.biases, SCALED=steps.scaled, AGAIN=True,
        RATED_ONLY=steps.rated_only, SUM_RATED=sums.weighing.rated_rows_only,
        DISTANCES=sums.weighing.distances and not keep, WHICH=sums.weighing.rows, KEEP=keep, PSEUDO=rows.has_pseudo,
        **_shape(size_class.rows * V.shape[1], V),
    )  # fmt: skip
