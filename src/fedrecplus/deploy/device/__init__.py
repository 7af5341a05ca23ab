"""A node's side: the store of ratings, the reply to a round's request, and recommendations. Knows only the wire."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrecplus.deploy.device.budget import spent
    from fedrecplus.deploy.device.identity import Identities, own_key, pin_identities
    from fedrecplus.deploy.device.items import FoundItem, find_item
    from fedrecplus.deploy.device.log import forks, known_logs
    from fedrecplus.deploy.device.marks import MARKS, mark_item, marks_of
    from fedrecplus.deploy.device.models import choose_table, chosen_table, is_chosen, seen_tables, use_newest
    from fedrecplus.deploy.device.owner import (
        import_many,
        import_own,
        known_catalogues,
        last_upload,
        recommend,
        top_list,
        unknown_items,
        used_model,
    )
    from fedrecplus.deploy.device.pausing import is_paused, pause
    from fedrecplus.deploy.device.policy import CHANNELS, Policy, load_policy, save_policy, with_pin
    from fedrecplus.deploy.device.private_files import check_private
    from fedrecplus.deploy.device.round import answer, load_clients
    from fedrecplus.deploy.device.steps import stepped_tables
    from fedrecplus.deploy.device.store import BATCH, OWNER, StorageFull, Store, remove_store
    from fedrecplus.deploy.device.tasks import KnownTask, agree, known_tasks, propose, task_named, withdraw

_HOMES = {
    "budget": ("spent",),
    "identity": ("Identities", "own_key", "pin_identities"),
    "items": ("FoundItem", "find_item"),
    "log": ("forks", "known_logs"),
    "marks": ("MARKS", "mark_item", "marks_of"),
    "models": ("choose_table", "chosen_table", "is_chosen", "seen_tables", "use_newest"),
    "owner": (
        "import_many", "import_own", "known_catalogues", "last_upload", "recommend", "top_list", "unknown_items",
        "used_model",
    ),
    "pausing": ("is_paused", "pause"),
    "policy": ("CHANNELS", "Policy", "load_policy", "save_policy", "with_pin"),
    "private_files": ("check_private",),
    "round": ("answer", "load_clients"),
    "steps": ("stepped_tables",),
    "store": ("BATCH", "OWNER", "StorageFull", "Store", "remove_store"),
    "tasks": ("KnownTask", "agree", "known_tasks", "propose", "task_named", "withdraw"),
}  # fmt: skip
"""module → its names here; it is imported when one is first used: who only rates an item waits for no model"""

__all__ = [
    "BATCH", "CHANNELS", "MARKS", "OWNER", "FoundItem", "Identities", "KnownTask", "Policy", "StorageFull", "Store",
    "agree", "answer", "check_private", "choose_table", "chosen_table", "find_item", "forks", "import_many",
    "import_own", "is_chosen", "is_paused", "known_catalogues", "known_logs", "known_tasks", "last_upload",
    "load_clients", "load_policy", "mark_item", "marks_of", "own_key", "pause", "pin_identities", "propose",
    "recommend", "remove_store", "save_policy", "seen_tables", "spent", "stepped_tables", "task_named", "top_list",
    "unknown_items", "use_newest", "used_model", "with_pin", "withdraw",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
