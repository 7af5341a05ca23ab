"""What a device shows its owner: recommendations, the last upload row by row, and what the newest model lacks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fedrecplus.config import from_tables
from fedrecplus.config.toml import refuse_outside
from fedrecplus.deploy.device.participation import known_settings, load_clients, load_table, newest_model, newest_reply
from fedrecplus.deploy.device.store import Store
from fedrecplus.errors import UserError
from fedrecplus.training.model_files import PrivateParts, SharedModel
from fedrecplus.training.recommender import Recommendation, Recommender


def recommend(store: Store, person: int, n: int, run: Path | None) -> list[Recommendation]:
    """The n items a person would like best, by a run folder's model or the newest V that this device has seen.

    Factors are folded in from V and the ratings: no round is needed.
    """
    model = SharedModel.read(run, store.allowed_rules) if run is not None else _newest_shared_model(store)
    known = set(map(str, model.item_ids.tolist()))
    ratings = {item: rating for item, rating in store.ratings()[person].items() if item in known}
    nobody = np.zeros(0, dtype=np.int64)
    return Recommender(model, PrivateParts(nobody, nobody, nobody, nobody, nobody)).fold_in(ratings).recommend(n)


def _newest_shared_model(store: Store) -> SharedModel:
    model, catalogue = newest_model(store)
    settings = json.loads(known_settings(store, model) or "{}")
    refuse_outside(settings, store.allowed_rules, f"model {model}")
    return catalogue.model(from_tables(settings), load_table(store, model))


@dataclass(frozen=True)
class SentRow:
    """One row of an upload."""

    item: str
    title: str
    rated: bool
    """whether the person rated it; otherwise it is a pseudo item"""
    change: float
    """length of the change that was sent"""


def last_upload(store: Store, person: int) -> list[SentRow]:
    """The rows of a person that the server was sent last."""
    model, catalogue = newest_model(store)
    clients = load_clients(store, model)
    if person not in clients:
        raise UserError("nothing was sent for this person yet", "`fedrecplus device status` lists what was sent")
    arrays = newest_reply(store, model).arrays
    at = arrays["clients"].tolist().index(store.wire_number(model, person))
    end = int(arrays["rows"][: at + 1].sum(dtype=np.int64))
    here = slice(end - int(arrays["rows"][at]), end)
    rated = set(clients[person].items.tolist())
    changes = np.linalg.norm(arrays["delta"][here], axis=1).tolist()
    return [
        SentRow(catalogue.ids[item], catalogue.titles[item] if catalogue.titles else "", item in rated, change)
        for item, change in zip(arrays["items"][here].tolist(), changes, strict=True)
    ]


def unknown_items(store: Store) -> int | None:
    """How many ratings are of items that the newest model lacks; None before the first round."""
    if not store.models():
        return None
    _, catalogue = newest_model(store)
    return sum(item not in catalogue.numbers for ratings in store.ratings().values() for item in ratings)
