"""A device's node in one process: it speaks HTTP with its server, and loads nothing of the server's."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrecplus.deploy.node.addresses import is_loopback, split_address
    from fedrecplus.deploy.node.connection import ServerConnection, trust
    from fedrecplus.deploy.node.file_names import NODE_KEY, NODE_PUBLIC
    from fedrecplus.deploy.node.home import STORE, NodeHome
    from fedrecplus.deploy.node.joining import Invitation, fetch_model, fetch_task, fingerprint, join_by
    from fedrecplus.deploy.node.keys import make_node_key, read_node_key, read_public_key
    from fedrecplus.deploy.node.metrics import NodeMetrics
    from fedrecplus.deploy.node.node import Node
    from fedrecplus.deploy.node.pace import Pace
    from fedrecplus.deploy.node.running import join, prepare, run_node, run_once

_HOMES = {
    "addresses": ("is_loopback", "split_address"),
    "connection": ("ServerConnection", "trust"),
    "file_names": ("NODE_KEY", "NODE_PUBLIC"),
    "home": ("STORE", "NodeHome"),
    "joining": ("Invitation", "fetch_model", "fetch_task", "fingerprint", "join_by"),
    "keys": ("make_node_key", "read_node_key", "read_public_key"),
    "metrics": ("NodeMetrics",),
    "node": ("Node",),
    "pace": ("Pace",),
    "running": ("join", "prepare", "run_node", "run_once"),
}
"""module → its names here; it is imported when one is first used"""

__all__ = [
    "NODE_KEY", "NODE_PUBLIC", "STORE", "Invitation", "Node", "NodeHome", "NodeMetrics", "Pace", "ServerConnection",
    "fetch_model", "fetch_task", "fingerprint", "is_loopback", "join", "join_by", "make_node_key", "prepare",
    "read_node_key", "read_public_key", "run_node", "run_once", "split_address", "trust",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
