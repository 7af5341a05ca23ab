"""A round of all clients at once. The same signature and the same result as ``simulation.simulate_round``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation._joining import divide
from fedrecplus.aggregation.wasserstein import SMALLEST
from fedrecplus.fast.local_training import READINGS, Rows, Steps, Weighing, train_clients
from fedrecplus.fast.pseudo import PseudoRows, pseudo_rows
from fedrecplus.fast.threads import chunks, on_threads
from fedrecplus.fast.traffic import report_of
from fedrecplus.fast.updates import left_by_decay
from fedrecplus.gradients import step_sizes, unevenness
from fedrecplus.model import prior
from fedrecplus.parts import part
from fedrecplus.randomness import purpose, subkey
from fedrecplus.rounds.server import apply, global_rate
from fedrecplus.simulation import Problem, RoundReport, SimulationState
from fedrecplus.simulation import simulate_round as reference_round

_WEIGHING_KERNELS = {"uniform", "wasserstein"}


def simulate_round(problem: Problem, state: SimulationState) -> tuple[SimulationState, RoundReport]:
    """One round of everybody. A rule without a kernel is run by its own file: aggregation rules in the reference
    engine, the others client by client. See ``simulation/reference.py``."""
    rule = problem.config.aggregation.rule
    if hasattr(part("aggregation", rule), "aggregate"):
        from fedrecplus.fast.robust import robust_round  # here: it is built on this file

        return robust_round(problem, state)
    if rule not in _WEIGHING_KERNELS:
        return reference_round(problem, state)
    clients = problem.taking_part(state.server.round)
    state, pseudo = pseudo_rows(problem, state, clients)
    U = state.U.copy()
    target = state.server.last_step
    if problem.config.aggregation.rule == "wasserstein" and problem.config.aggregation.global_step == "mean":
        rate = global_rate(problem.config, state.server.round)
        target = (rate * _sum(problem, state, clients, pseudo, U, target, dry=True).aggregate).astype(target.dtype)
    sums = _sum(problem, state, clients, pseudo, U, target, dry=False)
    server = apply(state.server, sums.aggregate, sums.spread, problem.config)
    return replace(state, server=server, U=U), report_of(problem, state, clients, pseudo)


class _Sums:
    """What the chunks of a round add up to."""

    def __init__(
        self, problem: Problem, parts: list[tuple[Any, Any, Any, float]], left: NDArray[Any], clients: int
    ) -> None:
        total, per_item, spread, overall = parts[0]
        for more_total, more_per_item, more_spread, more_overall in parts[1:]:
            total += more_total
            per_item += more_per_item
            spread += more_spread
            overall += more_overall
        dtype = total.dtype
        total += per_item.astype(dtype)[:, None] * left
        self.aggregate: NDArray[Any] = divide(total, per_item, overall, problem.config.aggregation).astype(dtype)
        self.spread: NDArray[Any] = spread / max(clients, 1)


def _sum(
    problem: Problem,
    state: SimulationState,
    clients: NDArray[np.int64],
    pseudo: PseudoRows,
    U: NDArray[Any],
    target: NDArray[Any],
    dry: bool,
) -> _Sums:
    """Train all clients of the round and add up their weighted updates."""
    V, last_spread = state.server.V, state.server.last_spread
    count = np.diff(problem.ratings.indptr) + np.diff(pseudo.indptr)
    steps = _steps(problem, state)
    left = left_by_decay(V, steps)
    how = _weighing(problem, state, left, target, dry)

    def work(part: NDArray[np.int64]) -> tuple[Any, Any, Any, float]:
        total, per_item, spread = np.zeros_like(V), np.zeros(len(V)), np.zeros_like(last_spread)
        rows = _rows(problem, pseudo, int(count[part].max()))
        return total, per_item, spread, train_clients(part, rows, steps, how, V, U, not dry, total, per_item, spread)

    parts = on_threads(work, chunks(clients, count))
    if not parts:
        parts = [(np.zeros_like(V), np.zeros(len(V)), np.zeros_like(last_spread), 0.0)]
    return _Sums(problem, parts, left, len(clients))


def _rows(problem: Problem, pseudo: PseudoRows, largest: int) -> Rows:
    ratings, mean = problem.ratings, pseudo.levels.dtype.type(problem.mean)
    return Rows(
        ratings.indptr, ratings.items, ratings.codes, pseudo.levels,
        pseudo.indptr, pseudo.items, pseudo.ratings, mean, largest,
    )  # fmt: skip


def _steps(problem: Problem, state: SimulationState) -> Steps:
    config, dtype = problem.config, state.server.V.dtype
    sizes = step_sizes(config, state.server.round)
    U_prior, V_prior = prior(config.model, problem.mean)
    uneven = unevenness(state.server.V, config.model.factors) if sizes.contrast != 1.0 else np.zeros(0)
    return Steps(
        dtype.type(sizes.rate), dtype.type(sizes.decay_V), dtype.type(sizes.decay_U),
        sizes.trained.astype(dtype), sizes.contrast, uneven, U_prior.astype(dtype), V_prior.astype(dtype),
        config.client.local_epochs, config.client.batch_size, config.client.u_step == "rated",
        np.uint64(subkey(config.seed, "secrets")), np.uint64(purpose("batches")), np.uint64(state.server.round),
    )  # fmt: skip


def _weighing(
    problem: Problem, state: SimulationState, left: NDArray[Any], target: NDArray[Any], dry: bool
) -> Weighing:
    how, spread, apart = problem.config.aggregation, state.server.last_spread, left - target
    target_sizes = np.einsum("ic,ic->i", target, target, dtype=np.float64)
    return Weighing(
        how.rule == "wasserstein" and how.temperature > 0 and not dry, READINGS[how.rows], how.covariance == "diagonal",
        left, apart, np.einsum("ic,ic->i", apart, apart, dtype=np.float64), target_sizes, spread,
        float(target_sizes.sum()), float(spread.sum(dtype=np.float64)),
        how.temperature, how.bound, SMALLEST, how.denoising > 0.0,
    )  # fmt: skip
