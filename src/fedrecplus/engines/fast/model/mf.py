"""Kernels of ``parts/model/mf.py``, which serve ``biased-mf`` too: train clients, weigh their updates, add them up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.chunks import chunks, on_threads
from fedrecplus.engines.fast.compiling import inner, kernel, mix, section
from fedrecplus.engines.fast.model import _columns, _updates
from fedrecplus.engines.fast.pseudo import PseudoRows
from fedrecplus.engines.fast.selecting import Clients, Fill, Filling
from fedrecplus.engines.fast.sorting import sort_by
from fedrecplus.engines.fast.summing import add_up, split_uploads
from fedrecplus.engines.fast.weighing import Target, Weighing, target_of, weight_at
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model import mf
from fedrecplus.protocol import Broadcast, Sums, Upload
from fedrecplus.randomness import purpose

_gather = _columns.gather
_stride = _columns.stride
_whole = _columns.whole
_silence = _columns.silence
_products = _columns.products
_pull = _columns.pull_on_user
_move_user = _columns.move_user
_moves = _updates.moves
_distance = _updates.distance
_covariance_gap = _updates.covariance_gap
_add_covariance = _updates.add_covariance
_add = _updates.add


class Rows(NamedTuple):
    """Everybody's rated and pseudo rows."""

    indptr: Any
    items: Any
    codes: Any
    levels: Any
    pseudo_indptr: Any
    pseudo_items: Any
    virtual_ratings: Any
    mean: Any
    largest: int
    """rows of the client that has most"""


class Steps(NamedTuple):
    """How a client trains."""

    rate: Any
    decay: Any
    trained: Any
    epochs: int
    batch_size: int
    rated_only: bool
    secrets: Any
    purpose: Any
    round_number: Any


def train(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, how: Weighing, clients: Clients
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates; returns everybody's U besides."""
    V, U, steps = message.V, private.U.copy(), _steps(problem, message)
    left = _left(V, steps)
    target = target_of(left, message.last_step, message.last_covariance)
    count = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)

    def work(part: Clients) -> tuple[Any, Any, Any, float]:
        total, per_item, covariance = np.zeros_like(V), np.zeros(len(V)), np.zeros_like(message.last_covariance)
        rows = _rows(problem, pseudo, int(count[part].max()))
        weights = train_clients(part, rows, steps, how, target, V, U, total, per_item, covariance)
        return total, per_item, covariance, weights

    return add_up(on_threads(work, chunks(clients, count)), left, message, len(clients)), U


def updates(
    problem: Problem, private: PrivateState, message: Broadcast, pseudo: PseudoRows, clients: Clients
) -> tuple[list[Upload], NDArray[Any]]:
    """Train these clients and keep their updates apart, unweighed; returns everybody's U besides."""
    V, U, steps = message.V, private.U.copy(), _steps(problem, message)
    left = _left(V, steps)
    target = target_of(left, message.last_step, message.last_covariance)
    count = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)

    def work(part: Clients) -> list[Upload]:
        rows = _rows(problem, pseudo, int(count[part].max()))
        per_item, covariance = np.zeros(len(V)), np.zeros_like(message.last_covariance)

        def one(client: Clients, total: NDArray[Any]) -> None:
            train_clients(client, rows, steps, Weighing(), target, V, U, total, per_item, covariance)

        return split_uploads(problem, pseudo, part, left, one)

    return [upload for found in on_threads(work, chunks(clients, count)) for upload in found], U


def user_weights(problem: Problem, private: PrivateState, X: NDArray[Any]) -> NDArray[Any]:
    """The weights for predictions are the clients' own U."""
    return private.U


def predictor(some: Filling, steps: int) -> Fill:
    """Predictions of some clients, after so many more U steps over their rated rows."""
    config, V, U = some.problem.config, some.message.V, some.private.U
    sizes = _steps(some.problem, some.message)
    mean = V.dtype.type(mf.global_mean(some.message.public, config.model.part.BIASES))

    def fill(clients: Clients, items: Any, out: Any) -> None:
        predict_longer(
            clients, *some.rated, some.indptr, items, U, V, mean, steps, sizes.rate, sizes.decay, sizes.trained,
            some.most_rated(clients), out,
        )  # fmt: skip

    return fill


