"""A device's node in one process: it speaks Flower's Fleet API by itself, and loads nothing of Flower."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedrecplus.deploy.light.addresses import is_loopback, split_address
    from fedrecplus.deploy.light.facts import NODE_KEY, NODE_PUBLIC
    from fedrecplus.deploy.light.fleet import Fleet, trust
    from fedrecplus.deploy.light.home import STORE, NodeHome
    from fedrecplus.deploy.light.keys import Key, make_node_key
    from fedrecplus.deploy.light.messages import ATTACHED
    from fedrecplus.deploy.light.metrics import NodeMetrics
    from fedrecplus.deploy.light.node import LightNode
    from fedrecplus.deploy.light.pace import Pace
    from fedrecplus.deploy.light.protobuf import Malformed, Schema, decode, encode, split
    from fedrecplus.deploy.light.running import join, prepare, run_node, run_once

_HOMES = {
    "addresses": ("is_loopback", "split_address"),
    "fleet": ("Fleet", "trust"),
    "facts": ("NODE_KEY", "NODE_PUBLIC"),
    "home": ("STORE", "NodeHome"),
    "keys": ("Key", "make_node_key"),
    "messages": ("ATTACHED",),
    "metrics": ("NodeMetrics",),
    "node": ("LightNode",),
    "pace": ("Pace",),
    "protobuf": ("Malformed", "Schema", "decode", "encode", "split"),
    "running": ("join", "prepare", "run_node", "run_once"),
}
"""module → its names here; it is imported when one is first used"""

__all__ = [
    "ATTACHED", "NODE_KEY", "NODE_PUBLIC", "STORE", "Fleet", "Key", "LightNode", "Malformed", "NodeHome", "NodeMetrics",
    "Pace", "Schema", "decode", "encode", "is_loopback", "join", "make_node_key", "prepare", "run_node", "run_once",
    "split", "split_address", "trust",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
