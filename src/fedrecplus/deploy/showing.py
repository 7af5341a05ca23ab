"""What a person can see of their own uploads: the last one row by row, and which items the newest model lacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedrecplus.deploy.catalogue import ItemCatalogue
from fedrecplus.deploy.participation import load_catalogue, load_participants, newest_answer
from fedrecplus.deploy.store import Store
from fedrecplus.errors import UserError


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
    model, catalogue = _newest(store)
    people = load_participants(store, model)
    if person not in people:
        raise UserError("nothing was sent for this person yet", "`fedrecplus device status` lists what was sent")
    packet = newest_answer(store, model)
    ends = np.cumsum(packet.arrays["rows"], dtype=np.int64)
    at = packet.arrays["clients"].tolist().index(store.wire_number(model, person))
    here = slice(int(ends[at] - packet.arrays["rows"][at]), int(ends[at]))
    rated = set(people[person].items.tolist())
    return [
        SentRow(catalogue.ids[item], catalogue.titles[item] if catalogue.titles else "", item in rated, float(change))
        for item, change in zip(
            packet.arrays["items"][here].tolist(), np.linalg.norm(packet.arrays["delta"][here], axis=1), strict=True
        )
    ]


def unknown_items(store: Store) -> int | None:
    """How many ratings are of items that the newest model lacks; None before the first round."""
    if not store.models():
        return None
    _, catalogue = _newest(store)
    return sum(item not in catalogue.numbers for ratings in store.ratings().values() for item in ratings)


def _newest(store: Store) -> tuple[str, ItemCatalogue]:
    models = store.models()
    if not models:
        raise UserError("nothing was sent yet", "join a server with `fedrecplus node join`")
    catalogue = load_catalogue(store, models[0]["catalogue"])
    if catalogue is None:
        raise UserError("the catalogue of the newest model is missing", "take part in one more round")
    return models[0]["model"], catalogue