def _rows(problem: Problem, pseudo: PseudoRows, largest: int) -> Rows:
    ratings = problem.ratings
    mean = pseudo.levels.dtype.type(mf.global_mean(problem.public, problem.config.model.part.BIASES))
    return Rows(
        ratings.indptr, ratings.items, ratings.codes, pseudo.levels,
        pseudo.indptr, pseudo.items, pseudo.ratings, mean, largest,
    )  # fmt: skip


def _steps(problem: Problem, message: Broadcast) -> Steps:
    model, dtype = problem.config.model, message.V.dtype
    options: mf.Settings = model.options
    return Steps(
        dtype.type(mf.local_rate(options, message.round)), dtype.type(options.regularisation),
        mf.trained_columns(options, model.part.BIASES).astype(dtype), options.local_epochs, options.batch_size,
        options.user_step == "rated", problem.secrets, np.uint64(purpose("batches")), np.uint64(message.round),
    )  # fmt: skip


def _left(V: NDArray[Any], steps: Steps) -> Any:
    return _updates.left_by_decay(V, float(steps.rate), float(steps.decay), steps.epochs)


@kernel
def train_clients(
    clients: Any,
    rows: Any,
    steps: Any,
    how: Any,
    target: Any,
    V: Any,
    U: Any,
    total: Any,
    per_item: Any,
    covariance: Any,
) -> float:
    """Local training of some clients; their weighted updates are added up. Returns the sum of weights.

    An update is what decay does to a row, which is the same for everybody (``left``, times ``per_item``), and the rest
    of it, which is added to ``total``.
    """
    # arrays are taken out of their tuples once: inside the loop each look-up would count references
    indptr, items, codes, levels = rows.indptr, rows.items, rows.codes, rows.levels
    pseudo_indptr, pseudo_items, virtual_ratings, mean = (
        rows.pseudo_indptr, rows.pseudo_items, rows.virtual_ratings, rows.mean,
    )  # fmt: skip
    rate, decay, trained, secrets = steps.rate, steps.decay, steps.trained, steps.secrets
    epochs, batch_size, rated_only = steps.epochs, steps.batch_size, steps.rated_only
    left, apart, apart_sizes, step_sizes = target.left, target.apart, target.apart_sizes, target.step_sizes
    last_covariance, whole_step, whole_covariance = target.covariance, target.whole_step, target.whole_covariance
    width, largest = V.shape[1], rows.largest
    padded, room = (width + 3) // 4 * 4, _whole(largest)
    batches = (largest + batch_size - 1) // batch_size if batch_size > 0 else 1
    own, pull = np.zeros(padded, V.dtype), np.zeros(padded, V.dtype)
    table, moved = np.zeros((padded, _stride(largest)), V.dtype), np.empty((largest, width), V.dtype)
    targets, counted = np.zeros(room, V.dtype), np.zeros(room, V.dtype)
    e, dots = np.zeros(room, V.dtype), np.zeros(room, V.dtype)
    slots = (epochs + 2) // 3 * 3  # those without an epoch stay zero
    errors, pushes = np.zeros((slots, room), V.dtype), np.zeros((slots * batches, padded), V.dtype)
    fades = np.zeros(slots, V.dtype)
    shrink = 1.0
    for i in range(epochs - 1, -1, -1):
        fades[i] = shrink
        shrink *= 1.0 - rate * decay
    numbers, draws = np.empty(largest, np.int64), np.empty(largest, np.uint64)
    all_weights, at_once = 0.0, not how.distances and not how.diagonal
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first, pseudo = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        n = rated + pseudo
        for j in range(rated):
            numbers[j] = items[first + j]
            targets[j] = levels[codes[first + j]] - mean
            counted[j] = 1
        for j in range(pseudo):
            numbers[rated + j] = pseudo_items[pseudo_first + j]
            targets[rated + j] = virtual_ratings[pseudo_first + j] - mean
            counted[rated + j] = 0
        if batch_size > 0:
            key = mix(mix(secrets[client], steps.purpose), steps.round_number)
            _shuffle(key, n, draws, numbers, targets, counted, e, dots)
        _gather(V, numbers, n, table)
        for c in range(width):
            own[c] = U[client, c]
        bias = _local_epochs(
            U[client, width], epochs, batch_size, rated_only, rate, decay, trained,
            rated, n, batches, targets, counted, own, pull, e, dots, table, errors, pushes,
        )  # fmt: skip
        for c in range(width):
            U[client, c] = own[c]
        U[client, width] = bias
        batch = max(min(batch_size, n) if batch_size > 0 else n, 1)
        if how.rated_rows_only:  # pseudo rows shall not count
            for i in range(epochs):
                for j in range(n):
                    errors[i, j] *= counted[j]
        _moves(numbers, n, batch, batches, epochs, fades, errors, pushes, at_once, moved, total)
        weight = 1.0
        if how.distances:
            distance = _distance(apart, numbers, n, moved)
            own_step, own_covariance = 0.0, 0.0
            for j in range(n):
                distance += apart_sizes[numbers[j]]
                own_step += step_sizes[numbers[j]]
            if how.diagonal:
                gap, own_covariance = _covariance_gap(left, moved, last_covariance, numbers, n, batch)
                distance += gap
            weight = weight_at(distance, own_step, own_covariance, n, how, whole_step, whole_covariance)
        all_weights += weight
        if how.diagonal:
            _add_covariance(numbers, n, batch, left, moved, covariance)
        for j in range(n):
            if not how.rated_rows_only or counted[j] > 0:
                per_item[numbers[j]] += weight
        if not at_once:
            _add(weight, numbers, n, moved, total)
    return all_weights


