"""A finished training: its figures, as `result.json` holds them, and its model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, to_tables
from fedrecplus.errors import UserError
from fedrecplus.markdown import html_table
from fedrecplus.parts import VALIDATED
from fedrecplus.training.evaluation import Predictor
from fedrecplus.training.measures import Evaluation
from fedrecplus.training.model_files import PrivateParts, SharedModel, nobodys_parts
from fedrecplus.training.privacy import privacy_of
from fedrecplus.training.publishing import FROM_RATINGS, PUBLIC_LIST
from fedrecplus.training.recommender import Recommender
from fedrecplus.training.run_folder import RunFolder
from fedrecplus.training.running import Training, step_size


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
        "model": training.ended.model.rule,
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
        "privacy": privacy_of(config, public, most_numbers, training.ledger, training.spent),
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


@dataclass(frozen=True, repr=False)
class Run:
    """What a training gives: its figures, and the model."""

    config: Config
    """as it was asked for; ``result["learning_rate"]`` is what it was trained with in the end"""
    result: dict[str, Any]
    """what ``result.json`` holds"""
    recommender: Recommender
    folder: Path | None = None

    def __repr__(self) -> str:
        return f"Run({', '.join(f'{name} {value}' for name, value in self._shown())})"

    def _repr_html_(self) -> str:
        names, values = zip(*self._shown(), strict=True)
        return html_table(names, [values])

    def _shown(self) -> list[tuple[str, str]]:
        """What a person wants to see of a run."""
        result = self.result
        figures = {"MAE": result["mae"], "RMSE": result["rmse"], "NDCG@10": (result["ranking"] or {}).get("ndcg@10")}
        known = [(name, f"{value:.4f}") for name, value in figures.items() if value is not None]
        fold = [] if result.get("fold") is None else [("fold", str(result["fold"]))]
        place = [] if self.folder is None else [("folder", str(self.folder))]
        costs = [("rounds", str(result["rounds"])), ("seconds", f"{result['seconds']:.1f}")]
        return [("algorithm", result["algorithm"]), ("data", result["dataset"]), *fold, *known, *costs, *place]

    @property
    def mae(self) -> float:
        """Mean absolute error on the test ratings."""
        return self._tested("mae")

    @property
    def rmse(self) -> float:
        """Root mean squared error on the test ratings."""
        return self._tested("rmse")

    @property
    def nmse(self) -> float:
        """Squared error over squared ratings, on the test ratings."""
        return self._tested("nmse")

    @property
    def ranking(self) -> dict[str, Any]:
        """Ranking measures on the test ratings, such as ``ndcg@10``."""
        if self.result["ranking"] is None:
            raise UserError(
                "this run has no ranking: it was trained without test ratings, or on shards", "give test ratings"
            )
        return dict(self.result["ranking"])

    def _tested(self, name: str) -> float:
        if self.result[name] is None and self.result.get("likes_alone"):
            raise UserError(
                f"this run has no {name.upper()}: all its ratings are the same, so there is nothing to predict",
                'look at run.ranking["ndcg@10"]',
            )
        if self.result[name] is None:
            raise UserError(f"this run has no {name.upper()}: it was trained without test ratings", "give test ratings")
        return float(self.result[name])


def recommender_of(training: Training, predictor: Predictor | None) -> Recommender:
    """The trained model, with its clients' private parts beside it."""
    ratings, public = training.problem.ratings, training.problem.public
    titles, genres = (ratings.catalogue.titles, ratings.catalogue.genre_names) if ratings.catalogue else ((), ())
    V, dense = training.state.server.V, training.state.server.dense
    config = replace(training.ended, model=training.ended.model.with_head(training.state.server.head))
    if config.model.recency == VALIDATED:
        config = replace(config, model=config.model.with_settings(recency=training.decay))
    model = SharedModel(config, ratings.scale, V, public, ratings.item_ids, titles, genres, dense)
    if predictor is None:
        return Recommender(model, nobodys_parts())
    rows = (ratings.indptr, ratings.items, ratings.codes, ratings.client_ids)
    ages = ratings.ages() if config.model.CHOICES else None
    return Recommender(model, PrivateParts(predictor.W, *rows, predictor.Z, ages))


def finished_run(folder: RunFolder, config: Config) -> Run:
    """A run that came to its end before, read back."""
    rules = [chosen.rule for chosen in config.choices]  # what the caller asked for, it has imported already
    return Run(config, folder.result(), Recommender.load(folder.path, rules), folder.path)
