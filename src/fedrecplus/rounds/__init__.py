"""The two functions that are the paper: what a client does in a round, and what the server does."""

from fedrecplus.rounds.client import client_round, local_update, outgoing, predictions, pseudo_items, select_items
from fedrecplus.rounds.server import (
    ServerState,
    add_up,
    broadcast,
    encode_items,
    release,
    server_round,
    start_server,
    sums_of,
    weights_of,
)

__all__ = [
    "ServerState",
    "add_up",
    "broadcast",
    "client_round",
    "encode_items",
    "local_update",
    "outgoing",
    "predictions",
    "pseudo_items",
    "release",
    "select_items",
    "server_round",
    "start_server",
    "sums_of",
    "weights_of",
]
