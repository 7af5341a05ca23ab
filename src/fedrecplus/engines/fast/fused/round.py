"""Rounds of ``mf`` and ``biased-mf``: train clients, weigh their updates, add them up. See ``parts/model/mf.py``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import kernel
from fedrecplus.device import Device
from fedrecplus.engines.fast.chunks import chunks
from fedrecplus.engines.fast.fused._columns import gather, move_user, products, pull_on_user, silence, stride, whole
from fedrecplus.engines.fast.fused._epochs import local_epochs
from fedrecplus.engines.fast.fused._updates import add_weighted, distance_of, row_updates
from fedrecplus.engines.fast.rows import PseudoRows
from fedrecplus.engines.fast.weighing import Weighing, add_chunks, weight_at
from fedrecplus.engines.interface import Clients
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState
from fedrecplus.parts.model import Model, mf
from fedrecplus.protocol import Broadcast, Sums
from fedrecplus.workers import on_threads


class Steps(NamedTuple):
    """How a client trains."""

    mean: Any
    """global mean, zero where the model has none"""
    rate: Any
    decay: Any
    trained: Any
    epochs: int
    rated_only: bool
    fades: Any
    """what decay leaves of each epoch's move at the end; zero where there is no epoch"""


class EpochScratch(NamedTuple):
    """Arrays that local training works in, large enough for the client with most rows."""

    own: Any
    pull: Any
    table: Any
    targets: Any
    dots: Any
    errors: Any
    """of each epoch; the last ones are those of U steps"""
    pushes: Any
    numbers: Any

    @classmethod
    def of(cls, V: NDArray[Any], steps: Steps, largest: int) -> EpochScratch:
        """For so many rows."""
        padded, rows, slots = (V.shape[1] + 3) // 4 * 4, whole(largest), len(steps.fades)
        shapes = [padded, padded, (padded, stride(largest)), rows, rows, (slots + 1, rows), (slots, padded)]
        return cls._make([*(np.zeros(shape, V.dtype) for shape in shapes), np.empty(largest, np.int64)])


class FusedTarget(NamedTuple):
    """What distances are measured to, where Δ is what decay does to a row, the same for everybody, and the rest."""

    apart: Any
    """what decay does less the global step"""
    apart_sizes: Any
    """Σ apart² of each row"""
    step_sizes: Any
    """Σ step² of each row"""
    whole_step: float
    """Σ step² over the whole table"""

    @classmethod
    def of(cls, left: NDArray[Any], step: NDArray[Any]) -> FusedTarget:
        """Distances from Δ = left + moved to the step."""
        apart, sizes = left - step, np.einsum("ic,ic->i", step, step, dtype=np.float64)
        return cls(apart, np.einsum("ic,ic->i", apart, apart, dtype=np.float64), sizes, float(sizes.sum()))


def serves(model: Model[Any]) -> bool:
    """Steps over all of a client's rows at once; batches run through the model's own file."""
    return isinstance(model, mf.Mf) and model.is_built_in and model.settings.batch_size == 0


def train(
    problem: Problem,
    private: PrivateState,
    message: Broadcast,
    pseudo: PseudoRows,
    weighing: Weighing,
    clients: Clients,
) -> tuple[Sums, NDArray[Any]]:
    """Train these clients and add up their weighted updates; returns everybody's U besides."""
    V, U, steps, rows = message.V, private.U.copy(), steps_of(problem, message), pseudo.rows(problem)
    counts, left = (
        np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr),
        left_by_decay(message.V, steps),
    )
    nothing = np.zeros((0, V.shape[1]), V.dtype)
    target = FusedTarget.of(left, message.last_step) if weighing.distances else FusedTarget.of(nothing, nothing)

    def work(part: Clients) -> tuple[Any, Any, float]:
        total, per_item, largest = np.zeros_like(V), np.zeros(len(V)), int(counts[part].max())
        scratch = EpochScratch.of(V, steps, largest)
        moved = np.empty((largest, V.shape[1]), V.dtype)  # each client's in turn
        weight = train_clients(part, rows, scratch, steps, weighing, target, V, U, moved, total, per_item)
        return total, per_item, float(weight)

    sums = add_chunks(on_threads(work, chunks(clients, counts, len(V))), V, len(clients))
    return replace(sums, total=sums.total + sums.weights.astype(V.dtype)[:, None] * left), U


