"""What a node does with a request: everything between the packet that came and the packet that goes."""

from __future__ import annotations

import logging
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.deploy.batching import Rated, rated_of, with_batch
from fedrecplus.deploy.catalogue import ItemCatalogue
from fedrecplus.deploy.database import StorageFull
from fedrecplus.deploy.packet import Packet
from fedrecplus.deploy.participation import (
    Participant,
    known_settings,
    last_answer,
    load_catalogue,
    load_participants,
    log_sent,
    save_catalogue,
    save_round,
    settings_text,
)
from fedrecplus.deploy.settings import check_deployable
from fedrecplus.deploy.silo import device_of, run_round
from fedrecplus.deploy.store import Store, now
from fedrecplus.deploy.versions import mismatch
from fedrecplus.deploy.wire import Request, broadcast_of, refusal_packet, reply_packet, request_of
from fedrecplus.errors import UserError
from fedrecplus.model import predict, start_U
from fedrecplus.protocol import Broadcast, ErrorReport
from fedrecplus.rounds.refit import expected, prediction_table, refit

REASONS = ("version", "request", "catalogue", "scale", "settings", "storage", "store", "fault")
"""all that a node ever says when it can't take part: no text of an error, which might quote a rating"""


class Refused(Exception):
    """The node can't take part; the argument is one of ``REASONS``."""


log = logging.getLogger("fedrecplus")


def answer(packet: Packet, path: Path, *, share_error: bool = False) -> Packet:
    """The reply to a request, whatever happens. What went wrong is logged here and told the server in one word."""
    try:
        return _answer(packet, path, share_error)
    except Refused as refused:
        reason = str(refused)
    except StorageFull as error:
        reason = "storage"
        log.error("%s", error)
    except UserError as error:
        reason = "store"
        log.error("%s", error)
    except Exception:
        reason = "fault"
        log.exception("the round failed here")
    return refusal_packet(reason)


def _answer(packet: Packet, path: Path, share_error: bool) -> Packet:
    started = time.perf_counter()
    wrong = mismatch(packet.facts.get("version"), "the server")
    if wrong:
        log.error("%s", wrong)
        raise Refused("version")
    request = _understood(packet)
    with Store.open(path) as store:
        catalogue = _catalogue(store, request)
        if known_settings(store, request.model) not in (None, settings_text(request.config)):
            log.error("the server changed the settings of model %s; a model keeps those it began with", request.model)
            raise Refused("settings")  # a model keeps the settings it began with: others could undo its protection
        reply = last_answer(store, request)
        if reply is not None:
            with store.changing():
                log_sent(store, _sent(request, reply, started, again=True))
            return reply
        broadcast = broadcast_of(request, catalogue)
        people = _participants(store, request, broadcast, catalogue)
        uploads, people = run_round(broadcast, people, store.secret, catalogue, request.config)
        uploads = [replace(upload, client=store.wire_number(request.model, upload.client)) for upload in uploads]
        report = _error_of(people, broadcast, catalogue, request.config) if share_error else None
        reply = reply_packet(request, uploads, report)
        save_round(store, request, people, reply, _sent(request, reply, started, again=False))
        return reply


def _understood(packet: Packet) -> Request:
    try:
        request = request_of(packet)
        check_deployable(request.config)
        int(request.model, 16)
    except (KeyError, TypeError, ValueError, UserError) as error:
        log.error("the server's request makes no sense: %s", error)
        raise Refused("request") from None
    if request.V.ndim != 2 or not np.isfinite(request.V).all():
        raise Refused("request")
    return request


def _catalogue(store: Store, request: Request) -> ItemCatalogue:
    catalogue = load_catalogue(store, request.catalogue)
    if catalogue is None and request.attached is not None and request.attached.digest == request.catalogue:
        catalogue = request.attached
        save_catalogue(store, catalogue)
    if catalogue is None:
        raise Refused("catalogue")
    if len(catalogue.ids) != len(request.V):
        raise Refused("request")
    if catalogue.scale != store.scale:
        log.error(
            "ratings here are on the scale %s, the server's on %s; `fedrecplus device scale %s` changes it",
            store.scale, catalogue.scale, catalogue.scale,
        )  # fmt: skip
        raise Refused("scale")
    return catalogue


def _participants(store: Store, request: Request, broadcast: Broadcast, catalogue: ItemCatalogue) -> list[Participant]:
    """Everybody with ratings: newcomers with all of theirs, the others with what their batches let in."""
    before, secret, batch = load_participants(store, request.model), store.secret, store.batch
    people = []
    for person, ratings in store.ratings().items():
        rated = rated_of(ratings, catalogue)
        if person in before:
            device = device_of(before[person], secret, catalogue.scale.standard_step)
            people.append(with_batch(before[person], rated, batch, device, broadcast, request.config))
        elif len(rated.items):
            people.append(_newcomer(person, rated, secret, request))
    if not people:
        log.warning("none of the ratings here is of an item that the server knows: nothing to send")
    return people


def _newcomer(person: int, rated: Rated, secret: int, request: Request) -> Participant:
    U = start_U(secret, np.array([person]), request.config.model, request.mean)[0]
    return Participant(person, rated.items, rated.ratings, U, None)


def _error_of(
    people: list[Participant], broadcast: Broadcast, catalogue: ItemCatalogue, settings: Config
) -> ErrorReport:
    """Squared error on the node's own ratings, before this round moves V."""
    squared, count = 0.0, 0
    public, rating = catalogue.public, catalogue.mean
    table = prediction_table(broadcast.V, public, rating, broadcast.mean, settings)
    start = expected(table, public.popularity, rating, broadcast.mean, settings)
    for one in people:
        V = table[one.items]
        fitted = settings.prediction.factors == "refit"
        U = refit(V, one.ratings, broadcast.mean, settings, start) if fitted else one.U
        squared += float(((predict(U, V, broadcast.mean) - one.ratings) ** 2).sum())
        count += len(one.items)
    return ErrorReport(squared, count)


def _sent(request: Request, reply: Packet, started: float, *, again: bool) -> dict[str, Any]:
    """A line of the log: what left, and what it cost this device."""
    return {
        "at": now(),
        "model": request.model,
        "round": request.round,
        "persons": len(reply.arrays["clients"]),
        "rows": len(reply.arrays["items"]),
        "bytes": reply.size,
        "digest": reply.digest,
        "again": int(again),
        "seconds": time.perf_counter() - started,
        "memory": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "received": request.bytes,
    }
