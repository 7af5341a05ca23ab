"""The two functions that are the paper: what a client does in a round, and what the server does."""

from fedrecplus.rounds.client import (
    client_round,
    local_update,
    outgoing,
    predictions,
    pseudo_items,
    rows_of,
    select_items,
)
from fedrecplus.rounds.extension import extend_server
from fedrecplus.rounds.release import STATISTICS, neighbouring, plan_of, released, with_noise
from fedrecplus.rounds.server import (
    ServerState,
    add_up,
    broadcast,
    cooldown,
    encode_items,
    server_round,
    start_server,
    sums_of,
    weights_of,
)

__all__ = [
    "STATISTICS",
    "ServerState",
    "add_up",
    "broadcast",
    "client_round",
    "cooldown",
    "encode_items",
    "extend_server",
    "local_update",
    "neighbouring",
    "outgoing",
    "plan_of",
    "predictions",
    "pseudo_items",
    "released",
    "rows_of",
    "select_items",
    "server_round",
    "start_server",
    "sums_of",
    "weights_of",
    "with_noise",
]