@kernel
def predict_longer(
    clients: Any,
    indptr: Any,
    items: Any,
    codes: Any,
    levels: Any,
    pseudo_indptr: Any,
    pseudo_items: Any,
    U: Any,
    V: Any,
    mean: Any,
    steps: int,
    rate: Any,
    decay: Any,
    trained: Any,
    largest: int,
    out: Any,
) -> None:
    """Predictions from a U that was stepped on over the rated rows with V fixed. See ``mf.predict``."""
    width = V.shape[1]
    padded = (width + 3) // 4 * 4
    table = np.zeros((padded, _stride(largest)), V.dtype)
    targets = np.zeros(_whole(largest), V.dtype)
    e = np.zeros(_whole(largest), V.dtype)
    pull = np.zeros(padded, V.dtype)
    own = np.zeros(padded, V.dtype)
    numbers = np.empty(largest, np.int64)
    start = np.int64(0)  # a plain 0 is a type of its own, for which all would be compiled again
    for client in clients:
        first, n = indptr[client], indptr[client + 1] - indptr[client]
        for c in range(width):
            own[c] = U[client, c]
        bias = U[client, width]
        if steps > 0:
            for j in range(n):
                numbers[j] = items[first + j]
                targets[j] = levels[codes[first + j]] - mean
            _gather(V, numbers, n, table)
        padded_n = _whole(n)
        for _ in range(steps):
            _products(own, table, start, padded_n, e)
            for j in range(np.uint64(padded_n)):
                e[j] = targets[j] - bias - e[j]
            _silence(e, n, padded_n)
            pull_bias = _pull(e, table, start, padded_n, pull)
            bias = _move_user(own, bias, trained, pull, pull_bias, n, rate, decay)
        for place in range(pseudo_indptr[client], pseudo_indptr[client + 1]):
            row = V[pseudo_items[place]]
            total = mean + bias
            for c in range(width):
                total += own[c] * row[c]
            out[place] = total


@section
def _shuffle(key: Any, n: int, draws: Any, numbers: Any, targets: Any, counted: Any, spare: Any, other: Any) -> None:
    """Put the rows into the round's order: ascending keyed draws of their items."""
    order = np.empty(n, np.int64)
    for j in range(n):
        draws[j] = mix(key, np.uint64(numbers[j]))
        order[j] = j
        spare[j], other[j] = targets[j], counted[j]
    sort_by(draws, order, n)
    rows = numbers[:n].copy()
    for j in range(n):
        at = order[j]
        numbers[j], targets[j], counted[j] = rows[at], spare[at], other[at]


