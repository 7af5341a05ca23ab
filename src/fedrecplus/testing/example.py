"""A small training to try a part in: few clients, skewed popularity, a catalogue, and a low-rank truth."""

from __future__ import annotations

import functools
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import NOTHING
from fedrecplus.config import Config, assign
from fedrecplus.data import Catalogue, Ratings, Scale
from fedrecplus.device import Device
from fedrecplus.engines import Problem, SimulationState, device_of, engine_of, message_of, prepare
from fedrecplus.protocol import Broadcast

_USUAL = (
    "precision=float64", "seed=5", "model.factors=4", "model.learning_rate=0.2", "pseudo_items.rule=similar",
    "virtual_ratings.rule=weighted", "encoder.rule=centred", "aggregation.rule=uniform",
    "simulation_only=true", "seeded_noise=true",
)  # fmt: skip


def example_config(*changes: str) -> Config:
    """A training in which every kind of part has something to do, with changes as for ``--set``.

    >>> example_config("model.factors=3").model.settings.factors
    3
    """
    rules = {change.partition("=")[0] for change in changes if change.partition("=")[0].endswith(".rule")}
    usual = [change for change in _USUAL if change.partition("=")[0] not in rules]
    if "model.rule" in rules:  # a model need not have the options of another
        usual = [change for change in usual if not change.startswith("model.")]
    return assign(assign(Config(), usual), changes)


def small_ratings(clients: int = 30, items: int = 40, seed: int = 0, scale: Scale | None = None) -> Ratings:
    """Made-up ratings on any scale, the same for the same arguments."""
    scale = scale or Scale(1.0, 5.0, 1.0)
    rng = np.random.default_rng(seed)
    popularity = 1.0 / np.arange(1, items + 1) ** 0.7
    counts = rng.integers(2, max(3, items // 3), clients)
    rows = [np.sort(rng.choice(items, n, replace=False, p=popularity / popularity.sum())) for n in counts]
    U, V = rng.normal(size=(clients, 3)), rng.normal(size=(items, 3))
    taste = np.concatenate([U[u] @ V[row].T for u, row in enumerate(rows)])
    levels = np.clip(np.rint((scale.levels - 1) * (0.6 + 0.15 * taste)), 0, scale.levels - 1)
    catalogue = Catalogue(
        titles=tuple(f"Item {i}" for i in range(items)),
        years=rng.integers(1950, 2000, items).astype(np.int16),
        genres=V > 0.5,
        genre_names=("a", "b", "c"),
    )
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Ratings(
        "small", scale, indptr, np.concatenate(rows).astype(np.uint16), levels.astype(np.uint8),
        np.arange(clients), np.arange(items), catalogue, listed=True,
    )  # fmt: skip


@functools.cache
def example_problem(*changes: str, scale: Scale | None = None) -> Problem:
    """The example's training on its ratings."""
    return prepare(small_ratings(scale=scale), example_config(*changes))


def state_after(problem: Problem, rounds: int, engine: str = "reference") -> SimulationState:
    """The state after some rounds, so that V, the last step and U are more than start values."""
    runs = engine_of(replace(problem.config, engine=engine))
    state = runs.start(problem)
    for _ in range(rounds):
        state, _ = runs.round(problem, state)
    return state


@functools.cache
def example_round(*changes: str, scale: Scale | None = None) -> tuple[Problem, Broadcast, list[Device]]:
    """The problem, the broadcast of its second round and all devices, none of which keeps pseudo items yet.

    Their arrays can't be written: a part that changes what it is given fails.
    """
    problem = example_problem(*changes, scale=scale)
    state = state_after(problem, 1)
    message = read_only(message_of(problem, state))
    read_only(message.public)
    clients = range(problem.ratings.clients)
    devices = [read_only(replace(device_of(problem, state.private, client), kept=None)) for client in clients]
    return problem, message, devices


def read_only(value: Any) -> Any:
    """The same dataclass with arrays that can't be written."""
    for field in fields(value):
        inner = getattr(value, field.name)
        if isinstance(inner, np.ndarray):
            inner.flags.writeable = False
    return value


def batch_of(devices: list[Device]) -> Device:
    """Some clients as one batch: a line each, item −1 after the last."""
    items, ratings = in_lines([one.items for one in devices], NOTHING), in_lines([one.ratings for one in devices])
    clients: Any = np.array([device.client for device in devices])
    secrets: Any = np.array([device.secret for device in devices], np.uint64)
    ages = None if devices[0].ages is None else in_lines([np.asarray(device.ages) for device in devices])
    U = np.stack([device.U for device in devices])
    return Device(clients, items, ratings, devices[0].step, U, secrets, ages=ages)


def in_lines(rows: list[NDArray[Any]], beyond: Any = 0) -> NDArray[Any]:
    """Rows of different lengths as one array, padded."""
    table = np.full((len(rows), max(len(row) for row in rows)), beyond, rows[0].dtype)
    for line, row in enumerate(rows):
        table[line, : len(row)] = row
    return table
