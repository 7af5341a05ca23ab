"""One round's secure sum over the network: five exchanges, or four without pinned identities, and dropouts in each.

Where a task has groups, each is a cohort with a sum of its own. All go through the stages together; one that fails is
left out, as long as most come to a sum.

The server never holds an upload: what comes is masked, and what is left when the masks are out is the sum of all who
survived. Until the last exchange a sum that fails is given up, and the round begins anew with fresh keys and another
cohort. With the first question of the last exchange that is over: some nodes may have given their shares away, and
those refuse any other sum over the same V. So all that the server needs to finish is in its database before it asks, in
one transaction with the ledger's line, and it goes on asking, also from another process.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from fedrecplus.config import Config
from fedrecplus.deploy.server.collect import Collector
from fedrecplus.deploy.server.outcome import RoundOutcome
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.identities import identity_number
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.questions import told_bytes
from fedrecplus.deploy.wire.request import Request, decode_request
from fedrecplus.deploy.wire.ring import SumTerms, persons_bound, sum_terms
from fedrecplus.deploy.wire.stages import (
    FIRST,
    SESSION_BYTES,
    Stage,
    decode_stage_reply,
    encode_stage,
    longest_message,
    mask_context,
)
from fedrecplus.deploy.wire.steps import is_possible
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import Grouping, cohort_bytes, decode
from fedrecplus.parts.channel.secure import (
    Aborted,
    Advertisement,
    Refused,
    SecureServer,
    check_signature,
    pack,
    server_options,
    unpack,
)
from fedrecplus.protocol import Sums

log = logging.getLogger("fedrecplus")


class PendingGroup(msgspec.Struct, frozen=True):
    """One group's sum before its last exchange; the whole cohort's where there are no groups."""

    numbers: dict[int, int]
    """node → its number in the sum"""
    persons: int
    """that the sum has room for"""
    questions: dict[int, bytes]
    """number → what is asked in the last exchange"""
    server: bytes
    """the protocol's state, with the masked sum"""


class Pending(msgspec.Struct, frozen=True):
    """A round's sums before their last exchange, as they are in the database."""

    model: str
    round: int
    session: bytes
    drawn: int
    """how many groups there were"""
    groups: list[PendingGroup]


@dataclass
class _Group:
    """A group whose sum is being made."""

    server: SecureServer
    numbers: dict[int, int]
    persons: int
    questions: Mapping[int, bytes] = field(default_factory=dict)


