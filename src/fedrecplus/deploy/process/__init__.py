"""Homes of server and node, processes, certificates, and a run to its end. Nothing here imports Flower."""

from fedrecplus.deploy.light import NodeHome
from fedrecplus.deploy.process.home_layout import MODELS
from fedrecplus.deploy.process.homes import SERVER_HOME, ServerHome
from fedrecplus.deploy.process.joining import Invitation, fetch_model, fingerprint, join_by
from fedrecplus.deploy.process.operator_page import page_server
from fedrecplus.deploy.process.private_files import check_private, make_secret, write_private
from fedrecplus.deploy.process.processes import CA, FLOWER_APP, Supervised, end_with_parent, free_port, is_loopback
from fedrecplus.deploy.process.runs import Show, deal_out, note_keys, run_local, run_to_the_end, running_server
from fedrecplus.deploy.process.schedule import seconds_of, train_again
from fedrecplus.deploy.process.upkeep import Finding, back_up, days_left, last_run, look_over, note_run, restore

__all__ = [
    "CA",
    "FLOWER_APP",
    "MODELS",
    "SERVER_HOME",
    "Finding",
    "Invitation",
    "NodeHome",
    "ServerHome",
    "Show",
    "Supervised",
    "back_up",
    "check_private",
    "days_left",
    "deal_out",
    "end_with_parent",
    "fetch_model",
    "fingerprint",
    "free_port",
    "is_loopback",
    "join_by",
    "last_run",
    "look_over",
    "make_secret",
    "note_keys",
    "note_run",
    "page_server",
    "restore",
    "run_local",
    "run_to_the_end",
    "running_server",
    "seconds_of",
    "train_again",
    "write_private",
]  # fmt: skip
