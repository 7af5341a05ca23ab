"""A node's side: the store of ratings, the reply to a round's request, and recommendations. Knows only the wire."""

from fedrecplus.deploy.device.identity import Identities, own_key, pin_identities
from fedrecplus.deploy.device.marks import MARKS, mark_item, marks_of
from fedrecplus.deploy.device.owner import (
    import_many,
    import_own,
    known_catalogues,
    last_upload,
    newest_model,
    recommend,
    top_list,
    unknown_items,
)
from fedrecplus.deploy.device.pausing import is_paused, pause
from fedrecplus.deploy.device.policy import CHANNELS, Policy, load_policy, save_policy, with_pin
from fedrecplus.deploy.device.round import answer, load_clients
from fedrecplus.deploy.device.store import BATCH, OWNER, StorageFull, Store, remove_store

__all__ = [
    "BATCH", "CHANNELS", "MARKS", "OWNER", "Identities", "Policy", "StorageFull", "Store", "answer", "import_many",
    "import_own", "is_paused", "known_catalogues", "last_upload", "load_clients", "load_policy", "mark_item",
    "marks_of", "newest_model", "own_key", "pause", "pin_identities", "recommend", "remove_store", "save_policy",
    "top_list", "unknown_items", "with_pin",
]  # fmt: skip
