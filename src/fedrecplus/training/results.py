"""The figures of a finished training: what ``result.json`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fedrecplus.config import Config, to_tables
from fedrecplus.data.shards.read import ShardedRatings
from fedrecplus.training.attempt import Outcome, Task
from fedrecplus.training.divergence import step_size
from fedrecplus.training.judging import RatingsJudge
from fedrecplus.training.measures import Evaluation, measure
from fedrecplus.training.privacy import privacy_of
from fedrecplus.training.sharded import ShardJudge, largest_upload


def result_of(task: Task, outcome: Outcome, data: Mapping[str, Any]) -> dict[str, Any]:
    """Errors, lists, costs and settings. Without test ratings errors are null and ``fit`` has those of training.

    Errors are null for likes alone, too, where they mean nothing.
    """
    figures, found = outcome.scores.figures(), _evaluation(task, outcome)
    tested = found is not None
    return {
        "dataset": task.ratings.name,
        "algorithm": task.config.algorithm,
        "fold": data.get("fold"),
        "seed": task.config.seed,
        "mae": found.mae if found else None,
        "rmse": found.rmse if found else None,
        "nmse": found.nmse if found else None,
        "likes_alone": task.likes_alone,
        "ratings_by": task.config.model.RATINGS_BY,
        "simulation_only": task.config.simulation_only,
        "rounds": outcome.state.server.round,
        **channel_of(task.config),
        **outcome.tally.figures(),
        "train_ratings": len(task.ratings),
        "test_ratings": len(task.test) if task.test is not None else 0,
        "cold_test_ratings": figures["cold"] if tested else 0,
        "fit": None
        if tested or task.likes_alone
        else {name: figures[name] for name in ("mae", "rmse", "nmse", "ratings")},
        "groups": found.groups if found else None,
        "ranking": found.ranking or None if found else None,
        "privacy": privacy_of(task.config, outcome.problem.public, _most_numbers(outcome)),
        "statistics": {"source": outcome.problem.public.source, "epsilon": outcome.problem.public.epsilon},
        "retries": outcome.retries,
        "learning_rate": step_size(outcome.config)[1],
        "fingerprint": data.get("fingerprint"),
        "began_with": task.earlier.figures(task.ratings.item_ids) if task.earlier else None,
        "config": to_tables(task.config),
    }


def channel_of(config: Config) -> dict[str, Any]:
    """What the server saw: the channel, which rows a client sent, and whether a simulation's cryptography was real."""
    channel = config.channel
    return {"channel": channel.rule, "rows_sent": channel.rows, "masks": channel.computed}


def _most_numbers(outcome: Outcome) -> int:
    """Numbers in the largest upload."""
    if isinstance(outcome.problem.ratings, ShardedRatings):
        rows_sent = largest_upload(outcome.engine, outcome.problem, outcome.state)
        return rows_sent * int(outcome.state.server.V.shape[1])
    rows = np.diff(outcome.problem.ratings.indptr) + np.diff(outcome.problem.pseudo_indptr)
    return int(rows.max(initial=0)) * int(outcome.state.server.V.shape[1])


def _evaluation(task: Task, outcome: Outcome) -> Evaluation | None:
    """All measures on the test ratings: dearer than the error of a metrics line, so they come once, at the end."""
    if task.test is None:
        return None
    if isinstance(task.judge, ShardJudge):
        return task.judge.evaluation(outcome.engine, outcome.problem, outcome.state)
    assert isinstance(task.judge, RatingsJudge)
    assert outcome.predictor is not None
    least = task.config.evaluation.relevant_from
    return measure(task.ratings, task.test, outcome.predictor, task.judge.fallback, relevant_from=least)
