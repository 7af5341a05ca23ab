"""The figures of a finished training: what ``result.json`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedrecplus.config import to_tables
from fedrecplus.training.attempt import Outcome, Task
from fedrecplus.training.divergence import step_size
from fedrecplus.training.groups import by_group, errors_of
from fedrecplus.training.privacy import privacy_of
from fedrecplus.training.ranking import rank


def result_of(task: Task, outcome: Outcome, data: Mapping[str, Any]) -> dict[str, Any]:
    """Errors, costs and settings. Without test ratings the errors are null and ``fit`` has those of training."""
    figures = outcome.scores.figures()
    tested = task.test is not None
    return {
        "dataset": task.ratings.name,
        "algorithm": task.config.algorithm,
        "fold": data.get("fold"),
        "seed": task.config.seed,
        "mae": figures["mae"] if tested else None,
        "rmse": figures["rmse"] if tested else None,
        "nmse": figures["nmse"] if tested else None,
        "rounds": task.config.server.rounds,
        **outcome.tally.figures(),
        "train_ratings": len(task.ratings),
        "test_ratings": len(task.test) if task.test is not None else 0,
        "cold_test_ratings": figures["cold"] if tested else 0,
        "fit": None if tested else {name: figures[name] for name in ("mae", "rmse", "nmse", "ratings")},
        **_further_figures(task, outcome),
        "privacy": privacy_of(task.config, outcome.problem.public, _most_numbers(outcome)),
        "statistics": {"source": outcome.problem.public.source, "epsilon": outcome.problem.public.epsilon},
        "retries": outcome.retries,
        "learning_rate": step_size(outcome.config)[1],
        "fingerprint": data.get("fingerprint"),
        "config": to_tables(task.config),
    }


def _most_numbers(outcome: Outcome) -> int:
    """Numbers in the largest upload."""
    rows = np.diff(outcome.problem.ratings.indptr) + np.diff(outcome.problem.pseudo_indptr)
    return int(rows.max(initial=0)) * int(outcome.state.server.V.shape[1])


def _further_figures(task: Task, outcome: Outcome) -> dict[str, Any]:
    """Error by group and ranking metrics: dearer than the error itself, so they are computed once, at the end."""
    if task.test is None:
        return {"groups": None, "ranking": None}
    errors = errors_of(task.test, outcome.predictor.predict, task.fallback, task.ratings)
    return {
        "groups": by_group(errors, task.ratings),
        "ranking": rank(task.ratings, task.test, outcome.predictor, task.fallback),
    }
