"""A secure sum without its masks: who would be in it, whether it could be finished, and what it would send.

``simulation.py`` runs it in full. Tests hold the two together: same survivors, same aborts, same bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from fedrecplus.parts.channel._ring import RingLayout
from fedrecplus.parts.channel.secure import graph, messages, shamir
from fedrecplus.parts.channel.secure.messages import KEY_BYTES, NUMBER_BYTES, VERSION
from fedrecplus.parts.channel.secure.server_state import Aborted, ServerOptions
from fedrecplus.parts.channel.secure.stages.share import SEALED_BYTES
from fedrecplus.protocol import Traffic

_SESSION = bytes(16)


def outline(
    rows: Mapping[int, int],
    layout: RingLayout,
    vanish: Mapping[int, str],
    options: ServerOptions,
    shuffle: Callable[[list[int]], None],
) -> tuple[list[int], Traffic]:
    """The survivors, ascending, and the bytes of all messages. ``rows`` is how many rows each client's vector spans.

    ``Aborted`` where too few clients would be left.
    """
    clients = sorted(rows)
    _need(len(clients), max(options.least_cohort, 2), "advertised keys")
    plan = graph.plan(len(clients), options.corrupted, options.dropout, False, options.sparse and layout.whole)
    shared = [client for client in clients if vanish.get(client) != "share"]
    summed = [client for client in shared if vanish.get(client) != "mask"]
    _need(len(shared), options.least_cohort, "shared their secrets")
    _need(len(summed), options.least_cohort, "sent their vectors")
    near = dict.fromkeys(clients, plan.neighbours)
    if vanish:
        joined = graph.everybody(clients) if plan.complete else graph.ring(clients, plan.neighbours, shuffle)
        near = _among(joined, shared)
        _check(plan, joined, shared, summed, vanish)
    hello, survivors_bytes, sealed = _fixed_sizes(plan, len(clients), layout.rows_bytes)
    up, down = hello * len(clients) + sealed * len(shared), survivors_bytes * len(shared)
    for client in summed:
        up += _masked_size(layout.bytes_of(rows[client]))
        down += _inbox_size(plan.neighbours, near[client])
        if vanish.get(client) != "reveal":
            down += _survivors_size(plan.neighbours, len(summed))
            up += _reveal_size(near[client])
    return summed, Traffic(up, down)


def _check(
    plan: graph.GraphPlan,
    joined: Mapping[int, Sequence[int]],
    shared: Sequence[int],
    summed: Sequence[int],
    vanish: Mapping[int, str],
) -> None:
    """Abort where the protocol would."""
    before, after = _among(joined, shared), _among(joined, summed)
    answering = _among(joined, [client for client in summed if vanish.get(client) != "reveal"])
    for client in summed:
        _need(before[client], plan.threshold, f"have shared secrets with client {client}")
        _need(after[client], plan.threshold, f"are left of the neighbours of client {client}")
        _need(answering[client], plan.threshold, f"gave a share of the seed of client {client}")
    for client in set(shared) - set(summed):
        if after[client]:
            _need(answering[client], plan.threshold, f"gave a share of the mask key of client {client}")


def _among(joined: Mapping[int, Sequence[int]], contributors: Sequence[int]) -> dict[int, int]:
    """How many of each client's neighbours are among some clients."""
    present = frozenset(contributors)
    return {client: sum(other in present for other in others) for client, others in joined.items()}


def _need(count: int, least: int, what: str) -> None:
    if count < least:
        raise Aborted(f"{count} clients {what}, and at least {least} are needed")


@functools.cache
def _fixed_sizes(plan: graph.GraphPlan, cohort: int, rows_bytes: int) -> tuple[int, int, int]:
    """Bytes of an advertisement, a neighbourhood and the sealed shares of one client."""
    number, key, rows = bytes(NUMBER_BYTES), bytes(KEY_BYTES), bytes(rows_bytes)
    advert = messages.Advertisement(VERSION, _SESSION, number, key, key, rows)
    records = advert.record() * plan.neighbours
    near = messages.Neighbourhood(VERSION, _SESSION, plan.threshold, cohort, records)
    shares = messages.SealedShares(VERSION, _SESSION, number, key, bytes(SEALED_BYTES * plan.neighbours))
    return len(messages.pack(advert)), len(messages.pack(near)), len(messages.pack(shares))


@functools.lru_cache(maxsize=1 << 16)
def _masked_size(data: int) -> int:
    return len(messages.pack(messages.MaskedVector(VERSION, _SESSION, bytes(NUMBER_BYTES), bytes(data))))


@functools.cache
def _inbox_size(neighbours: int, present: int) -> int:
    bits, sealed = bytes(-(-neighbours // 8)), bytes(SEALED_BYTES * present)
    return len(messages.pack(messages.Inbox(VERSION, _SESSION, bits, sealed)))


@functools.cache
def _survivors_size(neighbours: int, count: int) -> int:
    return len(messages.pack(messages.Survivors(VERSION, _SESSION, count, bytes(-(-(neighbours + 1) // 8)))))


@functools.cache
def _reveal_size(present: int) -> int:
    shares = bytes(shamir.SHARE_BYTES * present)
    return len(messages.pack(messages.Reveal(VERSION, _SESSION, bytes(NUMBER_BYTES), shares)))
