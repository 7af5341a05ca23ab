"""A finished training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.training.evaluation import Factors, Fallback
from fedrecplus.training.groups import Errors, errors_of
from fedrecplus.training.model_files import PrivateParts, SharedModel
from fedrecplus.training.recommender import Recommender
from fedrecplus.training.run_folder import RunFolder


@dataclass(frozen=True)
class Run:
    """What a training gives: its figures, and the model."""

    config: Config
    """as it was asked for; ``result["learning_rate"]`` is what it was trained with in the end"""
    result: dict[str, Any]
    """what ``result.json`` holds"""
    recommender: Recommender
    folder: Path | None = None

    @property
    def mae(self) -> float:
        """Mean absolute error on the test ratings."""
        return float(self.result["mae"])

    @property
    def rmse(self) -> float:
        """Root mean squared error on the test ratings."""
        return float(self.result["rmse"])

    @property
    def nmse(self) -> float:
        """Squared error over squared ratings, on the test ratings."""
        return float(self.result["nmse"])

    def errors(self, training: Ratings, test: Ratings) -> Errors:
        """Errors by client, for paired tests."""
        clients, model = self.recommender.clients, self.recommender.model
        factors = Factors(clients.U, model.V, model.mean)
        return errors_of(test, factors.predict, Fallback.of(training, self.config), training)


def recommender_of(training: Ratings, factors: Factors, fallback: Fallback, config: Config) -> Recommender:
    """The trained model, with its clients' private parts beside it."""
    titles = training.catalogue.titles if training.catalogue else ()
    popularity = training.item_counts()
    model = SharedModel(
        config, training.scale, factors.V, factors.mean, fallback.mean, popularity, training.item_ids, titles
    )
    clients = PrivateParts(factors.U, training.indptr, training.items, training.codes, training.client_ids)
    return Recommender(model, clients)


def finished_run(folder: RunFolder, config: Config) -> Run:
    """A run that came to its end before, read back."""
    return Run(config, folder.result(), Recommender.load(folder.path), folder.path)
