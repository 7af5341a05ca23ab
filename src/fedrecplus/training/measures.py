"""All measures of a model on test ratings: errors, lists, and both by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.data import Ratings, RatingsLike, join, load
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.markdown import html_table
from fedrecplus.parts import recency_weights
from fedrecplus.training.evaluation import Errors, Fallback, Predictor, errors_of
from fedrecplus.training.groups import by_group, tail_items
from fedrecplus.training.ranking import DEPTHS, LIKED, Lists, lists_of
from fedrecplus.training.recency import asks_what_is_next
from fedrecplus.training.recommender import Recommender, places_among


@dataclass(frozen=True, repr=False)
class Evaluation:
    """How far predictions are from test ratings, and how good lists are."""

    mae: float | None
    """None, like all errors, where the data are likes alone: all ratings are the same, and predicting it is no art"""
    rmse: float | None
    nmse: float | None
    ratings: int
    """test ratings"""
    cold: int
    """of these, how many had a client or an item without training ratings"""
    groups: dict[str, dict[str, Any]]
    """errors of clients with few ratings, of tail items, and of the worst tenth of clients"""
    ranking: dict[str, Any]
    """``ndcg@10`` and its like, ``coverage@10``, ``popularity@10``, ``clients``, ``left_out``, and ``groups``"""
    rmse_by_client: NDArray[np.float64] = field(repr=False)
    """not a number for a client without test ratings"""
    ndcg_by_client: NDArray[np.float64] = field(repr=False)
    """NDCG@10, else of the next longer list, else of the longest; not a number without a relevant item"""

    def __repr__(self) -> str:
        cells = (f"{name} {cell}" for name, cell in self._cells().items())
        return f"Evaluation({', '.join(cells)}; {self.ratings:,} test ratings, {self.cold:,} of them cold)"

    def _repr_html_(self) -> str:
        cells = self._cells()
        below = [f"{self.ratings:,} test ratings, {self.cold:,} of them of cold users or items"]
        return html_table(list(cells), [list(cells.values())], below=below)

    def _cells(self) -> dict[str, str]:
        """The errors, and NDCG of every length: a line; ``to_frame`` has the rest."""
        shown = {name: value for name, value in self._figures().items() if "@" not in name or "ndcg" in name}
        return {name.upper(): "–" if value is None else f"{value:.4f}" for name, value in shown.items()}

    def _figures(self) -> dict[str, float | None]:
        """Errors, and all measures of lists."""
        lists = {name: value for name, value in self.ranking.items() if "@" in name}
        return {"mae": self.mae, "rmse": self.rmse, "nmse": self.nmse, **lists}

    def to_frame(self, backend: str = "polars") -> Any:
        """A row per figure, with columns figure, group and value; the group is ``all``, or the name of one."""
        rows = [("all", name, value) for name, value in self._figures().items()]
        by_name = [*self.groups.items(), *self.ranking.get("groups", {}).items()]
        rows += [(group, name, value) for group, figures in by_name for name, value in figures.items()]
        groups, names, values = zip(*rows, strict=True)
        numbers = [None if value is None else float(value) for value in values]
        from fedrecplus.data import frame_of  # here: a node measures without polars

        return frame_of({"group": list(groups), "figure": list(names), "value": numbers}, backend)

    def __getitem__(self, name: str) -> float | None:
        """A figure by its name: ``rmse``, ``ndcg@10``."""
        known = {**self.ranking, "mae": self.mae, "rmse": self.rmse, "nmse": self.nmse}
        if name not in known:
            raise unknown_name("figure", name, known)
        value: float | None = known[name]
        return value


def evaluate(
    model: Any,
    training: RatingsLike,
    test: RatingsLike,
    at: Sequence[int] = DEPTHS,
    relevant_from: float | None = None,
) -> Evaluation:
    """Judge a run, a recommender or a fitted ``FedRec`` on test ratings; clients and items are matched by id.

    ``training`` are the ratings that it was trained on: what a client rated there is not recommended to it. Lists have
    the lengths ``at``. A test item is relevant from the rating ``relevant_from`` up, on the standard scale 1 to 5; if
    not given, as the model's config has it (4). Of likes alone every test item is relevant. Where test ratings
    are what comes next, lists follow what was chosen last, as the model has them.
    """
    recommender = getattr(model, "recommender", getattr(model, "recommender_", model))
    if not isinstance(recommender, Recommender):
        raise UserError(f"a {type(model).__name__} can't be judged", "give a run, a recommender or a fitted FedRec")
    training = load(training)
    training, test = join(training, load(test, like=training))
    predictor, fallback = predictor_for(recommender, training, test)
    least = recommender.model.config.evaluation.relevant_from if relevant_from is None else relevant_from
    return measure(training, test, predictor, fallback, at, least)


def measure(
    training: Ratings,
    test: Ratings,
    predictor: Predictor,
    fallback: Fallback,
    at: Sequence[int] = DEPTHS,
    relevant_from: float = LIKED,
) -> Evaluation:
    """Judge predictions for clients and items that have the same numbers in both sets of ratings."""
    errors = errors_of(test, predictor.predict, fallback, tail_items(training.item_counts()))
    return evaluation_of(training, errors, lists_of(training, test, predictor, fallback, at, relevant_from), at)


def evaluation_of(training: Ratings, errors: Errors, lists: Lists, at: Sequence[int] = DEPTHS) -> Evaluation:
    """All measures, from errors and lists, wherever these come from."""
    groups, total = by_group(errors, training), errors.total
    figures = {name: getattr(total, name) for name in ("mae", "rmse", "nmse")}
    if lists.relevant_from is None:  # likes alone, in training and tests
        figures = dict.fromkeys(figures)
        groups = {name: {**group, "mae": None, "rmse": None} for name, group in groups.items()}
    depth = min((length for length in at if length >= 10), default=max(at))
    return Evaluation(
        **figures,
        ratings=total.ratings,
        cold=total.cold,
        groups=groups,
        ranking=lists.figures(training),
        rmse_by_client=errors.rmse_by_client(),
        ndcg_by_client=lists.of_everybody(f"ndcg@{depth}", training.clients),
    )


def predictor_for(recommender: Recommender, training: Ratings, test: Ratings) -> tuple[Predictor, Fallback]:
    """What answers for test ratings: the model's rows under the numbers that clients and items have in ``training``.

    Clients that the model has no weights of are folded in from their training ratings; items that it doesn't know are
    cold. Where the test ratings are what comes next, lists follow what was chosen last, as the model has them.
    """
    model, parts = recommender.model, recommender.clients
    follow = asks_what_is_next(training, test, model.decay)
    clients, items = (
        places_among(*ids) for ids in ((parts.client_ids, training.client_ids), (model.item_ids, training.item_ids))
    )
    known_clients, known_items = clients >= 0, items >= 0
    clients, items = np.maximum(clients, 0), np.maximum(items, 0)
    X, has_lists = model.X[items], model.config.model.scores_lists
    W = np.zeros((training.clients, model.config.model.weight_count(X.shape[1], len(model.X))))
    Z = np.zeros(W.shape) if has_lists else None
    W[known_clients] = parts.W[clients[known_clients]] if known_clients.any() else 0.0
    if Z is not None and parts.Z is not None:
        Z[known_clients] = parts.Z[clients[known_clients]]
    recency = recency_weights(training.ages(), model.decay) if follow else None
    for client in np.flatnonzero(~known_clients | (recency is not None)).tolist():
        own, ratings = training.of(client)
        known = known_items[own]
        own, ratings = items[own[known]], ratings[known]
        if not known_clients[client]:
            W[client] = model.fold_in(own, ratings)
        if Z is not None:
            weighed = None if recency is None else recency[slice(*training.indptr[client : client + 2])][known]
            Z[client] = model.list_weights(W[client], own, ratings, weighed)
    fallback = Fallback.of(training, model.config, model.public.of_items(items))
    return Predictor(W, X, Z, model.scored_by), replace(
        fallback,
        item_mean=np.where(known_items, fallback.item_mean, model.public.mean),
        known_item=fallback.known_item & known_items,
        ranked_item=fallback.ranked_item & known_items,
    )