def predict(problem: Problem, device: Device, message: Broadcast, items: Any, steps: int) -> NDArray[Any]:
    """Predictions of a batch of clients, after so many more U steps over their rated rows."""
    V, local, predicted = message.V, steps_of(problem, message), np.zeros(items.shape, message.V.dtype)
    scratch = EpochScratch.of(V, local, device.items.shape[1])
    predict_longer(device.items, device.ratings, items, device.U, V, steps, local, scratch, predicted)
    return predicted


def steps_of(problem: Problem, message: Broadcast) -> Steps:
    """How clients train in a round."""
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


def left_by_decay(V: NDArray[Any], steps: Steps) -> NDArray[Any]:
    """What K steps of decay alone move each row of V by: (keep^K − 1) V. The rest of Δ is in ``row_updates``."""
    keep = 1.0 - float(steps.rate) * float(steps.decay)
    return ((keep**steps.epochs - 1.0) * V.astype(np.float64)).astype(V.dtype)


@kernel
def train_clients(
    clients: Any,
    rows: Any,
    scratch: Any,
    steps: Any,
    weighing: Any,
    target: Any,
    V: Any,
    U: Any,
    moved: Any,
    total: Any,
    per_item: Any,
) -> float:
    """Local training of some clients; their weighted updates are added up. Returns the sum of weights.

    An update is what decay does to a row, which is the same for everybody (``left``, times ``per_item``), and the rest
    of it, which is added to ``total``.
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
    for client in clients:
        first, rated = indptr[client], indptr[client + 1] - indptr[client]
        pseudo_first, pseudo = pseudo_indptr[client], pseudo_indptr[client + 1] - pseudo_indptr[client]
        n = rated + pseudo
        for j in range(rated):
            numbers[j] = items[first + j]
            targets[j] = levels[codes[first + j]] - mean
        for j in range(pseudo):
            numbers[rated + j] = pseudo_items[pseudo_first + j]
            targets[rated + j] = virtual_ratings[pseudo_first + j] - mean
        gather(V, numbers, n, table)
        for c in range(width):
            own[c] = U[client, c]
        used = rated if steps.rated_only else n
        U[client, width] = local_epochs(
            U[client, width], epochs, used, n, rate, decay, trained, targets, own, pull, dots, table, errors, pushes
        )
        for c in range(width):
            U[client, c] = own[c]
        if weighing.rated_rows_only:  # pseudo rows shall not count
            n = rated
        row_updates(numbers, n, epochs, fades, errors, pushes, not weighing.distances, moved, total)
        weight = 1.0
        if weighing.distances:
            distance, own_step = distance_of(apart, numbers, n, moved), 0.0
            for j in range(n):
                distance += apart_sizes[numbers[j]]
                own_step += step_sizes[numbers[j]]
            weight = weight_at(distance, own_step, n, weighing, target.whole_step)
            add_weighted(weight, numbers, n, moved, total)
        all_weights += weight
        for j in range(n):
            per_item[numbers[j]] += weight
    return all_weights


@kernel
def predict_longer(
    items: Any, ratings: Any, wanted: Any, U: Any, V: Any, more: int, steps: Any, scratch: Any, predicted: Any
) -> None:
    """Predictions from a U that was stepped on over the rated rows with V fixed. See ``mf.predict``."""
    mean, rate, decay, trained = steps.mean, steps.rate, steps.decay, steps.trained
    own, pull, table = scratch.own, scratch.pull, scratch.table
    targets, e, numbers = scratch.targets, scratch.dots, scratch.numbers
    width = V.shape[1]
    start = np.int64(0)  # a plain 0 is a type of its own, for which all would be compiled again
    for client in range(len(items)):
        n = np.int64(0)
        while n < items.shape[1] and items[client, n] >= 0:
            numbers[n], targets[n] = items[client, n], ratings[client, n] - mean
            n += 1
        for c in range(width):
            own[c] = U[client, c]
        bias = U[client, width]
        if more > 0:
            gather(V, numbers, n, table)
        padded_n = whole(n)
        for _ in range(more):
            products(own, table, start, padded_n, e)
            for j in range(np.uint64(padded_n)):
                e[j] = targets[j] - bias - e[j]
            silence(e, n, padded_n)
            pull_bias = pull_on_user(e, table, start, padded_n, pull)
            bias = move_user(own, bias, trained, pull, pull_bias, n, rate, decay)
        for place in range(wanted.shape[1]):
            if wanted[client, place] >= 0:
                row, total = V[wanted[client, place]], mean + bias
                for c in range(width):
                    total += own[c] * row[c]
                predicted[client, place] = total
