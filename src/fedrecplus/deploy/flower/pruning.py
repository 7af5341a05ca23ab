"""What Flower's database keeps though nobody needs it any more, taken out now and then, so that it stays small."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

log = logging.getLogger("fedrecplus")
_BETWEEN, _KEPT_LOGS = 600.0, 7 * 86_400.0
"""seconds between looks, and that an app's output is kept"""
_FINISHED = "SELECT run.run_id FROM run JOIN task ON task_id = primary_task_id WHERE finished_at IS NOT NULL"
_STATEMENTS = (
    f"DELETE FROM message_res WHERE run_id IN ({_FINISHED})",
    f"DELETE FROM message_ins WHERE run_id IN ({_FINISHED})",
    "DELETE FROM message_res WHERE reply_to_message_id NOT IN (SELECT message_id FROM message_ins)",
    "DELETE FROM message_ins WHERE created_at + ttl < :now - 3600",
    "DELETE FROM nonce_store WHERE expires_at < :now",
    "DELETE FROM task_logs WHERE timestamp < :now - :kept",
)


def prune(state: Any, now: float | None = None) -> None:
    """Delete messages of finished runs and expired ones, objects that only finished runs had, and old output."""
    now = time.time() if now is None else now
    with state.session():
        for statement in _STATEMENTS:
            facts = {"now": now, "kept": _KEPT_LOGS}
            state.query(statement, {name: facts[name] for name in facts if f":{name}" in statement})
        finished = state.query(_FINISHED)
        with_objects = {row["run_id"] for row in state.query("SELECT DISTINCT run_id FROM run_objects")}
    for row in finished:
        if row["run_id"] in with_objects:
            state.object_store.delete_objects_in_run(row["run_id"] % 2**64)


def keep_pruned(state: Any) -> None:
    """Prune now and then, in a thread of its own."""

    def work() -> None:
        while True:
            try:
                prune(state)
            except Exception as error:  # a busy database: the next time will do
                log.warning("pruning the database: %s", error)
            time.sleep(_BETWEEN)

    threading.Thread(target=work, daemon=True).start()