class SecureRound:
    """The secure sum of one round, or those of its groups."""

    def __init__(self, collector: Collector, config: Config, catalogue: ItemCatalogue) -> None:
        self.collector, self.config, self.catalogue = collector, config, catalogue
        keys = [bytes.fromhex(key) for key in collector.deployment.identities]
        self.pinned = {identity_number(key): key for key in keys} if keys else None

    def pending(self, round_number: int) -> Pending | None:
        """The sums of this round that were about to be unmasked when their coordinator stopped; others are over."""
        content = self.collector.run.pending()
        if content is None:
            return None
        kept = msgspec.msgpack.decode(content, type=Pending)
        return kept if (kept.model, kept.round) == (self.collector.deployment.model, round_number) else None

    def attempt(
        self, round_number: int, shape: tuple[int, ...], requests: Mapping[int, Packet], target: int,
        note: Callable[[int], None],
    ) -> RoundOutcome:  # fmt: skip
        """A sum up to the point where it is certain that it will be unmasked, and then to its end.

        ``requests`` are the round's requests of a new session, node by node; ``target`` answers are needed. ``note`` is
        told the round before the sum can be unmasked by anybody, a server that is started again included.
        """
        summed = RoundOutcome(target)
        try:
            pending = self._masked(round_number, shape, requests, summed)
        except (Aborted, Refused) as problem:
            summed.why = str(problem)
            log.warning("round %s: no sum: %s", round_number + 1, problem)
            return summed
        self.collector.run.change(lambda _: self._keep(pending, note))
        return self.finish(pending, shape, summed)

    def _keep(self, pending: Pending, note: Callable[[int], None]) -> None:
        """In one transaction: what is needed to unmask, and the ledger's line of it."""
        note(pending.round)
        self.collector.run.set(pending=msgspec.msgpack.encode(pending))

    def finish(self, pending: Pending, shape: tuple[int, ...], summed: RoundOutcome | None = None) -> RoundOutcome:
        """The last exchange. What is kept stays until the round is; a failure may be tried again.

        Of groups, most must be finished.
        """
        groups = [
            _Group(SecureServer.of_bytes(kept.server, self.pinned), kept.numbers, kept.persons, kept.questions)
            for kept in pending.groups
        ]
        everybody = [node for group in groups for node in group.numbers]
        summed = RoundOutcome(len(everybody)) if summed is None else summed
        self._exchange(groups, pending.session, pending.round, summed)
        try:
            finished = self._closed(groups, pending.drawn, pending.round)
        except Aborted as problem:
            summed.why = str(problem)
            log.warning("round %s: the sum is not unmasked yet: %s", pending.round + 1, problem)
            return summed
        seconds = summed.nodes
        summed.sums, summed.nodes = [], {}
        for group, sums in self._possible(finished, pending, self._terms(shape, pending.round)):
            summed.sums.append(sums)
            nodes = [node for node, number in group.numbers.items() if number in group.server.vectors]
            if pending.drawn > 1:
                summed.groups.append(sorted(nodes))
            summed.nodes |= {node: seconds.get(node, 0.0) for node in nodes}
        return summed

    def _possible(self, groups: Sequence[_Group], pending: Pending, terms: SumTerms) -> list[tuple[_Group, Sums]]:
        """The groups' sums, but for those that so many people could not have made: every device would refuse them, and
        the model with them. A ``UserError`` where they are not most: who sent what can't be told.
        """
        decoded = [(group, _decoded(group, terms)) for group in groups]
        fits = [pending.round < 0 or is_possible(sums, self.catalogue.public, self.config) for _, sums in decoded]
        possible = [one for one, fit in zip(decoded, fits, strict=True) if fit]
        if not Grouping(pending.drawn, b"").enough(len(possible)):
            raise UserError(
                f"round {pending.round + 1}: {len(groups) - len(possible)} of {len(groups)} sums are none that so many "
                "people could have made, and devices refuse such: somebody sent numbers that no honest device has",
                "begin a new run, with channel.groups or with nodes that are known better",
            )
        if left_out := [sorted(group.numbers) for (group, _), fit in zip(decoded, fits, strict=True) if not fit]:
            log.error("round %s: no people could have made the sums of %s; left out", pending.round + 1, left_out)
        return possible

    def _closed(self, groups: Sequence[_Group], drawn: int, round_number: int) -> list[_Group]:
        """The groups whose stage could be closed, with their next questions; ``Aborted`` where they are not most."""
        closed, problem = [], Aborted("nobody is left")
        for group in groups:
            try:
                group.questions = group.server.close()
                closed.append(group)
            except Aborted as aborted:
                problem = aborted
                log.warning("round %s: a group of %s is left out: %s", round_number + 1, len(group.numbers), aborted)
            finally:
                self._blame(group.server, group.numbers)
        if not Grouping(drawn, b"").enough(len(closed)):
            raise problem
        return closed

    def _blame(self, server: SecureServer, numbers: Mapping[int, int]) -> None:
        """A strike for each node that gave wrong shares, so that it can't end sum after sum."""
        for node, number in numbers.items():
            if number in server.blamed:
                self.collector.records.note(node, Refusal("shares", server.blamed[number]))

    def _terms(self, shape: tuple[int, ...], round_number: int) -> SumTerms:
        return sum_terms(self.config, self.catalogue.public, shape, round_number)

    def _masked(
        self, round_number: int, shape: tuple[int, ...], requests: Mapping[int, Packet], summed: RoundOutcome
    ) -> Pending:
        """All exchanges but the last; ``Aborted`` where too few are left."""
        request = decode_request(next(iter(requests.values())), [choice.rule for choice in self.config.choices])
        groups = self._keys(request, shape, requests, summed)
        drawn = len(groups)
        groups = self._closed(groups, drawn, round_number)
        while groups[0].server.stage != "reveal":
            self._exchange(groups, request.session, round_number, summed)
            groups = self._closed(groups, drawn, round_number)
        kept = [
            PendingGroup(group.numbers, group.persons, dict(group.questions), group.server.to_bytes())
            for group in groups
        ]
        return Pending(self.collector.deployment.model, round_number, request.session, drawn, kept)

    def _keys(
        self, request: Request, shape: tuple[int, ...], requests: Mapping[int, Packet], summed: RoundOutcome
    ) -> list[_Group]:
        """The first exchange: everybody's keys, the number that each node gives itself, and room for how many."""
        adverts: dict[int, bytes] = {}
        nodes: dict[int, int] = {}
        persons: dict[int, int] = {}
        terms, session = self._terms(shape, request.round), request.sum_session
        due = Stage(request.model, request.round, request.session, FIRST)
        most = longest_message(FIRST, len(requests), 0, terms.layout.items // 8 + 1)

        def take(node: int, packet: Packet) -> None:
            message, count = decode_stage_reply(packet, due, most), packet.facts.get("persons")
            most_persons = persons_bound(self.collector.deployment.clients_per_node)
            if not isinstance(count, int) or not 1 <= count <= most_persons:
                said = f"{str(count)[:20]} persons, at most {most_persons} are allowed (deploy run --persons-per-node)"
                raise Refusal("out-of-range", said)
            try:
                advert = unpack(Advertisement, message, session)
                if self.pinned is not None:  # numbers follow from identities: who comes first with one may be another
                    check_signature(advert, self.pinned)
                number = advert.number
            except Refused as refused:
                raise Refusal("malformed", str(refused)) from None
            if number in nodes:
                raise Refusal("duplicate", "a number that another node has")
            adverts[number], nodes[number], persons[node] = message, node, count
            summed.bytes_up += packet.size

        self._gather(requests, take, FIRST, request.round, summed)
        cohort = self._server(session, terms, list(adverts))
        for number, message in adverts.items():
            try:
                self._take(cohort, number, message)
            except Refusal as refusal:
                self.collector.records.note(nodes[number], refusal)
                summed.lost[nodes[number]] = f"{FIRST} {refusal.kind}"
        groups = []
        for server in [cohort] if request.grouping is None else self._parted(cohort, request.grouping, terms):
            numbers = {nodes[number]: number for number in server.adverts}
            room = sum(persons[node] for node in numbers)
            server.context = mask_context(room)
            groups.append(_Group(server, numbers, room))
            if numbers:  # too many for the ring: better said now
                terms.share(terms.encoding(room, len(numbers), server.senders()), len(numbers))
        return groups

    def _server(self, session: bytes, terms: SumTerms, numbers: Sequence[int], everybody: bytes = b"") -> SecureServer:
        options = server_options(self.config.channel.settings, terms.surviving)
        options = replace(options, least_cohort=max(options.least_cohort, terms.least_nodes))
        return SecureServer(session, terms.layout, numbers, options, self.pinned, everybody=everybody)

    def _parted(self, cohort: SecureServer, grouping: Grouping, terms: SumTerms) -> Iterator[SecureServer]:
        """A sum for each group of those whose keys were taken: who is in the cohort says who is in which group."""
        numbers = sorted(cohort.adverts)
        for places in grouping.of(numbers):
            members = [numbers[place] for place in places]
            server = self._server(cohort.session, terms, members, cohort_bytes(numbers))
            for number in members:
                server.take(number, pack(cohort.adverts[number]))
            yield server

    def _exchange(self, groups: Sequence[_Group], session: bytes, round_number: int, summed: RoundOutcome) -> None:
        """One later stage: everybody who is left gets a question of their own."""
        server, of_node = groups[0].server, {node: group for group in groups for node in group.numbers}
        due, layout = Stage(self.collector.deployment.model, round_number, session, server.stage), server.layout
        near = max(len(group.numbers) for group in groups)
        most = longest_message(due.name, near, layout.bytes_of(layout.items), layout.items // 8 + 1)
        packets = {
            node: encode_stage(
                due, group.questions[number], **({"persons": group.persons} if due.name == "mask" else {})
            )
            for node, group in of_node.items()
            if (number := group.numbers[node]) in group.questions
        }

        def take(node: int, packet: Packet) -> None:
            group = of_node[node]
            self._take(group.server, group.numbers[node], decode_stage_reply(packet, due, most))
            summed.bytes_up += packet.size

        self._gather(packets, take, due.name, round_number, summed)

    def _gather(
        self, packets: Mapping[int, Packet], take: Callable[[int, Packet], None], stage: str, round_number: int,
        summed: RoundOutcome,
    ) -> None:  # fmt: skip
        """Ask and take; note who was lost."""
        enough = self.collector.quorum(min(summed.target, len(packets)))
        progress = {"round": round_number, "stage": stage}
        summed.add(self.collector.gather(packets, take, enough, progress, linger=True), stage)
        summed.bytes_down += sum(told_bytes(packet) for packet in packets.values())

    def _take(self, server: SecureServer, number: int, message: bytes) -> None:
        """Hand a message to the protocol, whose refusals are ours."""
        try:
            server.take(number, message)
        except Refused as refused:
            raise Refusal("malformed", str(refused)) from None


def _decoded(group: _Group, terms: SumTerms) -> Sums:
    """A group's sums; with the standard deviation of the devices' noise, where they add any."""
    server = group.server
    encoding = terms.encoding(group.persons, server.cohort, server.senders())
    noise = terms.share(encoding, server.cohort) * math.sqrt(len(server.vectors))
    return replace(decode(server.total, encoding), noise=noise)


def new_session() -> bytes:
    """A name for a sum that no other has."""
    return os.urandom(SESSION_BYTES)
