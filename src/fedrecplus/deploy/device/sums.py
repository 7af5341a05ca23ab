"""A node's part in a secure sum: what it keeps between the stages, and when it lets its secrets go.

A node is one participant, however many persons it speaks for: their vectors are added up here, before the masks. State
is written to the private store before a stage's answer goes, so a node that was restarted goes on. The answer to the
last stage, *reveal*, is the commit point: with it goes a note of which survivors' sum was unmasked. Nobody gets another
sum over the same V with other survivors, in this model or under another name: the difference of two such sums would be
somebody's upload.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from dataclasses import dataclass

import numpy as np

from fedrecplus.config import Config
from fedrecplus.deploy.device.budget import book, check_cost, task_of
from fedrecplus.deploy.device.catalogues import load_catalogue
from fedrecplus.deploy.device.identity import Identities
from fedrecplus.deploy.device.policy import load_policy
from fedrecplus.deploy.device.sent import SentLine
from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.device.uploads import uploads_of
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import Request
from fedrecplus.deploy.wire.ring import STATISTICS_ROUND, SumTerms, persons_bound, sum_terms
from fedrecplus.deploy.wire.settings import config_of_text, told_text
from fedrecplus.deploy.wire.stages import FIRST, Stage, decode_stage_request, encode_stage, mask_context
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import RingVector, encode, is_clipped, without_marks, zeros
from fedrecplus.parts.channel.secure import Refused, SecureClient
from fedrecplus.protocol import Upload
from fedrecplus.randomness import subkey

log = logging.getLogger("fedrecplus")


@dataclass(frozen=True)
class _Kept:
    """A row of ``sums``: one sum that this node has begun."""

    session: str
    model: str
    round: int
    digest: str
    """of the request; the uploads are kept under it"""
    V: str
    """digest of V"""
    catalogue: str
    config: str
    state: bytes | None
    """of the protocol; gone as soon as the last answer is made"""
    reply: bytes | None
    """the last answer, should it be asked for again"""
    agreed: str
    """digest of the task"""

    def task(self, config: Config) -> str:
        """What it is paid for with."""
        return task_of(self.model, config)


def check_sum(store: Store, request: Request, catalogue: ItemCatalogue) -> None:
    """Refuse to begin a sum, by what is asked and what was unmasked before."""
    if request.pinned != Identities.load(store).pinned:
        raise Refusal("sum", "identities are pinned at this node or at the server, and not at both: `node join --pin`")
    _refuse_second(store, _table(request), request.task.digest, request.round)
    terms = terms_of(request.config, catalogue, request.round, request.V.shape)
    load_policy(store).check_noise(terms, pinned=request.pinned)
    check_cost(store, task_of(request.model, request.config), request.config, request.round, terms)


def advertise(store: Store, request: Request, uploads: Packet, started: float) -> Packet:
    """Begin a sum with fresh keys. Secrets of this model's earlier sums are deleted: nobody will finish those."""
    identities, V = Identities.load(store), _table(request)
    terms = terms_of(request.config, load_catalogue(store, request.catalogue), request.round, request.V.shape)
    layout, fewest = terms.layout, terms.settings.fewest_contributors
    persons = _persons_here(store)
    least = max(
        load_policy(store).least_cohort, request.config.channel.settings.least_cohort, terms.least_nodes,
        terms.least_persons - persons + 1,
    )  # fmt: skip
    number = identities.number if identities.pinned else secrets.randbits(62)
    rows = layout.rows_for(np.unique(uploads.arrays["items"]))
    client = SecureClient(
        number, request.sum_session, layout, rows, least, fewest, honest=terms.surviving, grouping=request.grouping,
        **identities.for_sums(),
    )  # fmt: skip
    stage = Stage(request.model, request.round, request.session, FIRST)
    reply = encode_stage(stage, client.advertise(), persons=persons_bound(persons))
    facts = (request.session.hex(), request.model, request.round, request.digest, V, request.catalogue)
    with store.changing():
        store.connection.execute("DELETE FROM sums WHERE model = ?", (request.model,))
        store.put("sums", [(*facts, told_text(request.config), client.to_bytes(), None, request.task.digest)])
        store.log_sent(_line(stage, reply, persons, 0, started, request.size))
    return reply


def _persons_here(store: Store) -> int:
    """All of the store, and its owner at least: how many have rated something would tell of their ratings."""
    return max(len(store.persons()), 1)


def answer_stage(packet: Packet, store: Store, started: float) -> Packet:
    """The reply to a later stage of a sum that this node has begun."""
    stage, message = decode_stage_request(packet)
    kept, identities, cost = _load(store, stage), Identities.load(store), None
    if kept.state is None:
        return _again(store, stage, kept, message)
    try:
        client = SecureClient.of_bytes(kept.state, **identities.for_sums())
        if stage.name == "share":
            content = client.share(message)
        elif stage.name == "mask":
            persons, given = _persons(packet), "mask" in client.state.done
            config, terms = _terms(store, kept, client)
            cost = None if given else check_cost(store, kept.task(config), config, kept.round, terms)
            content = client.mask(message, _vector(store, kept, client, persons, terms), mask_context(persons))
        elif stage.name == "consent":
            content = client.consent(message)
        else:
            content = client.reveal(*((client.state.survivors, message) if identities.pinned else (message,)))
    except (Refused, UserError) as refused:
        raise Refusal("sum", str(refused)) from None
    reply = encode_stage(stage, content)
    with store.changing():
        rows = client.layout.items if stage.name == "mask" else 0
        if stage.name == "reveal":
            survivors = client.state.survivors if identities.pinned else message
            _refuse_second(store, kept.V, kept.agreed, kept.round)
            done = (hashlib.sha256(survivors).hexdigest(), kept.agreed, kept.round)
            store.put("unmasked", [(kept.V, kept.model, kept.session, *done)])
        changed = (None, content) if stage.name == "reveal" else (client.to_bytes(), None)
        if cost is not None:
            book(store, kept.task(config), kept.round, cost)
        store.connection.execute("UPDATE sums SET state = ?, reply = ? WHERE session = ?", (*changed, kept.session))
        store.log_sent(_line(stage, reply, 0, rows, started, packet.size))
    return reply


