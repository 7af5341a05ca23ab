"""What a node does with a request, between the packet that came and the packet that goes, and what it keeps of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data import Ratings, Scale, narrowest
from fedrecplus.deploy.device.batching import Items, Values, rated_items, with_batch
from fedrecplus.deploy.device.budget import book, check_cost, cost_of, task_of
from fedrecplus.deploy.device.catalogues import (
    catalogue_of,
    check_table,
    delete_unused_catalogues,
    keep_catalogue,
    load_catalogue,
)
from fedrecplus.deploy.device.identity import Identities
from fedrecplus.deploy.device.log import check_log, keep_log
from fedrecplus.deploy.device.missed import Past
from fedrecplus.deploy.device.models import keep_table
from fedrecplus.deploy.device.policy import is_paused, load_policy, pin_first
from fedrecplus.deploy.device.sent import SentLine, now
from fedrecplus.deploy.device.shown import ShownRows, load_shown, pinned_public, pins_sets, save_shown
from fedrecplus.deploy.device.statistics import check_statistics, statistics_uploads
from fedrecplus.deploy.device.steps import checked_state, save_state
from fedrecplus.deploy.device.store import StorageFull, Store
from fedrecplus.deploy.device.sums import advertise, answer_stage, check_sum, unmasked_rounds
from fedrecplus.deploy.device.tasks import check_task
from fedrecplus.deploy.device.uploads import uploads_packet
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.reply import encode_refusal, encode_reply
from fedrecplus.deploy.wire.request import Request, decode_request
from fedrecplus.deploy.wire.ring import STATISTICS_ROUND
from fedrecplus.deploy.wire.settings import fixed_settings
from fedrecplus.deploy.wire.stages import is_later_stage
from fedrecplus.device import Decoys, Device
from fedrecplus.engines import Problem, device_of, engine_of, prepare, remember, start_private
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import mark
from fedrecplus.protocol import Broadcast, ErrorReport, Upload
from fedrecplus.randomness import Key, keys, subkey
from fedrecplus.rounds import ServerState, client_round

log = logging.getLogger("fedrecplus")
_FEW = 20
"""persons of whom each is trained by the readable functions; a silo of more goes through the engine"""


def answer(packet: Packet, path: Path, *, share_error: bool = False, past: Past | None = None) -> Packet:
    """The reply to a request, whatever happens. What went wrong is logged here and told the server in one word.

    ``past`` has the sums of rounds that this device missed; where it can't be reached, there is no reply yet.
    """
    try:
        with Store.open(path) as store:
            return _answer(packet, store, share_error, past)
    except Refusal as refusal:
        reason = refusal.kind
        log.error("%s", refusal)
    except UserError as error:
        reason = "storage" if isinstance(error, StorageFull) else "store"
        log.error("%s", error.for_shell)
    except ConnectionError:
        raise
    except Exception:
        reason = "fault"
        log.exception("the round failed here")
    return encode_refusal(reason)


def _answer(packet: Packet, store: Store, share_error: bool, past: Past | None) -> Packet:
    started = time.perf_counter()
    if is_paused(store):  # also what was answered before, or a later stage of a sum that has begun
        raise Refusal("paused", "this device pauses; `fedrecplus device resume` ends that")
    if is_later_stage(packet):
        return answer_stage(packet, store, started)
    request = decode_request(packet, store.allowed_rules)
    catalogue = catalogue_of(store, request)
    query = "SELECT content FROM answers WHERE model = ? AND round = ? AND digest = ?"
    given = store.value(query, request.model, request.round, request.digest)
    state = _check(store, request, catalogue, past, again=given is not None)
    keep_catalogue(store, catalogue)
    if given is not None:  # asked again: the same reply, not one made anew from other factors
        reply = Packet.of_bytes(given)
        if not request.session:
            with store.changing():
                store.log_sent(_line(request, reply, started, again=True))
    elif request.round == STATISTICS_ROUND:
        reply = statistics_uploads(store, request, catalogue)
    else:
        reply = _compute(store, request, catalogue, state, share_error, started)
    return advertise(store, request, reply, started) if request.session else reply


def _check(
    store: Store, request: Request, catalogue: ItemCatalogue, past: Past | None, *, again: bool
) -> ServerState | None:
    """All that a first message can be refused for: by itself and by earlier messages, before ratings are looked at.

    A server that learnt from a refusal, or from a later silence, what a device has would need no upload. Returns the
    server's state as it must be, where the task is one that the owner agreed to.
    """
    state = None
    _check_unchanged(store, request, catalogue)
    load_policy(store).check(request.config, catalogue, pinned=Identities.load(store).pinned)
    check_task(store, request, catalogue)
    if request.round == STATISTICS_ROUND:
        check_statistics(store, request)
    else:
        check_table(request, catalogue)
        if not load_policy(store).any_task:
            check_log(store, request)
            state = checked_state(store, request, catalogue, past)
        if not again:
            _check_budget(store, request)
    if request.session:
        check_sum(store, request, catalogue)
    elif not again:
        check_cost(store, task_of(request.model, request.config), request.config, request.round, None)
    return state


def _compute(
    store: Store, request: Request, catalogue: ItemCatalogue, state: ServerState | None, share_error: bool,
    started: float,
) -> Packet:  # fmt: skip
    """Everybody's uploads of a round, computed and kept; for a secure sum they stay here."""
    message, config = request.message(catalogue), request.config
    shown = load_shown(store) if pins_sets(config) else {}
    trained = _trained(store, shown, message, catalogue, request)
    clients = [client for _, client in trained]
    uploads = [upload for upload, _ in trained]
    if request.session and config.hides_rows:  # nobody sees values, so pseudo items are marks without one
        marked = mark({one.client: one for one in clients}, {upload.client: upload for upload in uploads})
        uploads = [marked[upload.client] for upload in uploads]
    uploads = [replace(upload, client=store.wire_number(request.model, upload.client)) for upload in uploads]
    if pins_sets(config):
        nothing = ShownRows(catalogue.digest, {}, {})
        now_shown = {one.client: shown.get(one.client, nothing).after(one, catalogue, config) for one in clients}
        shown = {person: rows for person, rows in now_shown.items() if rows != shown.get(person)}
    if request.session:
        if share_error:
            log.warning("the error on this node's ratings is not shared: a secure sum shows nothing of one node")
        reply = uploads_packet(uploads, request.V.shape[1])
        save_round(store, request, state, clients, shown, reply, None)
        return reply
    report = _training_error(clients, message, config) if share_error else None
    reply = encode_reply(request, uploads, report)
    save_round(store, request, state, clients, shown, reply, _line(request, reply, started, again=False))
    return reply


