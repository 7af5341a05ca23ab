"""How fast the CUDA engine is: client-rounds a second, growth with clients and items, and ten million clients."""

from __future__ import annotations

import argparse
import functools
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.cluster import BILLION
from benchmarks.cuda_data import made
from benchmarks.line import Line
from fedrecplus.arrays import torch_arrays
from fedrecplus.config import Config, assign
from fedrecplus.data import Ratings
from fedrecplus.engines import Problem, engine_of, item_columns, message_of, prepare
from fedrecplus.engines.cuda import fused
from fedrecplus.engines.cuda.ratings import CardRatings, no_pseudo_rows
from fedrecplus.engines.cuda.round import Cohort, Round
from fedrecplus.engines.fast.engine import weighing_of
from fedrecplus.training.evaluation import Fallback, Predictor, score

STEPS = ("model.factors=32", "model.local_epochs=5", "model.learning_rate=0.02", "model.init=uniform")
WEIGHTS = {"uniform": (), "wasserstein": ("aggregation.rule=wasserstein", "aggregation.temperature=0.33")}
LARGE = ("model.factors=32", "model.learning_rate=0.3", "model.regularisation=0.05")
"""one epoch, for growth and size"""
PER_CLIENT, MOST_ITEMS = 50, 100_000
ITEMS = (1_000, 10_000, 100_000, 1_000_000)


def speed(wanted: argparse.Namespace) -> list[Line]:
    """Client-rounds a second: 10⁶ clients × 128 rows, d=32, K=5, 60,000 items; and what a copy would take."""
    clients, rows, items = wanted.clients, 128, 60_000
    copied = _copy_rate()
    lines = [Line("copy on the card, bytes read and written", copied / 1e12, "TB/s")]
    for skew, told in ((0.0, "all items alike"), (1.5, "popular items more often")):
        ratings, _ = made(clients, rows, items, skew)
        for weights, changes in WEIGHTS.items():
            problem = prepare(ratings, assign(Config(), [*STEPS, *changes]))
            kernel, moving = (_kernel_seconds(problem, epochs) for epochs in (5, 0))
            whole = {fixed: _round_seconds(problem, fixed) for fixed in (False, True)}
            read_bytes = clients * (rows * (32 * 4 + 3) + 2 * 33 * 4)
            added_bytes = clients * rows * 32 * 4
            parts = {
                "kernel ms": 1e3 * kernel,
                "without epochs ms": 1e3 * moving,
                "read once at a copy's rate ms": 1e3 * read_bytes / copied,
                "share of a copy's rate": read_bytes / kernel / copied,
                "atomic additions GB": added_bytes / 1e9,
                "round ms": 1e3 * whole[False],
                "round in fixed order ms": 1e3 * whole[True],
            }
            goal = "≥ 100" if weights == "uniform" and not skew else ""
            what = f"client-rounds a second in the kernel, {weights}, {told}"
            lines.append(Line(what, clients / kernel / 1e6, "million", goal, parts))
            what = f"client-rounds a second in whole rounds, {weights}, {told}"
            over = {"kernel's share of a round": kernel / whole[False], **hours(clients, whole[False])}
            lines.append(Line(what, clients / whole[False] / 1e6, "million", "", over))
    return lines


def hours(clients: int, seconds: float) -> dict[str, float]:
    """What a billion client-rounds take, at so many seconds a round."""
    return {"hours for 10⁹ client-rounds": seconds * BILLION / clients / 3600}


def _copy_rate() -> float:
    source = torch.randn(1 << 30, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / _median_seconds(lambda: target.copy_(source))


def _kernel_seconds(problem: Problem, epochs: int) -> float:
    """Training and adding up alone, without the way to the card and back."""
    engine = engine_of(replace(problem.config, engine="cuda"))
    state, _ = engine.round(problem, engine.start(problem))
    known = CardRatings.of(problem, np.float32)
    cohort = Cohort.of(problem.able, known.counts(pseudo=False))
    message = message_of(problem, state)
    how = weighing_of(problem.config, message)
    assert how is not None, "these rules have kernels"
    some = Round(problem, state.private, message, no_pseudo_rows(known), cohort, how)
    steps = fused.steps_of(problem, some.message)._replace(epochs=epochs)
    tables, sums = fused.tables_of(some), some.sums()

    def once() -> None:
        for each in cohort.classes:
            fused.train_at_once(each, some.rows, steps, tables, sums)

    return _median_seconds(once)


def _round_seconds(problem: Problem, deterministic: bool) -> float:
    """A whole round, the server's half too."""
    engine = engine_of(replace(problem.config, engine="cuda", deterministic=deterministic))
    state, seconds = engine.start(problem), []
    for _ in range(6):
        began = time.perf_counter()
        state, _ = engine.round(problem, state)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds[2:]))


def _median_seconds(work: Callable[[], Any], repeats: int = 20) -> float:
    for _ in range(3):
        work()
    taken = []
    for _ in range(repeats):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        began.record()
        work()
        ended.record()
        torch.cuda.synchronize()
        taken.append(began.elapsed_time(ended) / 1e3)
    return float(np.median(taken))


def solves(wanted: argparse.Namespace) -> list[Line]:
    """What `joint` solves in its rounds, beside torch's batched Cholesky of the same systems and nothing else."""
    clients, items = wanted.clients // 20, 20_000
    ratings, _ = made(clients, PER_CLIENT, items, 1.0)
    return [_solved(ratings, factors) for factors in (64, 128)]


