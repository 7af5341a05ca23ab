"""Homes of server and node, processes, certificates, and a run to its end. Nothing here imports Flower."""

from fedrecplus.deploy.light import NodeHome
from fedrecplus.deploy.process.homes import ServerHome
from fedrecplus.deploy.process.processes import CA, FLOWER_APP, Supervised, end_with_parent, free_port, is_loopback
from fedrecplus.deploy.process.runs import Show, deal_out, note_keys, run_local, run_to_the_end, running_server

__all__ = [
    "CA",
    "FLOWER_APP",
    "NodeHome",
    "ServerHome",
    "Show",
    "Supervised",
    "deal_out",
    "end_with_parent",
    "free_port",
    "is_loopback",
    "note_keys",
    "run_local",
    "run_to_the_end",
    "running_server",
]  # fmt: skip
