"""A device's node in one process: it speaks Flower's Fleet API by itself, and loads nothing of Flower."""

from fedrecplus.deploy.light.addresses import is_loopback, split_address
from fedrecplus.deploy.light.fleet import Fleet, Key, trust
from fedrecplus.deploy.light.node import LightNode
from fedrecplus.deploy.light.pace import Pace
from fedrecplus.deploy.light.running import NODE_KEY, NODE_PUBLIC, STORE, join, prepare, run_node, run_once

__all__ = [
    "NODE_KEY", "NODE_PUBLIC", "STORE", "Fleet", "Key", "LightNode", "Pace", "is_loopback", "join", "prepare",
    "run_node", "run_once", "split_address", "trust",
]  # fmt: skip