def _solved(ratings: Ratings, factors: int) -> Line:
    """Both tables with so many factors; the systems of a round, timed where it solves them, and solved again apart."""
    joint = (
        "model.rule=joint",
        "channel.rule=sums",
        f"model.factors={factors}",
        f"model.interaction_factors={factors}",
    )
    problem = prepare(ratings, assign(Config(), [*joint, "engine=cuda"]))
    engine, own, seen = engine_of(problem.config), torch_arrays.solve, list[tuple[int, int, float, float]]()

    def timed(gram: Any, moment: Any, columns: int) -> Any:
        unit = torch.eye(gram.shape[-1], dtype=gram.dtype, device=gram.device)[:, gram.shape[-1] - columns :]
        sides = torch.cat([moment[..., None], unit.expand(*gram.shape[:-1], columns)], -1)
        seconds = _median_seconds(lambda: own(gram, moment, columns), 3)
        plain = _median_seconds(lambda: torch.cholesky_solve(sides, torch.linalg.cholesky(gram)), 3)
        seen.append((len(gram), gram.shape[-1], seconds, plain))
        return own(gram, moment, columns)

    whole = _round_seconds(problem, False)
    state = engine.start(problem)
    torch_arrays.solve = timed
    try:
        engine.round(problem, state)
    finally:
        torch_arrays.solve = own
    count, taken, plain = (sum(each[place] for each in seen) for place in (0, 2, 3))
    parts = {
        "of a plain Cholesky's rate": plain / taken,
        "plain Cholesky, solves a second": count / plain,
        "numbers of a system": max(size for _, size, _, _ in seen),
        "solves in a round": count,
        "a round ms": 1e3 * whole,
        "solves' share of a round": taken / whole,
    }
    return Line(f"solves a second of joint, {factors} factors", count / taken / 1e6, "million", "≥ .6 of plain", parts)


def growth(wanted: argparse.Namespace) -> list[Line]:
    """Seconds of a round by clients, up to 10⁷ with 10⁵ items, and by items, up to 10⁶ with 10⁶ clients."""
    most = wanted.clients
    by_items = {items: _round_seconds(_large(most, items).problem, False) for items in ITEMS}
    counts = (most // 100, most // 10, most, 10 * most)
    held_out = {10 * most: most}  # as ``size`` has it, which then need not make it again
    by_clients = {
        count: _round_seconds(_large(count, MOST_ITEMS, held_out.get(count, 0)).problem, False) for count in counts
    }
    return [
        _grown(f"items, {most:,} clients", list(by_items), list(by_items.values()), [most] * len(ITEMS)),
        _grown(f"clients, {MOST_ITEMS:,} items", list(counts), list(by_clients.values()), list(counts)),
    ]


def _grown(what: str, sizes: Sequence[int], seconds: Sequence[float], clients: Sequence[int]) -> Line:
    """The largest size, those before it, and the exponents between them: one is linear."""
    exponents = np.diff(np.log(seconds)) / np.diff(np.log(sizes))
    told = ", ".join(f"{each:.2f}" for each in exponents)
    parts = {f"{size:,} ms": 1e3 * taken for size, taken in zip(sizes, seconds, strict=True)}
    parts |= hours(clients[-1], seconds[-1])
    return Line(f"a round on a card by {what}, exponents {told}", 1e3 * seconds[-1], "ms", "", parts)


class Large(NamedTuple):
    """A made-up problem, and the seconds that it took to make."""

    problem: Problem
    test: Ratings
    seconds: float


@functools.lru_cache(maxsize=1)
def _large(clients: int, items: int, held_out: int = 0) -> Large:
    clock = time.perf_counter()
    training, test = made(clients, PER_CLIENT, items, skew=1.0, held_out=held_out)
    problem = prepare(training, assign(Config(), [*LARGE, "engine=cuda"]))
    return Large(problem, test, time.perf_counter() - clock)


def size(wanted: argparse.Namespace) -> list[Line]:
    """10⁷ clients × 50 ratings × 10⁵ items on one card: 60 rounds, with evaluations on ratings that were held out."""
    clients, rounds = 10 * wanted.clients, 60
    problem, test, made_in = _large(clients, MOST_ITEMS, wanted.clients)
    clock, config = time.perf_counter(), problem.config
    fallback, engine = Fallback.of(problem.ratings, config), engine_of(config)
    state = engine.start(problem)
    prepared, in_rounds, in_evaluations, errors = made_in + time.perf_counter() - clock, 0.0, 0.0, {}
    torch.cuda.reset_peak_memory_stats()
    for number in range(1, rounds + 1):
        began = time.perf_counter()
        state, _ = engine.round(problem, state)
        in_rounds += time.perf_counter() - began
        if number % 10 == 0:
            began = time.perf_counter()
            assert np.isfinite(state.private.U).all(), "U is not finite"
            X = item_columns(problem, state.server.V)
            predictor = Predictor(engine.user_weights(problem, state.private, X), X)
            errors[f"RMSE after {number}"] = score(test, predictor.predict, fallback).rmse
            in_evaluations += time.perf_counter() - began
    parts = {
        "made and prepared s": prepared,
        "evaluations s": in_evaluations,
        "peak on the card GB": torch.cuda.max_memory_allocated() / 1e9,
        "peak on the host GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        **errors,
    }
    what = f"{rounds} rounds of {clients:,} clients × {PER_CLIENT} ratings × {MOST_ITEMS:,} items"
    rates = {"million client-rounds a second": rounds * clients / in_rounds / 1e6, **hours(rounds * clients, in_rounds)}
    return [Line(what, in_rounds, "s", "", {**rates, **parts})]
