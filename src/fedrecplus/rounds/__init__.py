"""The two functions that are the paper: what a client does in a round, and what the server does."""

from fedrecplus.rounds.client import (
    check_weights as check_weights,
    client_round as client_round,
    extra_rows as extra_rows,
    local_update as local_update,
    outgoing as outgoing,
    predictions_of as predictions_of,
    pseudo_items as pseudo_items,
    select_items as select_items,
    training_rows as training_rows,
    virtual_ratings as virtual_ratings,
)
from fedrecplus.rounds.extension import extend_server as extend_server
from fedrecplus.rounds.release import (
    STATISTICS as STATISTICS,
    neighbouring as neighbouring,
    plan_of as plan_of,
    released as released,
    with_noise as with_noise,
)
from fedrecplus.rounds.server import (
    ServerState as ServerState,
    add_up as add_up,
    broadcast as broadcast,
    cooldown as cooldown,
    divide as divide,
    encode_items as encode_items,
    server_round as server_round,
    start_server as start_server,
    sums_of as sums_of,
    weighted_sum as weighted_sum,
    weights_of as weights_of,
)
