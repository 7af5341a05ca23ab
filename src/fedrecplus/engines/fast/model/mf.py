"""Kernels of ``parts/model/mf.py``, which serve ``biased-mf`` too: train clients, weigh their updates, add them up."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays.compiling import kernel
from fedrecplus.engines.fast.blocks import BlockRound, RowBlock, sums_of, updates_of
from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.drawing import Clients, Drawing, Fill
from fedrecplus.engines.fast.model import _columns, _epochs, _updates
from fedrecplus.engines.fast.model._training import EpochScratch, Steps
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.summing import add_up
from fedrecplus.engines.fast.weighing import Target, Weighing, weight_at
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model import mf
from fedrecplus.protocol import Broadcast, Sums, Upload

_gather = _columns.gather
_whole = _columns.whole
_silence = _columns.silence
_products = _columns.products
_pull = _columns.pull_on_user
_move_user = _columns.move_user
_local_epochs = _epochs.local_epochs
_moves = _updates.moves
_distance = _updates.distance
_add = _updates.add

IN_STEPS = True
"""its kernel can add up whole steps (``Weighing.in_steps``)"""


def handles(options: mf.Settings) -> bool:
    """Steps over all of a client's rows at once; batches run through the model's own file."""
    return options.batch_size == 0


def train(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, how: Weighing, clients: Clients
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates; returns everybody's U besides."""
    some = _Round(problem, private, message, pseudo)
    if how.in_steps:
        return sums_of(some, how, clients), some.U
    V, target = message.V, some.target(how)

    def work(part: Clients) -> tuple[Any, Any, float]:
        total, per_item, places = np.zeros_like(V), np.zeros(len(V)), np.zeros(len(part), np.int64)
        largest = int(some.counts[part].max())
        moved = np.empty((largest, V.shape[1]), V.dtype)  # each client's in turn
        return total, per_item, some.run(part, places, False, largest, how, target, moved, total, per_item)

    parts = on_threads(work, chunks(clients, some.counts, len(V)))
    return add_up(parts, some.left, len(clients)), some.U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; returns everybody's U besides."""
    some = _Round(problem, private, message, pseudo)
    return updates_of(some, clients), some.U


class _Round(BlockRound):
    def __init__(self, problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows) -> None:
        self.steps, self.V, self.U = _steps(problem, message), message.V, private.U.copy()
        super().__init__(problem, pseudo, _left(message.V, self.steps), message.last_step)

    def train(self, block: RowBlock) -> None:
        """The moves of a block's clients are kept, and weighed by others."""
        self.list_rows(block)
        largest, nothing = int(block.counts.max(initial=0)), np.zeros(0)
        no_table = np.zeros((0, block.moved.shape[1]), block.moved.dtype)
        how = Weighing()
        self.run(block.clients, block.starts, True, largest, how, self.target(how), block.moved, no_table, nothing)

    def run(
        self,
        clients: Clients,
        places: Any,
        kept: bool,
        largest: int,
        how: Weighing,
        target: Target,
        moved: Any,
        total: Any,
        per_item: Any,
    ) -> float:
        """See ``train_clients``."""
        scratch = EpochScratch.of(self.V, self.steps, largest)
        tables = (self.V, self.U, moved, total, per_item)
        return float(train_clients(clients, places, kept, self.rows, scratch, self.steps, how, target, *tables))


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """The weights for predictions are the clients' own U."""
    return private.U


def predictor(some: Drawing, steps: int) -> Fill:
    """Predictions of some clients, after so many more U steps over their rated rows."""
    V, U, sizes, rated = some.message.V, some.private.U, _steps(some.problem, some.message), some.rated

    def fill(clients: Clients, items: Any, out: Any) -> None:
        scratch = EpochScratch.of(V, sizes, some.most_rated(clients))
        predict_longer(clients, rated, items, U, V, steps, sizes, scratch, out)

    return fill


