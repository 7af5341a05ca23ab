"""What a device keeps of a model it takes part in: per person the rows that uploads come from, and its factors."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, to_dict
from fedrecplus.deploy.catalogue import ItemCatalogue
from fedrecplus.deploy.packet import Fact, Packet
from fedrecplus.deploy.store import Store, now
from fedrecplus.deploy.wire import Request
from fedrecplus.device import PseudoItems


@dataclass(frozen=True)
class Participant:
    """One person in one model."""

    person: int
    items: NDArray[np.int64]
    """rated items that uploads hold, ascending; ratings that came later wait for their batch"""
    ratings: NDArray[np.float64]
    """their ratings as uploads use them, in standard units"""
    U: NDArray[np.float64]
    kept: PseudoItems | None


def load_participants(store: Store, model: str) -> dict[int, Participant]:
    """Everybody who took part in this model before."""
    rows = store.connection.execute(
        "SELECT person, items, ratings, U, pseudo_items, virtual_ratings FROM taking_part WHERE model = ?", (model,)
    )
    return {row[0]: _participant(*row) for row in rows}


def save_round(store: Store, request: Request, people: list[Participant], answer: Packet, sent: dict[str, Any]) -> None:
    """A finished round: factors, rows, the answer itself and its line in the log, all at once."""
    V = Packet({}, {"V": request.V}).to_bytes()
    with store.changing():
        store.connection.executemany(
            "INSERT OR REPLACE INTO taking_part VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(request.model, *_row(participant)) for participant in people],
        )
        store.connection.execute(
            "INSERT OR REPLACE INTO models VALUES (?, ?, ?, ?, ?, ?, ?)",
            (request.model, settings_text(request.config), request.catalogue, request.round, V, request.mean, now()),
        )
        store.connection.execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
            (request.model, request.round, request_digest(request), answer.to_bytes()),
        )
        log_sent(store, sent)


def log_sent(store: Store, sent: dict[str, Any]) -> None:
    """One line in the log of everything that ever left."""
    names = ", ".join(sent)
    marks = ", ".join("?" for _ in sent)
    store.connection.execute(f"INSERT INTO sent ({names}) VALUES ({marks})", tuple(sent.values()))


def last_answer(store: Store, request: Request) -> Packet | None:
    """The answer to this very request, if it was given before: it is sent again, not made anew from other factors."""
    row = store.connection.execute(
        "SELECT content FROM answers WHERE model = ? AND round = ? AND digest = ?",
        (request.model, request.round, request_digest(request)),
    ).fetchone()
    return Packet.of_bytes(row[0]) if row else None


def newest_answer(store: Store, model: str) -> Packet:
    """The last answer that was given for a model."""
    row = store.connection.execute("SELECT content FROM answers WHERE model = ?", (model,)).fetchone()
    return Packet.of_bytes(row[0])


def known_settings(store: Store, model: str) -> str | None:
    """The settings under which this model began here."""
    row = store.connection.execute("SELECT settings FROM models WHERE model = ?", (model,)).fetchone()
    return str(row[0]) if row else None


def settings_text(config: Config) -> str:
    """What must not change while a model is trained; how long that goes on may."""
    tables = to_dict(config)
    del tables["evaluation"], tables["server"]["rounds"]
    return json.dumps(tables, sort_keys=True)


def request_digest(request: Request) -> str:
    """A hash over what an answer depends on."""
    arrays = {"V": request.V, "last_step": request.last_step, "last_spread": request.last_spread}
    facts: dict[str, Fact] = {
        "mean": request.mean,
        "catalogue": request.catalogue,
        "settings": settings_text(request.config),
    }
    return Packet({**facts, "round": request.round}, arrays).digest


def save_catalogue(store: Store, catalogue: ItemCatalogue) -> None:
    """Keep a catalogue under its digest."""
    content = Packet({}, catalogue.arrays()).to_bytes()
    with store.changing():
        store.connection.execute("INSERT OR IGNORE INTO catalogues VALUES (?, ?)", (catalogue.digest, content))


def load_catalogue(store: Store, digest: str) -> ItemCatalogue | None:
    """A catalogue that was kept."""
    row = store.connection.execute("SELECT content FROM catalogues WHERE digest = ?", (digest,)).fetchone()
    return ItemCatalogue.of_arrays(Packet.of_bytes(row[0]).arrays) if row else None


def load_table(store: Store, model: str) -> tuple[NDArray[Any], float]:
    """The newest V that this device has seen of a model, and the model's mean."""
    row = store.connection.execute("SELECT V, mean FROM models WHERE model = ?", (model,)).fetchone()
    return Packet.of_bytes(row[0]).arrays["V"], float(row[1])


def _row(one: Participant) -> tuple[Any, ...]:
    kept = (None, None) if one.kept is None else (one.kept.items.tobytes(), one.kept.ratings.tobytes())
    return (one.person, one.items.tobytes(), one.ratings.tobytes(), one.U.tobytes(), *kept)


def _participant(
    person: int, items: bytes, ratings: bytes, U: bytes, pseudo: bytes | None, virtual: bytes | None
) -> Participant:
    kept = None
    if pseudo is not None and virtual is not None:
        kept = PseudoItems(np.frombuffer(pseudo, np.int64), np.frombuffer(virtual, np.float64))
    return Participant(
        person, np.frombuffer(items, np.int64), np.frombuffer(ratings, np.float64), np.frombuffer(U, np.float64), kept
    )
