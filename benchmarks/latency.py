"""A list right after a rating, over as many items as a large shop has: the device's fold-in and all scores."""

from __future__ import annotations

import time

import numpy as np

import fedrecplus as fr
from benchmarks.line import Line
from fedrecplus.protocol import PublicItems
from fedrecplus.training import SharedModel

ITEMS, RATED, TIMES = 60_000, 200, 15


def measure() -> list[Line]:
    """With and without a table of what comes next: processor time of one list, the median of some."""
    return [_of_model(rule) for rule in ("joint", "sequence")]


def _of_model(rule: str) -> Line:
    model = _untrained(rule)
    recommender, rng = fr.Recommender.for_newcomers(model), np.random.default_rng(0)
    ratings = {int(item): float(1 + item % 5) for item in rng.choice(ITEMS, RATED, replace=False)}
    recommender.fold_in(ratings).top_items(10)  # what is computed once after a model came
    spent = []
    for item in rng.integers(0, ITEMS, TIMES).tolist():
        ratings[item] = 5.0
        began = time.process_time()
        recommender.fold_in(ratings).top_items(10)
        spent.append(1000 * (time.process_time() - began))
    parts = {"least": min(spent), "most": max(spent), "columns": model.X.shape[1]}
    return Line(f"a list after a rating, model {rule}, {ITEMS:,} items", float(np.median(spent)), "ms", "≤ 20", parts)


def _untrained(rule: str) -> SharedModel:
    """Its table is noise: time doesn't depend on what is in it."""
    rng = np.random.default_rng(1)
    config = fr.assign(fr.preset("fedrec+secure"), [f"model.rule={rule}", "model.recency=3"])
    public = PublicItems(
        content=(rng.random((ITEMS, 18)) < 0.1).astype(np.float64),
        popularity=(5000 / np.arange(1, ITEMS + 1) ** 0.8).astype(np.int64) + 1,
        average=rng.normal(3.5, 0.4, ITEMS),
        years=np.zeros(ITEMS, np.int64),
        mean=3.5,
        people=5000,
    )
    V = rng.normal(0.0, 0.3, (ITEMS, config.model.columns)).astype(np.float32)
    titles = tuple(f"title {item}" for item in range(ITEMS))
    return SharedModel(config, fr.Scale.parse("1:5:1"), V, public, np.arange(ITEMS), titles)