def _trained(
    store: Store, shown: Mapping[int, ShownRows], message: Broadcast, catalogue: ItemCatalogue, request: Request
) -> list[tuple[Upload, Device]]:
    """Everybody's upload. Where a V made for it breaks the computation, a secure sum gets zeros, and nobody is told."""
    try:
        before = _clients(store, shown, message, catalogue, request)
        return train_locally(message, before, request.config, store.scale)
    except Exception:
        if not request.session:
            raise
        log.exception("nothing can be computed from what the server sent: this device adds zeros to the sum")
        return []


def _check_unchanged(store: Store, request: Request, catalogue: ItemCatalogue) -> None:
    """Refuse other settings or another catalogue for a model that began: they could undo what the first ones gave.

    Items may come after those that there were; how many, the task says.
    """
    began = store.connection.execute("SELECT settings, catalogue, items FROM models WHERE model = ?", (request.model,))
    settings, digest, items = began.fetchone() or (None, request.catalogue, len(catalogue.ids))
    if settings not in (None, fixed_settings(request.config)):
        raise Refusal("settings", f"the server changed the settings of model {request.model}, which must stay the same")
    if digest != request.catalogue and catalogue.first(items).digest != digest:  # also where the earlier one is gone
        raise Refusal(
            "settings", f"the server changed the items of model {request.model}: it may add some at their end"
        )


