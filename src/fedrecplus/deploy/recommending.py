"""Recommendations on the device: from the newest V it has seen, or from a model file, and the person's own ratings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fedrecplus.config import Config, from_dict
from fedrecplus.deploy.outcome import shared_model
from fedrecplus.deploy.participation import known_settings, load_catalogue, load_table
from fedrecplus.deploy.store import Store
from fedrecplus.errors import UserError
from fedrecplus.training.model_files import PrivateParts, SharedModel
from fedrecplus.training.recommender import Recommendation, Recommender


def recommend(store: Store, person: int, n: int, model: Path | None) -> list[Recommendation]:
    """The n items a person would like best. Factors are folded in from V and the ratings: no round is needed."""
    shared = SharedModel.read(model) if model is not None else newest_model(store)
    known = set(shared.item_ids.tolist())
    ratings = {item: rating for item, rating in store.ratings()[person].items() if _as_id(shared, item) in known}
    nobody = np.zeros(0, dtype=np.int64)
    parts = PrivateParts(np.zeros((0, shared.V.shape[1] + 1)), np.zeros(1, dtype=np.int64), nobody, nobody, nobody)
    return Recommender(shared, parts).fold_in(ratings).recommend(n)


def newest_model(store: Store) -> SharedModel:
    """The model of the last round this device took part in."""
    models = store.models()
    if not models:
        raise UserError(
            "this device has seen no model yet",
            "join a server with `fedrecplus node join`, or give a run folder with --model",
        )
    newest = models[0]
    catalogue = load_catalogue(store, newest["catalogue"])
    if catalogue is None:
        raise UserError("the catalogue of the newest model is missing", "take part in one more round")
    V, mean = load_table(store, newest["model"])
    return shared_model(_config(store, newest["model"]), catalogue, V, mean)


def _config(store: Store, model: str) -> Config:
    return from_dict(json.loads(known_settings(store, model) or "{}"))


def _as_id(model: SharedModel, item: str) -> object:
    if model.item_ids.dtype.kind not in "iu":
        return item
    return int(item) if item.lstrip("-").isdigit() else None