def _steps(problem: Problem, message: Broadcast) -> Steps:
    model = cast(mf.Mf, problem.config.model)
    options, real = model.settings, message.V.dtype.type
    rate, epochs = real(model.local_rate(message.round)), options.local_epochs
    fades = np.zeros((epochs + 2) // 3 * 3, message.V.dtype)
    fades[:epochs] = (1.0 - rate * real(options.regularisation)) ** np.arange(epochs)[::-1]
    return Steps(
        real(model.global_mean(message.public)),
        rate,
        real(options.regularisation),
        model.trained_columns().astype(message.V.dtype),
        epochs,
        options.user_step == "rated",
        fades,
    )


def _left(V: NDArray[Any], steps: Steps) -> Any:
    return _updates.left_by_decay(V, float(steps.rate), float(steps.decay), steps.epochs)


@kernel
def train_clients(
    clients: Any,
    places: Any,
    kept: bool,
    rows: Any,
    scratch: Any,
    steps: Any,
    how: Any,
    target: Any,
    V: Any,
    U: Any,
    moved: Any,
    total: Any,
    per_item: Any,
) -> float:
    """Local training of some clients; their weighted updates are added up. Returns the sum of weights.

    An update is what decay does to a row, which is the same for everybody (``left``, times ``per_item``), and the rest
    of it, which is added to ``total``; where it shall be ``kept`` it is in ``moved`` from the client's place on.
    """
    # arrays are taken out of their tuples once: inside the loop each look-up would count references
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings = rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings
    mean, rate, decay, trained = steps.mean, steps.rate, steps.decay, steps.trained
    apart, apart_sizes, step_sizes = target.apart, target.apart_sizes, target.step_sizes
    own, pull, table, targets, dots = scratch.own, scratch.pull, scratch.table, scratch.targets, scratch.dots
    errors, pushes, fades, numbers = scratch.errors, scratch.pushes, steps.fades, scratch.numbers
    epochs, width = steps.epochs, V.shape[1]
    all_weights = 0.0
    for k in range(len(clients)):
        client = clients[k]
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first, pseudo = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        n = rated + pseudo
        for j in range(rated):
            numbers[j] = items[first + j]
            targets[j] = levels[codes[first + j]] - mean
        for j in range(pseudo):
            numbers[rated + j] = pseudo_items[pseudo_first + j]
            targets[rated + j] = virtual_ratings[pseudo_first + j] - mean
        _gather(V, numbers, n, table)
        for c in range(width):
            own[c] = U[client, c]
        used = rated if steps.rated_only else n
        U[client, width] = _local_epochs(
            U[client, width], epochs, used, n, rate, decay, trained, targets, own, pull, dots, table, errors, pushes
        )
        for c in range(width):
            U[client, c] = own[c]
        if how.rated_rows_only:  # pseudo rows shall not count
            n = rated
        at_once = not (kept or how.distances)
        _moves(numbers, n, epochs, fades, errors, pushes, at_once, places[k], moved, total)
        if kept:
            continue
        weight = 1.0
        if how.distances:
            distance, own_step = _distance(apart, numbers, n, moved), 0.0
            for j in range(n):
                distance += apart_sizes[numbers[j]]
                own_step += step_sizes[numbers[j]]
            weight = weight_at(distance, own_step, n, how, target.whole_step)
            _add(weight, numbers, n, moved, total)
        all_weights += weight
        for j in range(n):
            per_item[numbers[j]] += weight
    return all_weights


@kernel
def predict_longer(
    clients: Any,
    rated: Any,
    pseudo_items: Any,
    U: Any,
    V: Any,
    more: int,
    steps: Any,
    scratch: Any,
    out: Any,
) -> None:
    """Predictions from a U that was stepped on over the rated rows with V fixed. See ``mf.predict``."""
    indptr, items, codes, levels = rated.indptr, rated.items, rated.codes, rated.levels
    pseudo_indptr, mean, rate, decay, trained = rated.pseudo_indptr, steps.mean, steps.rate, steps.decay, steps.trained
    own, pull, table = scratch.own, scratch.pull, scratch.table
    targets, e, numbers = scratch.targets, scratch.dots, scratch.numbers
    width = V.shape[1]
    start = np.int64(0)  # a plain 0 is a type of its own, for which all would be compiled again
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        for c in range(width):
            own[c] = U[client, c]
        bias = U[client, width]
        if more > 0:
            for j in range(n):
                numbers[j] = items[first + j]
                targets[j] = levels[codes[first + j]] - mean
            _gather(V, numbers, n, table)
        padded_n = _whole(n)
        for _ in range(more):
            _products(own, table, start, padded_n, e)
            for j in range(np.uint64(padded_n)):
                e[j] = targets[j] - bias - e[j]
            _silence(e, n, padded_n)
            pull_bias = _pull(e, table, start, padded_n, pull)
            bias = _move_user(own, bias, trained, pull, pull_bias, n, rate, decay)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            row, total = V[pseudo_items[place]], mean + bias
            for c in range(width):
                total += own[c] * row[c]
            out[place] = total
