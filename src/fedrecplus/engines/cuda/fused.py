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


class Tables(NamedTuple):
    """V and everybody's U, before and after."""

    V: Tensor
    U: Tensor
    moved_U: Tensor


class KernelSteps(NamedTuple):
    """How a client trains, in tensors."""

    numbers: Tensor
    """mean, rate, decay: plain numbers would come in 32 bits"""
    trained: Tensor


class KernelSums(NamedTuple):
    """Where updates go: added to a table, or kept apart."""

    table: Tensor
    per_item: Tensor
    numbers: Tensor
    """of the rows that are kept apart"""
    weights: Tensor


class CardSteps(NamedTuple):
    """How a client trains."""

    tensors: KernelSteps
    epochs: int
    rated_only: bool
    biases: bool
    scaled: bool
    """whether rows may be kept divided by (1 − η_L λ)^k"""


def train(card_round: Round) -> tuple[CardSums, Any]:
    """Train these clients and add up their weighted updates; everybody's U besides."""
    steps, sums = steps_of(card_round.problem, card_round.message), card_round.sums()
    tables = tables_of(card_round)
    fused = [size_class for size_class in card_round.classes if _fused(size_class, tables.V, sums)]
    for size_class in fused:
        train_at_once(size_class, card_round.rows, steps, tables, sums)
    for size_class in card_round.classes[len(fused) :]:  # the longest
        for part in size_class.parts(NUMBERS_AT_ONCE // (size_class.rows * tables.V.shape[1])):
            _train_apart(part, card_round.rows, steps, tables, sums)
    if fused and not sums.weighing.distances:
        sums.per_item += card_round.row_counts(fused)
    return sums, CardArray(tables.moved_U)


def tables_of(card_round: Round) -> Tables:
    """V, U, and where the trained U go."""
    U = to_card(card_round.private.U)
    return Tables(padded(to_card(card_round.message.V)), U, U.clone())


def steps_of(problem: Problem, message: Broadcast) -> CardSteps:
    """How clients train in a round."""
    model = cast(mf.Mf, problem.config.model)
    options = model.settings
    numbers = [
        model.global_mean(message.public),
        model.local_rate(message.round),
        options.regularisation,
    ]
    known = (np.array(numbers), model.trained_columns())
    return CardSteps(
        KernelSteps(*(to_card(one.astype(message.V.dtype)) for one in known)),
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


def train_at_once(size_class: SizeClass, rows: CardRows, steps: CardSteps, tables: Tables, sums: CardSums) -> None:
    """Train the clients of a size class and add up their updates as they are made."""
    weights = torch.ones(len(size_class.clients), dtype=torch.float64, device=DEVICE)
    _launch(size_class, rows, steps, tables, sums, KernelSums(sums.total, sums.per_item, weights, weights), keep=False)
    sums.overall += weights.sum()
    sums.clients += len(size_class.clients)


def _train_apart(size_class: SizeClass, rows: CardRows, steps: CardSteps, tables: Tables, sums: CardSums) -> None:
    count, columns = len(size_class.clients), tables.V.shape[1]
    moved = torch.empty((count, size_class.rows, columns), dtype=tables.V.dtype, device=DEVICE)
    numbers = torch.empty((count, size_class.rows), dtype=torch.int32, device=DEVICE)
    if _in_registers(size_class, tables.V):
        _launch(size_class, rows, steps, tables, sums, KernelSums(moved, sums.per_item, numbers, numbers), keep=True)
    else:
        fused_steps.train_long[(count,)](
            size_class.clients, rows.for_kernels, tables, steps.tensors, moved, numbers, steps.epochs, sums.width,
            ROWS=size_class.rows, BLOCK=min(size_class.rows, 4096 // min(columns, 256)), COLUMNS=columns,
            RATED_ONLY=steps.rated_only, PSEUDO=rows.has_pseudo, num_warps=4,
        )  # fmt: skip
    rated = rows.ratings.counts(pseudo=False)[size_class.clients]
    all_rows = rows.ratings.counts(pseudo=rows.has_pseudo)[size_class.clients]
    summed = rated if sums.weighing.rated_rows_only else all_rows
    sums.add(size_class.clients, numbers, moved, rated, summed)


def _launch(
    size_class: SizeClass,
    rows: CardRows,
    steps: CardSteps,
    tables: Tables,
    sums: CardSums,
    into: KernelSums,
    keep: bool,
) -> None:
    columns = tables.V.shape[1]
    fused_steps.train_clients[(len(size_class.clients),)](
        size_class.clients, rows.for_kernels, tables, steps.tensors, sums.target, into, steps.epochs, sums.width,
        ROWS=size_class.rows, COLUMNS=columns, BIASES=steps.biases, SCALED=steps.scaled,
        RATED_ONLY=steps.rated_only, SUM_RATED=sums.weighing.rated_rows_only,
        DISTANCES=sums.weighing.distances and not keep, WHICH=sums.weighing.rows, KEEP=keep, PSEUDO=rows.has_pseudo,
        **_shape(size_class.rows * columns, tables.V),
    )  # fmt: skip
