"""Messages in flight, which the server keeps in memory: bounded, and rid of what nobody will fetch any more.

Flower can keep its state in SQLite or in memory. A message costs its database some sixty statements, 50 ms of the
server's time, and leaves uploads on the disk. In memory it costs a millisecond and is gone with the process. Nothing
else is lost with it: who was admitted stands in ``nodes.json``, a run in its folder, and nodes keep their answers until
these are taken.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fedrecplus.deploy.flower import private

_InMemoryObjectStore: Any = private.get("flwr.supercore.object_store.in_memory_object_store.InMemoryObjectStore")
log = logging.getLogger("fedrecplus")
_SHARE, _LEAST = 0.25, 256 * 2**20
"""of the machine's memory that objects may take, and bytes that they always may"""
_LONGEST_HEAD = 4096
"""bytes before an object's content: its kind, and names of its parts, of which Flower looks at each"""
_BETWEEN = 60.0
"""seconds between looks for what nobody will fetch"""


class ObjectStoreFull(Exception):
    """There is no room for an object now: whoever brings it tries again."""


class BoundedObjectStore(_InMemoryObjectStore):  # type: ignore[misc]
    """Flower's store, which refuses an object where all of them would take too much memory."""

    def __init__(self, verify: bool = True) -> None:
        super().__init__(verify)
        self.bytes, self.most_bytes = 0, most_bytes()

    def put(self, object_id: str, object_content: bytes) -> None:
        """Keep an object's content, if there is room."""
        if b"\0" not in object_content[:_LONGEST_HEAD]:
            raise ValueError("an object of too many parts")
        with self.lock_store:
            entry = self.store.get(object_id)
            new = entry is not None and not entry.is_available
            if new and self.bytes + len(object_content) > self.most_bytes:
                raise ObjectStoreFull(f"{self.bytes} bytes of messages are in flight")
            super().put(object_id, object_content)
            self.bytes += len(object_content) if new else 0

    def delete(self, object_id: str) -> None:
        """Delete an object that no other needs, and its parts that no other has."""
        with self.lock_store:
            entry = self.store.get(object_id)
            if entry is not None and entry.ref_count == 0:
                self.bytes -= len(entry.content)
            super().delete(object_id)

    def clear(self) -> None:
        """Delete everything."""
        with self.lock_store:
            super().clear()
            self.bytes = 0


def most_bytes() -> int:
    """Memory that messages in flight may take on this machine."""
    with contextlib.suppress(ValueError, OSError):
        return max(_LEAST, int(_SHARE * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return _LEAST


class Questions(dict[str, Any]):
    """Messages to nodes by their names. It knows those of each node, where Flower looks through all for each pull."""

    def __init__(self) -> None:
        super().__init__()
        self._of: dict[int, dict[str, Any]] = {}

    def __setitem__(self, name: str, message: Any) -> None:
        super().__setitem__(name, message)
        self._of.setdefault(message.metadata.dst_node_id, {})[name] = message

    def __delitem__(self, name: str) -> None:
        node = self[name].metadata.dst_node_id
        super().__delitem__(name)
        del self._of[node][name]
        if not self._of[node]:
            del self._of[node]

    def of(self, node: int) -> dict[str, Any]:
        """A node's, oldest first."""
        return self._of.get(node, {})

    def nodes(self) -> set[int]:
        """Who has some."""
        return set(self._of)


def prepare(state: Any) -> None:
    """Let Flower's state find a node's messages at once, and take one lock where it takes two in either order."""
    state._lock_object_push_sessions = state.lock
    state.message_ins_store = Questions()
    state.get_message_ins = partial(_deliver, state)


def _deliver(state: Any, node_id: int, limit: int | None, *, run_id: int | None = None) -> list[Any]:
    """Messages to a node that weren't delivered, and are from now on: what Flower's ``get_message_ins`` does."""
    with state.lock:
        state._check_stored_messages(set(state.message_ins_store.of(node_id)))
        found = [
            message
            for name, message in state.message_ins_store.of(node_id).items()
            if _waits(state, name, message, time.time()) and run_id in (None, message.metadata.run_id)
        ][:limit]
        for message in found:
            message.metadata.delivered_at = datetime.now(UTC).isoformat()
    return found


def undelivered(state: Any, now: float, among: Iterable[int] | None = None) -> set[int]:
    """Nodes that have a message to pull."""
    questions = state.message_ins_store
    with state.lock:
        return {
            node
            for node in (questions.nodes() if among is None else among)
            if any(_waits(state, name, message, now) for name, message in questions.of(node).items())
        }


def _waits(state: Any, name: str, message: Any, now: float) -> bool:
    """Whether a message is to be pulled, and its contents are all here: who pulls one before that gives up on it."""
    its = message.metadata
    return its.delivered_at == "" and its.created_at + its.ttl > now and name not in state._object_push_session_by_root


def prune(state: Any, orphans: set[str]) -> set[str]:
    """Delete messages that have expired, and objects of messages that are gone since the last look.

    ``orphans`` are objects without a message as of the last look; returns those of this one. An answer that the app is
    about to fetch has no message any more either, so that nothing goes at its first look.
    """
    with state.lock:
        over = [name for name, one in state._object_push_sessions.items() if one.expires_at <= datetime.now(UTC)]
    for name in over:  # Flower looks only when somebody asks for what is missing
        state._cleanup_push_session(name, cleanup_messages=True)
    with state.lock:
        state._check_stored_messages(set(state.message_ins_store))
        messages = state.message_ins_store.keys() | state.message_res_store.keys()
        messages |= state._object_push_session_by_root.keys()
    store = state.object_store
    with store.lock_store:
        found = {name for name, entry in store.store.items() if entry.ref_count == 0 and name not in messages}
    for name in orphans & found:
        store.delete(name)
    return found - orphans


def keep_pruned(state: Any) -> None:
    """Prune now and then, in a thread of its own."""

    def work() -> None:
        orphans: set[str] = set()
        while True:
            time.sleep(_BETWEEN)
            try:
                orphans = prune(state, orphans)
            except Exception:
                log.exception("pruning messages failed")

    threading.Thread(target=work, daemon=True).start()
