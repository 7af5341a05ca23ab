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
from datetime import UTC, datetime
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


def undelivered(state: Any, now: float) -> set[int]:
    """Nodes that have a message to pull whose contents are all here: who pulls one before that gives up on it."""
    with state.lock:
        return {
            message.metadata.dst_node_id
            for name, message in state.message_ins_store.items()
            if message.metadata.delivered_at == ""
            and message.metadata.created_at + message.metadata.ttl > now
            and name not in state._object_push_session_by_root
        }


def prune(state: Any, orphans: set[str]) -> set[str]:
    """Delete messages that have expired, and objects of messages that are gone since the last look.

    ``orphans`` are objects without a message as of the last look; returns those of this one. An answer that the app is
    about to fetch has no message any more either, so that nothing goes at its first look.
    """
    with state.lock, state._lock_object_push_sessions:
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
