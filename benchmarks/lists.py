"""Lists of centralised peers and of ours on the same folds, in one run: NDCG@10, recall@10, and seconds of training.

Peers: popularity; EASE (Steck 2019); iALS (Hu, Koren and Volinsky 2008) as the package ``implicit`` has it. Their
settings are chosen on a validation cut of the training part, as ours were. Everybody is judged by the same code: every
item that a client hasn't rated competes, and a test item is relevant from 4 stars up.

``LISTS_DATA`` names the data set (default: ml-100k), ``LISTS_FOLDS`` how many of the five folds (default: 1),
``LISTS_PRESETS`` ours.
"""

from __future__ import annotations

import importlib
import itertools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks.line import Line
from fedrecplus.config import preset, presets
from fedrecplus.data import Ratings, load, split
from fedrecplus.errors import UserError
from fedrecplus.experiments.baselines import chosen, ease
from fedrecplus.experiments.trivial import global_mean
from fedrecplus.experiments.validation import tuning_cut
from fedrecplus.training import train
from fedrecplus.training.evaluation import Fallback, Predictor
from fedrecplus.training.ranking import rank

Fit = Callable[[Ratings], Predictor]
CHOSEN_FROM = 3.0
"""stars that make a rating a choice, for EASE and iALS"""
EASE_RIDGES = (150.0, 300.0, 500.0)
IALS = {"factors": (64, 128), "regularization": (10.0, 30.0, 100.0), "alpha": (4.0, 10.0), "iterations": (15,)}
OURS = ("fedmf", "fedrec+", "fedrec+secure")


def measure() -> list[Line]:
    """A line per system: mean NDCG@10 over the folds."""
    ratings = load(os.environ.get("LISTS_DATA", "ml-100k"))
    folds = range(int(os.environ.get("LISTS_FOLDS", "1")))
    ours = os.environ.get("LISTS_PRESETS", ",".join(OURS)).split(",")
    lines = [_of_peer("popularity", ratings, folds, global_mean, {})]
    lines.append(_tuned("EASE", ratings, folds, partial(ease, least=CHOSEN_FROM), {"ridge": EASE_RIDGES}))
    try:
        importlib.import_module("implicit")
        lines.append(_tuned("implicit's iALS", ratings, folds, ials, IALS))
    except ImportError as error:
        lines.append(Line("NDCG@10, implicit's iALS", None, "", "", {"error": str(error)}))
    return [*lines, *(_of_preset(name, ratings, folds) for name in ours if name in presets())]


def ials(training: Ratings, **settings: Any) -> Predictor:
    """``implicit``'s alternating least squares, on one thread, as ours."""
    als, sparse = importlib.import_module("implicit.als"), importlib.import_module("scipy.sparse")
    model = als.AlternatingLeastSquares(**settings, random_state=0, num_threads=1)
    model.fit(sparse.csr_matrix(chosen(training, CHOSEN_FROM)), show_progress=False)
    U = np.asarray(model.user_factors, dtype=np.float64)
    return Predictor(U, np.asarray(model.item_factors, dtype=np.float64), U)


def _judged(training: Ratings, test: Ratings, predictor: Predictor) -> dict[str, float]:
    fallback = replace(Fallback.of(training), ranked_item=np.ones(training.item_count, dtype=bool))
    found = rank(training, test, predictor, fallback, (10,))
    return {name: found[f"{name}@10"] for name in ("ndcg", "recall", "coverage")}


def _tuned(
    name: str, ratings: Ratings, folds: Iterable[int], fit: Callable[..., Predictor], grid: Mapping[str, Iterable[Any]]
) -> Line:
    """The settings with the best NDCG@10 on a validation cut of fold 0's training part, then all folds."""
    validation = tuning_cut(ratings)
    choices = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    found = [
        _judged(validation.fitted, validation.held_out, fit(validation.fitted, **each))["ndcg"] for each in choices
    ]
    best = choices[int(np.argmax(found))]
    return _of_peer(name, ratings, folds, partial(fit, **best), best)


def _of_peer(name: str, ratings: Ratings, folds: Iterable[int], fit: Fit, settings: dict[str, Any]) -> Line:
    rows, seconds = [], []
    for fold in folds:
        training, test = split(ratings, fold)
        started = time.perf_counter()
        predictor = fit(training)
        seconds.append(time.perf_counter() - started)
        rows.append(_judged(training, test, predictor))
    return _line(name, ratings, rows, seconds, settings)


def _of_preset(name: str, ratings: Ratings, folds: Iterable[int]) -> Line:
    rows, seconds, errors = [], [], []
    for fold in folds:
        training, test = split(ratings, fold)
        try:
            run = train(training, test, preset(name))
        except UserError as error:
            return Line(f"NDCG@10, {name}, {ratings.name}", None, "", "", {"error": error.problem})
        rows.append({measure: run.ranking[f"{measure}@10"] for measure in ("ndcg", "recall", "coverage")})
        seconds.append(run.result["seconds"])
        errors.append(run.result["rmse"])
    known = [error for error in errors if error is not None]
    return _line(name, ratings, rows, seconds, {"RMSE": float(np.mean(known))} if known else {})


def _line(
    name: str, ratings: Ratings, rows: list[dict[str, float]], seconds: list[float], more: dict[str, Any]
) -> Line:
    means = {measure: float(np.mean([row[measure] for row in rows])) for measure in rows[0]}
    parts = {"recall@10": means["recall"], "coverage@10": means["coverage"], "seconds": float(np.mean(seconds))}
    return Line(f"NDCG@10, {name}, {ratings.name}", means["ndcg"], "", "", {**parts, "folds": len(rows), **more})
