"""The tasks that this device's owner has agreed to, and those that servers have proposed since.

A question of any other task is refused by its message alone, before ratings are looked at. What was refused is kept as
a proposal, so that its owner can read it in plain words and agree.
"""

from __future__ import annotations

from typing import NamedTuple

from fedrecplus.deploy.device.policy import load_policy
from fedrecplus.deploy.device.sent import now
from fedrecplus.deploy.device.store import Store
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.packet import Refusal
from fedrecplus.deploy.wire.request import Request
from fedrecplus.deploy.wire.task import Task
from fedrecplus.errors import UserError

_MOST_PROPOSED = 8
"""proposals that are kept: a server could send them without end"""


class KnownTask(NamedTuple):
    """A task that was agreed to or proposed."""

    task: Task
    agreed: bool
    at: str


def check_task(store: Store, request: Request, catalogue: ItemCatalogue) -> None:
    """Refuse a question of a task that the owner hasn't agreed to, and one that is none of its task's."""
    task = request.task
    if not load_policy(store).any_task and not _is_agreed(store, task.digest):
        propose(store, task)
        agree_to = f"`fedrecplus node consent {task.digest[:16]}` would agree to it"
        raise Refusal("task", f"task {task.digest[:16]} is not agreed to here; {agree_to}")
    task.check(request.model, request.config, request.round, catalogue)


def known_tasks(store: Store) -> list[KnownTask]:
    """All that were agreed to or proposed, newest last."""
    rows = store.connection.execute("SELECT document, agreed, at FROM tasks ORDER BY rowid")
    return [KnownTask(Task.parse(document), bool(agreed), at) for document, agreed, at in rows]


def propose(store: Store, task: Task) -> None:
    """Keep a task for the owner to read; the oldest proposals make room."""
    with store.changing():
        row = (task.digest, task.text, now())
        store.connection.execute("INSERT OR IGNORE INTO tasks VALUES (?, ?, 0, ?)", row)
        newest = "SELECT digest FROM tasks WHERE agreed = 0 ORDER BY rowid DESC LIMIT ?"
        store.connection.execute(f"DELETE FROM tasks WHERE agreed = 0 AND digest NOT IN ({newest})", (_MOST_PROPOSED,))


def agree(store: Store, task: Task) -> None:
    """Take part in this task from now on."""
    with store.changing():
        store.put("tasks", [(task.digest, task.text, 1, now())])


def withdraw(store: Store, task: Task) -> None:
    """Take part in this task no more."""
    with store.changing():
        store.connection.execute("UPDATE tasks SET agreed = 0 WHERE digest = ?", (task.digest,))


def task_named(store: Store, name: str) -> Task:
    """The known task whose digest begins so."""
    matching = [known.task for known in known_tasks(store) if known.task.digest.startswith(name)]
    if len(matching) != 1:
        raise UserError(f"{len(matching)} tasks are called {name!r}", "`fedrecplus node consent` lists them")
    return matching[0]


def _is_agreed(store: Store, digest: str) -> bool:
    return bool(store.value("SELECT agreed FROM tasks WHERE digest = ?", digest))
