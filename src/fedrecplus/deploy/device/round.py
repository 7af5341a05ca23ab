"""What a node does with a request: everything between the packet that came and the packet that goes."""

from __future__ import annotations

import logging
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.deploy import wire
from fedrecplus.deploy.device import participation
from fedrecplus.deploy.device.batching import rated_items, with_batch
from fedrecplus.deploy.device.database import StorageFull
from fedrecplus.deploy.device.silo import train_locally
from fedrecplus.deploy.device.store import Store, now
from fedrecplus.deploy.wire import ItemCatalogue, Packet, Refusal, Request
from fedrecplus.device import Device
from fedrecplus.errors import UserError
from fedrecplus.model import predict, start_U
from fedrecplus.protocol import Broadcast, ErrorReport
from fedrecplus.rounds.refit import expected, prediction_table, refit

log = logging.getLogger("fedrecplus")


def answer(packet: Packet, path: Path, *, share_error: bool = False) -> Packet:
    """The reply to a request, whatever happens. What went wrong is logged here and told the server in one word."""
    try:
        with Store.open(path) as store:
            return _answer(packet, store, share_error)
    except Refusal as refusal:
        reason = refusal.kind
        log.error("%s", refusal)
    except UserError as error:
        reason = "storage" if isinstance(error, StorageFull) else "store"
        log.error("%s", error)
    except Exception:
        reason = "fault"
        log.exception("the round failed here")
    return wire.encode_refusal(reason)


def _answer(packet: Packet, store: Store, share_error: bool) -> Packet:
    started = time.perf_counter()
    request = wire.decode_request(packet, store.allowed_rules)
    catalogue, config = _catalogue(store, request), request.config
    if participation.known_settings(store, request.model) not in (None, wire.fixed_settings(config)):
        # others could undo the protection that the first ones gave
        raise Refusal("settings", f"the server changed the settings of model {request.model}, which must stay the same")
    reply = participation.saved_reply(store, request)
    if reply is not None:
        with store.changing():
            participation.log_sent(store, _log_line(request, reply, started, again=True))
        return reply
    broadcast = wire.broadcast_of(request, catalogue)
    clients = _clients(store, broadcast, catalogue, request)
    trained = train_locally(broadcast, clients, config, store.scale, store.secret)
    uploads = [replace(upload, client=store.wire_number(request.model, upload.client)) for upload, _ in trained]
    clients = [client for _, client in trained]
    report = _training_error(clients, broadcast, catalogue, config) if share_error else None
    reply = wire.encode_reply(request.model, request.round, request.V.shape[1], uploads, report, config)
    participation.save_round(store, request, clients, reply, _log_line(request, reply, started, again=False))
    return reply


def _catalogue(store: Store, request: Request) -> ItemCatalogue:
    catalogue = participation.load_catalogue(store, request.catalogue)
    if catalogue is None and request.attached is not None and request.attached.digest == request.catalogue:
        catalogue = request.attached
        participation.save_catalogue(store, catalogue)
    if catalogue is None:
        raise Refusal("catalogue", "the server's catalogue is not known here")
    if len(catalogue.ids) != len(request.V):
        raise Refusal("request", "V has another number of items than the catalogue")
    if catalogue.scale != store.scale:
        both = f"ratings here are on the scale {store.scale}, the server's on {catalogue.scale}"
        raise Refusal("scale", f"{both}; `fedrecplus device scale {catalogue.scale}` changes it")
    return catalogue


def _clients(store: Store, broadcast: Broadcast, catalogue: ItemCatalogue, request: Request) -> list[Device]:
    """Everybody with ratings: newcomers with all of theirs, the others with what their batches let in."""
    before, secret, step = participation.load_clients(store, request.model), store.secret, store.scale.standard_step
    clients, batch = [], store.batch
    for person, ratings in store.ratings().items():
        items, values = rated_items(ratings, catalogue)
        if person in before:
            clients.append(with_batch(before[person], items, values, batch, broadcast, request.config))
        elif len(items):
            U = start_U(secret, np.array([person]), request.config.model, request.mean)[0]
            clients.append(Device(person, items, values, step, U, participation.client_secret(secret, person)))
    if not clients:
        log.warning("none of the ratings here is of an item that the server knows: nothing to send")
    return clients


def _training_error(
    clients: Sequence[Device], broadcast: Broadcast, catalogue: ItemCatalogue, config: Config
) -> ErrorReport:
    """Squared error on the node's own ratings, before this round moves V."""
    public, squared = catalogue.public, 0.0
    table = prediction_table(broadcast.V, public, catalogue.mean, broadcast.mean, config)
    start = expected(table, public.popularity, catalogue.mean, broadcast.mean, config)
    for client in clients:
        V, U = table[client.items], client.U
        if config.prediction.factors == "refit":
            U = refit(V, client.ratings, broadcast.mean, config, start)
        squared += float(((predict(U, V, broadcast.mean) - client.ratings) ** 2).sum())
    return ErrorReport(squared, sum(len(client.items) for client in clients))


def _log_line(request: Request, reply: Packet, started: float, *, again: bool) -> dict[str, Any]:
    """What left, and what it cost this device."""
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
