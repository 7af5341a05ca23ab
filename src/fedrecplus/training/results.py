"""The figures of a finished training: what ``result.json`` holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrecplus.config import Config, to_tables
from fedrecplus.training.divergence import step_size
from fedrecplus.training.measures import Evaluation
from fedrecplus.training.privacy import privacy_of
from fedrecplus.training.publishing import FROM_RATINGS, PUBLIC_LIST
from fedrecplus.training.running import Training


def result_of(training: Training, evaluation: Evaluation | None, data: Mapping[str, Any]) -> dict[str, Any]:
    """Errors, lists, costs and settings. Without test ratings errors are null and ``fit`` has those of training.

    Errors are null for likes alone, too, where they mean nothing.
    """
    config, ratings, public = training.config, training.problem.ratings, training.problem.public
    assert training.scored is not None
    most_numbers = training.largest_upload() * int(training.state.server.V.shape[1])
    scores, tested = training.scored.scores.figures(), evaluation is not None
    fit = {name: scores[name] for name in ("mae", "rmse", "nmse", "ratings")}
    return {
        "dataset": ratings.name,
        "algorithm": config.algorithm,
        "fold": data.get("fold"),
        "seed": config.seed,
        **{name: getattr(evaluation, name, None) for name in ("mae", "rmse", "nmse")},
        "likes_alone": training.likes_alone,
        "ratings_by": config.model.RATINGS_BY,
        "recency": training.decay,
        "simulation_only": config.simulation_only,
        "leaky_negatives": config.model.leaks,
        "rounds": training.state.server.round,
        **channel_of(config),
        **training.tally.figures(),
        "train_ratings": len(ratings),
        "test_ratings": len(training.test) if training.test is not None else 0,
        "cold_test_ratings": scores["cold"] if tested else 0,
        "fit": None if tested or training.likes_alone else fit,
        "groups": evaluation.groups if evaluation else None,
        "ranking": evaluation.ranking or None if evaluation else None,
        "privacy": privacy_of(config, public, most_numbers, training.ledger),
        "statistics": {"source": public.source, "epsilon": public.epsilon},
        "item_list": PUBLIC_LIST if ratings.listed else FROM_RATINGS,
        "retries": training.retries,
        "learning_rate": step_size(training.problem.config)[1],
        "fingerprint": data.get("fingerprint"),
        "choice": data.get("choice"),
        "began_with": training.earlier.figures(ratings.item_ids) if training.earlier else None,
        "chosen": config.model.head_changes(training.state.server.head),
        "config": to_tables(config),
        "made": data["made"],
    }


def channel_of(config: Config) -> dict[str, Any]:
    """What the server saw: the channel, which rows a client sent, and whether a simulation's cryptography was real."""
    channel = config.channel
    return {"channel": channel.rule, "rows_sent": channel.rows, "masks": channel.computed}