@section
def _local_epochs(
    bias: Any,
    epochs: int,
    batch_size: int,
    rated_only: bool,
    rate: Any,
    decay: Any,
    trained: Any,
    rated: int,
    n: int,
    batches: int,
    targets: Any,
    counted: Any,
    own: Any,
    pull: Any,
    e: Any,
    dots: Any,
    table: Any,
    errors: Any,
    pushes: Any,
) -> Any:
    """K epochs of U steps and steps on the rows of V; returns the user bias. See ``parts/model/mf.py``.

    The rows are not moved here. A step takes V_j to (1 − η_L λ) V_j + e_j η_L U, so that after k of them

        V_j = (1 − η_L λ)^k V⁰_j + Σ_i (1 − η_L λ)^(k−1−i) e_ij push_i,   push_i = η_L U of epoch i.

    The table V⁰ is read twice an epoch and never written: ``errors`` and ``pushes`` keep e_i and push_i, of which
    ``_updates.py`` makes the rows' moves.
    """
    size = batch_size if batch_size > 0 else max(n, 1)
    keep = own.dtype.type(1) - rate * decay
    shrink = own.dtype.type(1)
    for epoch in range(epochs):
        for batch in range((n + size - 1) // size):
            a, b = batch * size, min(batch * size + size, n)
            # without batches the rated rows come first, so that a U step over them needs no mask, and rows are padded
            last = rated if rated_only and batch_size == 0 else b
            used = last - a
            b_padded, last_padded = (_whole(b), _whole(last)) if batch_size == 0 else (b, last)
            if epoch == 0 or batch_size > 0:  # otherwise they are known: U has not moved since
                _products(own, table, a, last_padded, dots)
            _errors(
                targets, bias, own, dots, shrink, keep, errors, pushes, epoch, batch, batches, a, last_padded, e,
            )  # fmt: skip
            _silence(e, last, last_padded)
            if rated_only and batch_size > 0:
                used = 0
                for j in range(a, b):
                    e[j] *= counted[j]
                    used += 1 if counted[j] > 0 else 0
            if used > 0:
                pull_bias = _pull(e, table, a, last_padded, pull)
                _pull_of_moves(e, shrink, keep, errors, pushes, epoch, batch, batches, a, last_padded, pull)
                bias = _move_user(own, bias, trained, pull, pull_bias, used, rate, decay)
            _products(own, table, a, b_padded, dots)
            _errors(
                targets, bias, own, dots, shrink, keep, errors, pushes, epoch, batch, batches, a, b_padded,
                errors[epoch],
            )  # fmt: skip
            for c in range(len(own)):
                pushes[epoch * batches + batch, c] = rate * own[c]
        shrink *= keep
    return bias


@inner
def _errors(
    targets: Any,
    bias: Any,
    own: Any,
    dots: Any,
    shrink: Any,
    keep: Any,
    errors: Any,
    pushes: Any,
    epoch: int,
    batch: int,
    batches: int,
    a: int,
    b: int,
    out: Any,
) -> None:
    """e_j = r_j − b − U·V_j for the rows a to b, of U·V⁰_j and the moves so far. See ``mf.errors``."""
    for j in range(np.uint64(a), np.uint64(b)):
        out[j] = targets[j] - bias - shrink * dots[j]
    fade = errors.dtype.type(1)
    for i in range(epoch - 1, -1, -1):
        lean = errors.dtype.type(0)
        for c in range(len(own)):
            lean += own[c] * pushes[i * batches + batch, c]
        lean *= fade
        for j in range(np.uint64(a), np.uint64(b)):
            out[j] -= lean * errors[i, j]
        fade *= keep


@section
def _pull_of_moves(
    e: Any,
    shrink: Any,
    keep: Any,
    errors: Any,
    pushes: Any,
    epoch: int,
    batch: int,
    batches: int,
    a: int,
    b: int,
    pull: Any,
) -> None:
    """Turn Σ_j e_j V⁰_j into Σ_j e_j V_j."""
    for c in range(len(pull)):
        pull[c] = shrink * pull[c]
    fade = errors.dtype.type(1)
    for i in range(epoch - 1, -1, -1):
        along = errors.dtype.type(0)
        for j in range(np.uint64(a), np.uint64(b)):
            along += e[j] * errors[i, j]
        along *= fade
        for c in range(len(pull)):
            pull[c] += along * pushes[i * batches + batch, c]
        fade *= keep
