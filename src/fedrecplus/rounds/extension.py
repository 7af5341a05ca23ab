"""New items enter a model that is in training, without starting it again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.errors import UserError
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds.server import ServerState


def extend_server(state: ServerState, before: PublicItems, after: PublicItems, config: Config) -> ServerState:
    """The server with rows for new items, which come after all others; the old rows stay as they are.

    A new row is what the model says (``new_items``): what the item's public features predict, or a start
    value. From then on it is trained like every other. Ours: the round number goes on, so a training that is
    in its cooldown moves new rows little; give ``server.rounds`` room for them.
    """
    known, count = len(before.popularity), len(after.popularity)
    if len(state.V) != known or count < known:
        raise UserError(
            f"a model of {len(state.V)} items can't go on with {count}",
            "give public figures of the same items in the same order, and the new ones after them",
        )
    if config.aggregation.covariance_kind == "full":
        raise UserError("a full covariance has no room for new items", "set aggregation.covariance=none")
    rows = config.model.new_items(state.V, after, config.seed)
    covariance = state.last_covariance
    return replace(
        state,
        V=np.vstack([state.V, rows.astype(state.V.dtype)]),
        last_step=_longer(state.last_step, count),
        last_covariance=_longer(covariance, count) if len(covariance) else covariance,
        moments=[_longer(moment, count) for moment in state.moments],
    )


def _longer(table: NDArray[Any], count: int) -> NDArray[Any]:
    """The table with zero rows for new items."""
    return np.vstack([table, np.zeros((count - len(table), table.shape[1]), dtype=table.dtype)])