def _load(store: Store, stage: Stage) -> _Kept:
    found = store.connection.execute("SELECT * FROM sums WHERE session = ?", (stage.session.hex(),)).fetchone()
    if found is None:
        raise Refusal("sum", "a sum that this node has not begun, or has given up")
    kept = _Kept(*found)
    if (kept.model, kept.round) != (stage.model, stage.round):
        raise Refusal("sum", "a sum of another model or round")
    return kept


def _again(store: Store, stage: Stage, kept: _Kept, message: bytes) -> Packet:
    """The last answer once more; its secrets are deleted, so no other question has an answer."""
    said = store.value("SELECT survivors FROM unmasked WHERE V = ?", kept.V)
    pinned = Identities.load(store).pinned
    same = stage.name == "reveal" and (pinned or said == hashlib.sha256(message).hexdigest())
    if not same or kept.reply is None:
        raise Refusal("sum", "this sum is over here")
    return encode_stage(stage, kept.reply)


def _refuse_second(store: Store, V: str, task: str, round_number: int) -> None:
    """Refuse to help unmask another sum of a task's round, or over a V, of which one was unmasked.

    A server could move V by a bit, or call the same V another task's.
    """
    later = store.value("SELECT MAX(round) FROM unmasked WHERE task = ?", task)
    if later is not None and later >= round_number:
        raise Refusal("sum", f"round {round_number} is asked for, and round {later} of the task was unmasked before")
    done = store.value("SELECT session FROM unmasked WHERE V = ?", V)
    if done is not None:
        raise Refusal("sum", f"a sum over this V was unmasked before, in session {done}; a new model needs a new seed")


def _terms(store: Store, kept: _Kept, client: SecureClient) -> tuple[Config, SumTerms]:
    """The settings that a sum was begun with, and its terms."""
    catalogue = load_catalogue(store, kept.catalogue)
    config, layout = config_of_text(kept.config, store.allowed_rules), client.layout
    return config, terms_of(config, catalogue, kept.round, (layout.items, layout.columns))


def _vector(store: Store, kept: _Kept, client: SecureClient, persons: int, terms: SumTerms) -> RingVector:
    """All persons' uploads, each clipped and encoded by itself, added up in the ring."""
    query = "SELECT content FROM answers WHERE model = ? AND round = ? AND digest = ?"
    content, layout = store.value(query, kept.model, kept.round, kept.digest), client.layout
    if content is None:
        raise Refusal("sum", "what this sum was begun with is gone")
    encoding = terms.encoding(persons, client.cohort, None if layout.whole else client.senders())
    vector, uploads = zeros(layout, client.rows), [without_marks(one) for one in uploads_of(Packet.of_bytes(content))]
    nothing = _nothing(layout.columns, None if terms.noise is None else 0.0)
    others = _persons_here(store) - len(uploads)  # no noise covers the number of persons, so it must not tell who rated
    for number, upload in enumerate([*uploads, *[nothing] * others]):
        if is_clipped(upload, encoding):
            log.warning("numbers of a person here are clipped to the sum's bounds")
        vector.add(encode(upload, encoding, subkey(client.rounding_key, number)))
    terms.add_share(vector, encoding, client.cohort, client.noise_words())
    return vector


def _nothing(columns: int, weight: float | None) -> Upload:
    """What somebody adds who has rated nothing that the server knows: a person in the count, and zeros."""
    return Upload(0, np.zeros(0, np.int64), np.zeros((0, columns)), weight)


def terms_of(config: Config, catalogue: ItemCatalogue | None, round_number: int, shape: tuple[int, ...]) -> SumTerms:
    """The terms of a sum as this node understands them; ``Refusal`` where there are none."""
    if catalogue is None or not STATISTICS_ROUND <= round_number < config.server.rounds:
        raise Refusal("sum", f"round {round_number} of {config.server.rounds}, or a catalogue that is gone")
    try:
        return sum_terms(config, catalogue.public, shape, round_number)
    except UserError as error:
        raise Refusal("policy", error.for_shell) from None


def unmasked_rounds(store: Store, model: str) -> int:
    """How many rounds' sums of a model this node has helped to unmask."""
    query = "SELECT COUNT(*) FROM unmasked WHERE model = ? AND V <> ?"
    return int(store.value(query, model, _of_statistics(model)))


def _of_statistics(model: str) -> str:
    return Packet({"statistics": model}, {}).digest


def _table(request: Request) -> str:
    """What one sum is unmasked of: a digest of V, or of the model's name where the sum is of its statistics."""
    if request.round == STATISTICS_ROUND:
        return _of_statistics(request.model)
    return Packet({}, {"V": request.V}).digest


def _persons(packet: Packet) -> int:
    persons = packet.facts.get("persons")
    if not isinstance(persons, int) or not 1 <= persons < 2**62:
        raise Refusal("request", "a sum of nobody")
    return persons


def _line(stage: Stage, reply: Packet, persons: int, rows: int, started: float, received: int) -> SentLine:
    return SentLine.of(stage.model, stage.round, persons, rows, reply, started, received, stage=stage.name)
