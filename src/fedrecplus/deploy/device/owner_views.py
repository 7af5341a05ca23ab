"""What a device shows its owner: recommendations, the last upload row by row, and what the newest model lacks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from fedrecplus.deploy.device.participation import load_clients, newest_model
from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire import Packet
from fedrecplus.errors import UserError
from fedrecplus.training.model_files import PrivateParts, SharedModel
from fedrecplus.training.recommender import Recommendation, Recommender


def recommend(store: Store, person: int, n: int, run: Path | None) -> list[Recommendation]:
    """The n items a person would like best, by a run folder's model or the newest V that this device has seen.

    Weights are folded in from V and the ratings: no round is needed.
    """
    model = newest_model(store)[1] if run is None else SharedModel.read(run, store.allowed_rules)
    known = set(map(str, model.item_ids.tolist()))
    ratings = {item: rating for item, rating in store.ratings()[person].items() if item in known}
    nobody = np.zeros(0, dtype=np.int64)
    return Recommender(model, PrivateParts(nobody, nobody, nobody, nobody, nobody)).fold_in(ratings).recommend(n)


class SentRow(NamedTuple):
    """One row of an upload."""

    item: str
    title: str
    rated: bool
    """whether the person rated it; otherwise it is a pseudo item"""
    change: float
    """length of the change that was sent"""


def last_upload(store: Store, person: int) -> list[SentRow]:
    """The rows of a person that the server was sent last."""
    name, model = newest_model(store)
    clients = load_clients(store, name)
    if person not in clients:
        raise UserError("nothing was sent for this person yet", "`fedrecplus device status` lists what was sent")
    arrays = Packet.of_bytes(store.value("SELECT content FROM answers WHERE model = ?", name)).arrays
    at = arrays["clients"].tolist().index(store.wire_number(name, person))
    end = int(arrays["rows"][: at + 1].sum(dtype=np.int64))
    here = slice(end - int(arrays["rows"][at]), end)
    rated = set(clients[person].items.tolist())
    changes = np.linalg.norm(arrays["delta"][here], axis=1).tolist()
    return [
        SentRow(str(model.item_ids[item]), model.titles[item] if model.titles else "", item in rated, change)
        for item, change in zip(arrays["items"][here].tolist(), changes, strict=True)
    ]


def unknown_items(store: Store) -> int | None:
    """How many ratings are of items that the newest model lacks; None before the first round."""
    if not store.models():
        return None
    known = set(newest_model(store)[1].item_ids.tolist())
    return sum(item not in known for ratings in store.ratings().values() for item in ratings)
