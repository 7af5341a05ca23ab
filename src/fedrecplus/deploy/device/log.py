"""The logs of tasks as this device has been told them: each must go on with what it was before, and with nothing else.

A round has one place in its task's log. A server that asks for a round again over another V, or tells two devices two
logs, has to sign two logs; whoever compares them has the proof.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire.log import LogHead, leaf_hash, root_of, split_leaves
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import Request
from fedrecplus.deploy.wire.steps import sum_digest


def check_log(store: Store, request: Request) -> None:
    """Refuse a question whose round isn't in its task's log, or whose log isn't that of before, grown."""
    task, head = request.task, request.log
    if not task.log:
        return
    if head is None:
        raise Refusal("log", "the task has a public log, and it is not told")
    head.check(task)
    if len(head.leaves) != request.round - task.first + 2 or head.leaves[-1] != leaf_hash(request.leaf):
        raise Refusal("log", f"round {request.round} is not in its place in the log")
    _check_leaf(request)
    if not head.goes_on_with(known_leaves(store, task.digest)[: len(head.leaves)]):
        raise Refusal("log", "the log is another one than before: keep it, it is a proof (`fedrecplus device log`)")


def _check_leaf(request: Request) -> None:
    """Refuse an entry that says something else than the question."""
    try:
        said = json.loads(request.leaf)
        same = said["round"] == request.round and said["V"] == Packet({}, request.told).digest
        same = same and said["items"] == request.catalogue
        summed = request.sums is None or said["sum"] == sum_digest(request.sums, request.config)
    except (ValueError, KeyError, TypeError):
        same = summed = False
    if not (same and summed):
        raise Refusal("log", "the log says something else of this round than the server asks")


def known_leaves(store: Store, task: str) -> tuple[bytes, ...]:
    """Hashes of the leaves of a task's log that this device has seen."""
    return split_leaves(store.value("SELECT leaves FROM logs WHERE task = ?", task) or b"")


def keep_log(store: Store, head: LogHead) -> None:
    """Keep it, if it has grown, within ``changing``."""
    if len(head.leaves) > len(known_leaves(store, head.task)):
        store.put("logs", [(head.task, b"".join(head.leaves), head.signature)])


def known_logs(store: Store) -> list[LogHead]:
    """All logs that this device has seen, as the server signed them."""
    rows = store.connection.execute("SELECT task, leaves, signature FROM logs ORDER BY rowid")
    return [LogHead(task, split_leaves(leaves), signature) for task, leaves, signature in rows]


def forks(store: Store, witnessed: Iterable[tuple[str, int, str]]) -> list[str]:
    """What a witness was told otherwise: its heads (task, leaves, root) that this device's logs don't have.

    Of a log that is longer than this device's nothing can be said; the witness's next head, or the device's, will tell.
    """
    own = {head.task: head.leaves for head in known_logs(store)}
    return [
        f"task {task[:16]}: the witness saw another log of {size} leaves than this device"
        for task, size, root in witnessed
        if task in own and size <= len(own[task]) and root_of(own[task][:size]).hex() != root
    ]
