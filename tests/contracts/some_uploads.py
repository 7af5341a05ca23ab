"""Uploads as a round might bring them, and the server that gets them."""

from __future__ import annotations

import numpy as np

from fedrecplus.config import Config, assign
from fedrecplus.protocol import Upload
from fedrecplus.rounds.server import ServerState, aggregate_of

ITEMS, COLUMNS = 9, 3


def settings_of(rule: str, *changes: str) -> Config:
    return assign(Config(), ["engine=reference", f"model.factors={COLUMNS}", f"aggregation.rule={rule}", *changes])


def some_uploads(clients: int = 7, seed: int = 0) -> list[Upload]:
    rng = np.random.default_rng(seed)
    uploads = []
    for client in range(clients):
        items = np.sort(rng.choice(ITEMS, rng.integers(1, ITEMS), replace=False))
        uploads.append(Upload(client, items, rng.normal(size=(len(items), COLUMNS))))
    return uploads


def server_state(seed: int = 1, spread: str = "none") -> ServerState:
    rng = np.random.default_rng(seed)
    V, step = rng.normal(size=(ITEMS, COLUMNS)), rng.normal(size=(ITEMS, COLUMNS))
    if spread == "none":
        return ServerState(3, V, step, np.zeros((0, COLUMNS)), [])
    if spread == "diagonal":
        return ServerState(3, V, step, rng.uniform(0.0, 2.0, (ITEMS, COLUMNS)), [])
    root = rng.normal(size=(V.size, V.size)) / np.sqrt(V.size)
    return ServerState(3, V, step, root @ root.T, [])


def aggregate(uploads: list[Upload], settings: Config, spread: str = "none") -> np.ndarray:
    return aggregate_of(server_state(spread=spread), uploads, settings)
