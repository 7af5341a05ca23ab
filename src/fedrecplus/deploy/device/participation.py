"""What a device keeps of the models it takes part in: each person's rows and factors, replies, tables, catalogues."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from fedrecplus.config import from_tables
from fedrecplus.config.toml import refuse_outside
from fedrecplus.deploy.device.store import Store, now
from fedrecplus.deploy.wire import ItemCatalogue, Packet, Request, fixed_settings
from fedrecplus.device import Device, PseudoItems
from fedrecplus.errors import UserError
from fedrecplus.randomness import keys, subkey
from fedrecplus.training.model_files import SharedModel


def client_secret(store_secret: int, person: int) -> int:
    """The key of one person's draws."""
    return int(keys(subkey(store_secret, "secrets"), np.array([person]))[0])


def load_clients(store: Store, model: str) -> dict[int, Device]:
    """Everybody who took part in this model before, with the rated items that uploads hold: later ones wait."""
    secret, step = store.secret, store.scale.standard_step
    clients = {}
    for person, items, ratings, U, pseudo, virtual in store.connection.execute(
        "SELECT person, items, ratings, U, pseudo_items, virtual_ratings FROM taking_part WHERE model = ?", (model,)
    ):
        kept = None if pseudo is None else PseudoItems(np.frombuffer(pseudo, np.int64), np.frombuffer(virtual))
        own, rated = client_secret(secret, person), np.frombuffer(items, np.int64)
        clients[person] = Device(person, rated, np.frombuffer(ratings), step, np.frombuffer(U), own, kept)
    return clients


def save_round(
    store: Store, request: Request, clients: Iterable[Device], reply: Packet, sent: Mapping[str, Any]
) -> None:
    """A finished round: factors, rows, the reply itself and its line in the log, all at once."""
    V, model = Packet({}, {"V": request.V}).to_bytes(), request.model
    with store.changing():
        for one in clients:
            kept = (None, None) if one.kept is None else (one.kept.items.tobytes(), one.kept.ratings.tobytes())
            own = (one.items.tobytes(), one.ratings.tobytes(), one.U.tobytes())
            store.put("taking_part", [(model, one.client, *own, *kept)])
        store.put("models", [(model, fixed_settings(request.config), request.catalogue, request.round, V, now())])
        store.put("answers", [(model, request.round, request.digest, reply.to_bytes())])
        log_sent(store, sent)


def log_sent(store: Store, sent: Mapping[str, Any]) -> None:
    """One line in the log of everything that ever left."""
    marks = ", ".join("?" for _ in sent)
    store.connection.execute(f"INSERT INTO sent ({', '.join(sent)}) VALUES ({marks})", tuple(sent.values()))


def saved_reply(store: Store, request: Request) -> Packet | None:
    """The reply to this very request, if it was given before: it is sent again, not made anew from other factors."""
    query = "SELECT content FROM answers WHERE model = ? AND round = ? AND digest = ?"
    content = store.value(query, request.model, request.round, request.digest)
    return Packet.of_bytes(content) if content else None


def known_settings(store: Store, model: str) -> str | None:
    """The settings under which this model began here."""
    settings: str | None = store.value("SELECT settings FROM models WHERE model = ?", model)
    return settings


def save_catalogue(store: Store, catalogue: ItemCatalogue) -> None:
    """Keep a catalogue under its digest."""
    with store.changing():
        store.put("catalogues", [(catalogue.digest, Packet({}, catalogue.arrays()).to_bytes())])


def load_catalogue(store: Store, digest: str) -> ItemCatalogue | None:
    """A catalogue that was kept."""
    content = store.value("SELECT content FROM catalogues WHERE digest = ?", digest)
    return ItemCatalogue.of_arrays(Packet.of_bytes(content).arrays) if content else None


def newest_model(store: Store) -> tuple[str, SharedModel]:
    """Name and tables of the model in whose rounds this device took part last."""
    if not store.models():
        raise UserError(
            "this device has seen no model yet and has sent nothing",
            "join a server with `fedrecplus node join`, or give a run folder with --model",
        )
    newest = store.models()[0]
    settings, catalogue = json.loads(newest["settings"]), load_catalogue(store, newest["catalogue"])
    if catalogue is None:
        raise UserError("the catalogue of the newest model is missing", "take part in one more round")
    refuse_outside(settings, store.allowed_rules, f"model {newest['model']}")
    V = Packet.of_bytes(store.value("SELECT V FROM models WHERE model = ?", newest["model"])).arrays["V"]
    return newest["model"], catalogue.model(from_tables(settings), V)
