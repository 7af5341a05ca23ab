"""What a device's owner does: bring ratings from a file, ask for recommendations, look at what was sent."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import from_tables, refuse_outside
from fedrecplus.data import FileOptions, load
from fedrecplus.deploy.device.catalogues import added_items, load_catalogue
from fedrecplus.deploy.device.models import SeenTable, chosen_table, seen_tables, table_of
from fedrecplus.deploy.device.round import load_clients
from fedrecplus.deploy.device.store import ON_SCALE, Store
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.reply import slices_of
from fedrecplus.errors import UserError
from fedrecplus.training import ListOptions, Recommendation, Recommender, SharedModel, TopList

_FORM = "write lines such as 1193,5"


def recommend(store: Store, person: int, n: int, run: Path | None) -> list[Recommendation]:
    """The n items a person would like best: see ``top_list``."""
    return list(top_list(store, person, ListOptions(n), run).items)


def top_list(store: Store, person: int, options: ListOptions, run: Path | None) -> TopList:
    """A person's list by a run folder's model, or the newest V that this device has seen or its owner chose.

    Weights are folded in from V and the ratings: no round is needed, and nothing is sent.
    """
    model = used_model(store) if run is None else SharedModel.read(run, store.allowed_rules)
    known = set(map(str, model.item_ids.tolist()))
    ratings = {item: rating for item, rating in store.ratings()[person].items() if item in known}
    return Recommender.for_newcomers(model).fold_in(ratings).top_list(options)


def last_upload(store: Store, person: int) -> list[tuple[str, str, bool, float]]:
    """The rows of a person that the server was sent last: item, title, whether it is rated, length of the change."""
    name, model = newest_model(store)
    clients = load_clients(store, name)
    if person not in clients:
        raise UserError("nothing was sent for this person yet", "`fedrecplus device status` lists what was sent")
    arrays = Packet.of_bytes(store.value("SELECT content FROM answers WHERE model = ?", name)).arrays
    numbers, own = arrays["clients"].tolist(), store.wire_number(name, person)
    if own not in numbers:
        raise UserError("the last upload is of an earlier version", "take part in one more round")
    here = slices_of(arrays["rows"])[numbers.index(own)]
    rated = set(clients[person].items.tolist())
    changes = np.linalg.norm(arrays["delta"][here], axis=1).tolist()
    return [
        (str(model.item_ids[item]), model.titles[item] if model.titles else "", item in rated, change)
        for item, change in zip(arrays["items"][here].tolist(), changes, strict=True)
    ]


def known_catalogues(store: Store) -> list[dict[str, Any]]:
    """The catalogues that servers have sent: what they are called, how many items they have, whose figures."""
    digests = [digest for (digest,) in store.connection.execute("SELECT digest FROM catalogues ORDER BY rowid")]
    found = [(digest, load_catalogue(store, digest)) for digest in digests]
    return [
        {"digest": digest, "items": len(one.ids), "figures": one.figures, "source": one.public.source,
         "epsilon": one.public.epsilon, "added": added_items(store, digest)}
        for digest, one in found if one is not None
    ]  # fmt: skip


def unknown_items(store: Store) -> int | None:
    """How many ratings are of items that the newest model lacks; None before the first round."""
    if not store.models():
        return None
    known = set(newest_model(store)[1].item_ids.tolist())
    return sum(item not in known for ratings in store.ratings().values() for item in ratings)


def used_model(store: Store) -> SharedModel:
    """The model that recommendations use: the newest seen, or the one that the owner chose."""
    return _model(store, chosen_table(store))


def newest_model(store: Store) -> tuple[str, SharedModel]:
    """Name and tables of the model in whose rounds this device took part last."""
    chosen_table(store)  # or there is none
    newest = seen_tables(store)[0]
    return newest.model, _model(store, newest)


def _model(store: Store, table: SeenTable) -> SharedModel:
    facts = next(one for one in store.models() if one["model"] == table.model)
    settings, catalogue = json.loads(facts["settings"]), load_catalogue(store, facts["catalogue"])
    if catalogue is None:
        raise UserError("the catalogue of this model is missing", "take part in one more round")
    refuse_outside(settings, store.allowed_rules, f"model {table.model}")
    arrays = Packet.of_bytes(table_of(store, table)).arrays
    return catalogue.model(from_tables(settings), arrays["V"], arrays.get("dense", np.zeros(0)))


def import_own(store: Store, path: Path) -> int:
    """One person's ratings: a line each, item then rating, between commas, semicolons or tabs; a heading may be."""
    ratings: dict[str, float] = {}
    for number, fields in enumerate(_lines(path), 1):
        where = f"{path}, line {number}"
        if not fields:
            continue
        if len(fields) != 2:
            remedy = "give a table of user, item and rating with --silo" if len(fields) > 2 else _FORM
            raise UserError(f"{where}: {len(fields)} columns instead of item and rating", remedy)
        item, text = fields[0].strip(), fields[1].strip()
        try:
            rating = float(text)
        except ValueError:
            if number == 1:
                continue
            raise UserError(f"{where}: {text!r} is no rating", _FORM) from None
        if not item:
            raise UserError(f"{where}: no item", _FORM)
        if item in ratings:
            raise UserError(f"{where}: item {item!r} for the second time", "keep one of the lines")
        if not (np.isfinite(rating) and store.scale.holds(np.array([rating]))[0]):
            raise UserError(f"{where}: {text} is not on the scale {store.scale}", ON_SCALE)
        ratings[item] = rating
    if not ratings:
        raise UserError(f"{path} holds no rating", _FORM)
    store.rate(ratings)
    return len(ratings)


def import_many(store: Store, path: Path) -> tuple[int, int]:
    """A table of user, item and rating; returns how many persons and ratings it has."""
    ratings = load(str(path), options=FileOptions(scale=store.scale))
    numbers = store.add_persons([str(name) for name in ratings.client_ids.tolist()])
    persons = [numbers[str(name)] for name in ratings.client_ids.tolist()]
    items, columns = ratings.item_ids.tolist(), (ratings.client_of_rating, ratings.items, ratings.values)
    rows = [(persons[u], str(items[i]), float(r)) for u, i, r in zip(*columns, strict=True)]
    ages = ratings.ages()
    store.rate_many(rows if ages is None else [rows[place] for place in np.argsort(-ages, kind="stable")])
    return len(persons), len(ratings)


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "no text"
        raise UserError(f"{path}: {why}", "give a text file of item and rating, in UTF-8") from None
    separator = next((mark for mark in ("\t", ";", ",") if mark in text.partition("\n")[0]), ",")
    return list(csv.reader(text.splitlines(), delimiter=separator))
