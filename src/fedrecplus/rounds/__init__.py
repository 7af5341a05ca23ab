"""The two functions that are the paper: what a client does in a round, and what the server does."""

from fedrecplus.rounds.client import (
    check_weights,
    client_round,
    local_update,
    outgoing,
    predictions,
    predictions_of,
    pseudo_items,
    rows_of,
    select_items,
    virtual_ratings,
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
    "check_weights",
    "client_round",
    "cooldown",
    "encode_items",
    "extend_server",
    "local_update",
    "neighbouring",
    "outgoing",
    "plan_of",
    "predictions",
    "predictions_of",
    "pseudo_items",
    "released",
    "rows_of",
    "select_items",
    "server_round",
    "start_server",
    "sums_of",
    "virtual_ratings",
    "weights_of",
    "with_noise",
]