def _check_budget(store: Store, request: Request) -> None:
    """Refuse more rounds than the budget of the settings is made for, whatever number the server gives them."""
    rounds = request.config.server.rounds
    query = "SELECT COUNT(*) FROM sent WHERE model = ? AND stage = 'upload' AND again = 0"
    model = request.model
    done = unmasked_rounds(store, model) if request.session else store.value(query, model)
    if request.config.privacy.rule != "none" and done >= rounds:
        raise Refusal("policy", f"this model's budget is spent: it is for {rounds} rounds")


def _clients(
    store: Store, shown: Mapping[int, ShownRows], message: Broadcast, catalogue: ItemCatalogue, request: Request
) -> list[Device]:
    """Everybody with ratings: newcomers with all of theirs, the others with what their batches let in."""
    before = load_clients(store, request.model)
    clients, batch, config = [], store.batch, request.config
    names = {rows.catalogue for rows in shown.values()}
    drawing = {name: pinned_public(load_catalogue(store, name), catalogue) for name in names}
    for person, ratings in store.ratings().items():
        items, values = rated_items(ratings, catalogue)
        one = before.get(person)
        if person in shown:
            known = one or newcomer(store, person, items, values, request, catalogue)
            one = shown[person].client(known, catalogue, message, config)
        if one is not None:
            public = drawing[shown[person].catalogue] if person in shown else catalogue.public
            clients.append(with_batch(one, items, values, batch, message, public, config))
        elif len(items):
            clients.append(newcomer(store, person, items, values, request, catalogue))
    if not clients:
        log.warning("none of the ratings here is of an item that the server knows: nothing to send")
    return clients


def newcomer(
    store: Store, person: int, items: Items, values: Values, request: Request, catalogue: ItemCatalogue
) -> Device:
    """A person before their first round of a model. Uploads follow from U, so its key doesn't lead to the secret."""
    model, own = request.config.model, int.from_bytes(store.one_way_key("start")[:8], "big")
    key = store.secret if store.as_in_simulation else own
    U = model.start_users(key, np.array([person]), catalogue.public)[0]
    return Device(person, items, values, store.scale.standard_step, U, client_secret(store, person))


def train_locally(
    message: Broadcast, clients: Sequence[Device], config: Config, scale: Scale
) -> list[tuple[Upload, Device]]:
    """Each client's upload, and what it keeps for the next round: many through the engine, as a small simulation."""
    if (
        len(clients) <= _FEW or config.engine == "reference"
    ):  # numba takes 100 MB and a second that a few can do without
        return [client_round(message, client, config) for client in clients]
    engine, problem = engine_of(config), _problem(message, clients, config, scale)
    private = start_private(problem, engine.dtype)
    for number, client in enumerate(clients):
        remember(problem, private, replace(client, client=number))
    names = ("V", "last_step", "last_covariance", "dense")
    tables = {name: getattr(message, name).astype(engine.dtype) for name in names}
    uploads, private = engine.uploads(problem, private, replace(message, **tables), np.arange(len(clients)))
    none = None if config.redraws else Decoys(np.zeros(0, np.int64), np.zeros(0))  # the engine notes no empty sets
    after = [device_of(problem, private, upload.client) for upload in uploads]
    persons = [clients[upload.client].client for upload in uploads]
    return [
        (replace(upload, client=person), replace(device, client=person, kept=device.kept or none))
        for upload, device, person in zip(uploads, after, persons, strict=True)
    ]


def _problem(message: Broadcast, clients: Sequence[Device], config: Config, scale: Scale) -> Problem:
    """These clients as the engine takes them, numbered in their order."""
    items = len(message.V)
    indptr = np.cumsum([0, *(len(client.items) for client in clients)])
    numbers = np.concatenate([client.items for client in clients]).astype(narrowest(items))
    codes = scale.codes(scale.restore(np.concatenate([client.ratings for client in clients])))
    ratings = Ratings("silo", scale, indptr, numbers, codes, np.arange(len(clients)), np.arange(items))
    secrets = np.array([word_of(client.secret) for client in clients], dtype=np.uint64)
    problem = prepare(ratings, config, message.public, secrets)
    fresh = np.diff(problem.pseudo_indptr)
    kept = [fresh[n] if client.kept is None else len(client.kept.items) for n, client in enumerate(clients)]
    return replace(problem, pseudo_indptr=np.cumsum([0, *kept]))  # batches let in more than a first draw would


