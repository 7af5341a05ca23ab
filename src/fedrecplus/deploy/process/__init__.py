"""Homes of server and node, processes, certificates, and a run to its end. Nothing here imports Flower."""

from fedrecplus.deploy.process.homes import SERVER_HOME, NodeHome, ServerHome
from fedrecplus.deploy.process.private_files import check_private, make_secret, write_private
from fedrecplus.deploy.process.processes import CA, FLOWER_APP, Supervised, end_with_parent, free_port, is_loopback
from fedrecplus.deploy.process.runs import Show, deal_out, note_keys, run_local, run_to_the_end, running_server

__all__ = [
    "CA",
    "FLOWER_APP",
    "SERVER_HOME",
    "NodeHome",
    "ServerHome",
    "Show",
    "Supervised",
    "check_private",
    "deal_out",
    "end_with_parent",
    "free_port",
    "is_loopback",
    "make_secret",
    "note_keys",
    "run_local",
    "run_to_the_end",
    "running_server",
    "write_private",
]  # fmt: skip
