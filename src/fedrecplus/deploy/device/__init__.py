"""A node's side: the store of ratings, the reply to a round's request, and recommendations. Knows only the wire."""

from fedrecplus.deploy.device.owner import import_many, import_own, last_upload, recommend, top_list, unknown_items
from fedrecplus.deploy.device.round import answer, load_clients
from fedrecplus.deploy.device.store import BATCH, OWNER, StorageFull, Store, remove_store

__all__ = [
    "BATCH", "OWNER", "StorageFull", "Store", "answer", "import_many", "import_own", "last_upload",
    "load_clients", "recommend", "remove_store", "top_list", "unknown_items",
]  # fmt: skip