def word_of(secret: Key) -> int:
    """A person's key as the engine takes it: 64 bits. A silo's draws are those of a simulation."""
    return secret if isinstance(secret, int) else int.from_bytes(subkey(secret, "silo")[:8], "big")


def _training_error(clients: Sequence[Device], message: Broadcast, config: Config) -> ErrorReport:
    """Squared error on the node's own ratings, before this round moves V."""
    model, squared = config.model, 0.0
    X = model.item_columns(message.V, message.public)
    for one in clients:
        w = model.user_weights(one.U, X, one.items, one.ratings, message.public)
        squared += float(((model.scores(X[one.items], w, message.dense) - one.ratings) ** 2).sum())
    return ErrorReport(squared, sum(len(one.items) for one in clients))


def _line(request: Request, reply: Packet, started: float, *, again: bool) -> SentLine:
    """An upload's line in the log of what left."""
    persons, rows = len(reply.arrays["clients"]), len(reply.arrays["items"])
    return SentLine.of(request.model, request.round, persons, rows, reply, started, request.size, again=again)


def client_secret(store: Store, person: int) -> Key:
    """The key of one person's draws, some of which uploads show: it leads to nobody else's and not to the store's."""
    if store.as_in_simulation:
        return int(keys(subkey(store.secret, "secrets"), np.array([person]))[0])
    return store.one_way_key("person", person)


def load_clients(store: Store, model: str) -> dict[int, Device]:
    """Everybody who took part in this model before, with the rated items that uploads hold: later ones wait."""
    step, clients = store.scale.standard_step, {}
    for person, items, ratings, U, pseudo, virtual in store.connection.execute(
        "SELECT person, items, ratings, U, pseudo_items, virtual_ratings FROM taking_part WHERE model = ?", (model,)
    ):
        kept = None if pseudo is None else Decoys(np.frombuffer(pseudo, np.int64), np.frombuffer(virtual))
        own, rated = client_secret(store, person), np.frombuffer(items, np.int64)
        clients[person] = Device(person, rated, np.frombuffer(ratings), step, np.frombuffer(U), own, kept)
    return clients


def save_round(
    store: Store, request: Request, state: ServerState | None, clients: Iterable[Device],
    shown: Mapping[int, ShownRows], reply: Packet, sent: SentLine | None,
) -> None:  # fmt: skip
    """A finished round: what was told, factors, rows, the reply itself and its line in the log, all at once."""
    parameters = {name: table for name, table in request.tables.items() if name in ("V", "dense")}
    V, model = Packet({}, parameters).to_bytes(), request.model
    with store.changing():
        for one in clients:
            kept = (None, None) if one.kept is None else (one.kept.items.tobytes(), one.kept.ratings.tobytes())
            own = (one.items.tobytes(), one.ratings.tobytes(), one.U.tobytes())
            store.put("taking_part", [(model, one.client, *own, *kept)])
        for person, rows in shown.items():
            save_shown(store, person, rows)
        pin_first(store, request.catalogue)
        fixed = (fixed_settings(request.config), request.catalogue, len(request.V))
        store.put("models", [(model, *fixed, request.round, now())])
        keep_table(store, model, request.round, V)
        store.put("answers", [(model, request.round, request.digest, reply.to_bytes())])
        delete_unused_catalogues(store)
        if state is not None:
            save_state(store, model, state)
        if state is not None and request.log is not None:
            keep_log(store, request.log)
        if sent is not None:  # under secure sums a release is booked when its vector leaves
            task = task_of(model, request.config)
            book(store, task, request.round, cost_of(store, task, request.config, request.round, None))
            store.log_sent(sent)
