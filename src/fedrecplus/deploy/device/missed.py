"""The sums of rounds that this device missed, as its server keeps them: each must be the one that the log names."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Protocol

from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.log import PublicLog, leaf_hash
from fedrecplus.deploy.wire.packet import Facts, Packet, Refusal
from fedrecplus.deploy.wire.request import Request
from fedrecplus.deploy.wire.steps import sums_told, told_digest
from fedrecplus.protocol import Sums

log = logging.getLogger("fedrecplus")


class Past(Protocol):
    """What a server keeps of a task's rounds."""

    def log(self, task: str) -> PublicLog:
        """Its log, with the digests of the objects that have the sums."""

    def object(self, digest: str) -> bytes:
        """The bytes of that digest."""


def missed_sums(
    request: Request, catalogue: ItemCatalogue, rounds: range, past: Past | None
) -> Iterator[tuple[int, list[Sums], Facts]]:
    """The sums of these rounds, and the entries in a request's log that name them.

    ``Refusal`` where one of them isn't to be had.
    """
    if not rounds:
        return
    if past is None or request.log is None:
        raise Refusal("task", f"the sums of {len(rounds)} missed rounds are not told")
    published = past.log(request.task.digest)
    first = 1 - request.task.first  # of the entry of round 0
    for number in rounds:
        try:
            before, entry = (
                _entry(published.entries, place, request) for place in (number + first, number + first + 1)
            )
            packet = Packet.of_bytes(past.object(published.sums[number + first + 1]))
            sums = sums_told(packet.arrays)
            items = catalogue.first(len(sums[0].total)).digest
            same = told_digest(packet.arrays) == entry["sum"] and items == before["items"] and before["round"] == number
        except (ValueError, KeyError, TypeError, IndexError, Refusal) as error:
            log.warning("round %s: %s", number, error)
            same = False
        if not same:
            raise Refusal("task", f"the sum of round {number} is not the one in the log, or its server lacks it")
        yield number, sums, entry


def _entry(entries: list[str], place: int, request: Request) -> Facts:
    """What a log that was checked says at a place."""
    if request.log is None or leaf_hash(entries[place]) != request.log.leaves[place]:
        raise ValueError
    facts: Facts = json.loads(entries[place])
    return facts
