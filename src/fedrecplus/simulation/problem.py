"""What stays the same over all rounds of a simulation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation._covariance import check_full
from fedrecplus.config import Config, check, on_scale
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.scale import STANDARD_HIGH, STANDARD_LOW
from fedrecplus.encoders._catalogue import content_features
from fedrecplus.model import Shape, start_V
from fedrecplus.parts import part
from fedrecplus.protocol import PublicItems
from fedrecplus.randomness import keys, subkey, uniform
from fedrecplus.rounds.filling import pseudo_count, rates_by_features, selects_by_features
from fedrecplus.similarity import unit_rows


@dataclass(frozen=True)
class Problem:
    """Everybody's ratings, the settings, and what is public."""

    config: Config
    ratings: Ratings
    public: PublicItems
    mean: float
    """global mean on the standard scale; zero where the model has none"""
    pseudo_indptr: NDArray[np.int64]
    """client u's pseudo items have the places ``pseudo_indptr[u]:pseudo_indptr[u + 1]``"""

    @property
    def shape(self) -> Shape:
        """Columns of the tables."""
        return Shape.of(self.config.model)

    def secret(self, client: int) -> int:
        """A client's secret, from the seed: simulation only. A real device asks its operating system."""
        return int(keys(subkey(self.config.seed, "secrets"), np.array([client]))[0])

    def features(self, V: NDArray[np.float64]) -> NDArray[np.float64]:
        """Encoded items with unit rows, for this V."""
        encoder = part("encoders", self.config.pseudo_items.encoder)
        return unit_rows(encoder.encode(np.asarray(V, dtype=np.float64), self.public))

    @property
    def selects_by_features(self) -> bool:
        """Whether the choice of pseudo items looks at encoded items."""
        return selects_by_features(self.config)

    @property
    def rates_by_features(self) -> bool:
        """Whether virtual ratings look at encoded items."""
        return rates_by_features(self.config)

    def taking_part(self, round_number: int) -> NDArray[np.int64]:
        """Clients that are asked in a round and answer, ascending: those with ratings, sampled, not dropped out."""
        able = np.flatnonzero(np.diff(self.ratings.indptr) > 0)
        client = self.config.client
        if client.fraction < 1.0:
            draws = uniform(subkey(self.config.seed, "sampling", round_number), able)
            asked = max(1, round(client.fraction * len(able)))
            able = np.sort(able[np.argsort(draws, kind="stable")[:asked]])
        if client.dropout > 0.0:
            able = able[uniform(subkey(self.config.seed, "dropout", round_number), able) >= client.dropout]
        return able

    def denoisers(self, clients: NDArray[np.int64], round_number: int) -> NDArray[np.int64]:
        """The clients that denoise in a round of FedRec++, ascending."""
        share = self.config.aggregation.denoising
        if share == 0.0 or len(clients) == 0:
            return np.empty(0, dtype=np.int64)
        draws = uniform(subkey(self.config.seed, "denoisers", round_number), clients)
        return np.sort(clients[np.argsort(draws, kind="stable")[: max(1, round(share * len(clients)))]])


def prepare(ratings: Ratings, config: Config) -> Problem:
    """Check the settings against the ratings and gather what is public."""
    config = on_scale(check(config), ratings.scale)
    content = content_features(ratings.catalogue, ratings.item_count)
    years = np.zeros(0, np.int64) if ratings.catalogue is None else ratings.catalogue.years.astype(np.int64)
    public = PublicItems(content, ratings.item_counts(), item_averages(ratings), years)
    mean = float(ratings.standard_values.mean()) if config.model.global_mean and len(ratings) else 0.0
    sizes, of_client = np.unique(np.diff(ratings.indptr), return_inverse=True)
    counts = np.array(
        [pseudo_count(int(size), ratings.item_count, config.pseudo_items) for size in sizes], dtype=np.int64
    )
    indptr = np.concatenate([[0], np.cumsum(counts[of_client])]).astype(np.int64)
    problem = Problem(config, ratings, public, mean, indptr)
    _try_out(problem)
    return problem


def _try_out(problem: Problem) -> None:
    """Find out before the first round what the ratings and the settings can't do together."""
    config, items = problem.config, problem.ratings.item_count
    if config.aggregation.covariance == "full":
        check_full(items * problem.shape.v_columns)
    if problem.selects_by_features or problem.rates_by_features:
        problem.features(start_V(config.seed, items, config.model, problem.mean))


def item_averages(ratings: Ratings) -> NDArray[np.float64]:
    """Mean rating per item on the standard scale, held to the overall mean by a few ratings' weight.

    Ours: a simulation has no film site to look averages up on; the few ratings keep one or two from counting for too
    much. They hide nothing: with count and overall mean, the sum of an item's ratings follows.
    """
    sums = np.bincount(ratings.items, weights=ratings.standard_values, minlength=ratings.item_count)
    return np.asarray((sums + _CAUTION * mean_rating(ratings)) / (ratings.item_counts() + _CAUTION))


def mean_rating(ratings: Ratings) -> float:
    """Mean of all ratings on the standard scale; its middle where there are none."""
    return float(ratings.standard_values.mean()) if len(ratings) else (STANDARD_LOW + STANDARD_HIGH) / 2


_CAUTION = 5.0
