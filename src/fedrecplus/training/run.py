"""A finished training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedrecplus.config import Config
from fedrecplus.data.joining import join
from fedrecplus.data.ratings import Ratings
from fedrecplus.errors import UserError
from fedrecplus.markdown import html_table
from fedrecplus.parts.recency import VALIDATED
from fedrecplus.training.evaluation import Errors, Fallback, Predictor, errors_of
from fedrecplus.training.model_files import PrivateParts, SharedModel, nobodys_parts
from fedrecplus.training.recommender import Recommender
from fedrecplus.training.run_folder import RunFolder
from fedrecplus.training.running import Training


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

    def errors(self, training: Ratings, test: Ratings) -> Errors:
        """Errors by client, for paired tests."""
        training, test = join(training, test)
        model = self.recommender.model
        predictor = Predictor(self.recommender.clients.W, model.X, scored_by=model.scored_by)
        return errors_of(test, predictor.predict, Fallback.of(training, self.config, model.public))


def recommender_of(training: Training, predictor: Predictor | None) -> Recommender:
    """The trained model, with its clients' private parts beside it."""
    ratings, public = training.problem.ratings, training.problem.public
    titles, genres = (ratings.catalogue.titles, ratings.catalogue.genre_names) if ratings.catalogue else ((), ())
    V, dense = training.state.server.V, training.state.server.dense
    config = replace(training.config, model=training.config.model.with_head(training.state.server.head))
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
