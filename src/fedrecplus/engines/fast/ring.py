"""Secure sums without masks: updates are added in whole steps as they are made. See ``parts/channel/secure``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.engines.fast.rows import PseudoRows, items_of
from fedrecplus.engines.fast.weighing import Weighing
from fedrecplus.engines.interface import Clients
from fedrecplus.engines.problem import Problem
from fedrecplus.engines.state import PrivateState, RoundReport
from fedrecplus.parts.channel import (
    Channel,
    decode,
    encoding_for,
    layout_of,
    of_steps,
    rounding_keys,
    secure,
    senders_of,
    warn_of_clipping,
)
from fedrecplus.protocol import Broadcast, Sums

Train = Callable[..., tuple[Sums, NDArray[Any]]]


def adds_up(channel: Channel[Any]) -> bool:
    """Whether updates may be added up in steps: computed masks need single uploads, and so do groups."""
    if not isinstance(channel, secure.Secure) or not channel.is_built_in:
        return False
    return channel.settings.cryptography == "skipped" and channel.settings.groups == 1


def ring_sums(
    problem: Problem,
    private: PrivateState,
    message: Broadcast,
    pseudo: PseudoRows,
    weighing: Weighing,
    clients: Clients,
    train: Train,
) -> tuple[Sums, NDArray[Any], RoundReport]:
    """What ``secure.add_up`` gives of the same clients' uploads, everybody's U, and the cost."""
    options, seed = problem.config.channel.settings, problem.config.seed
    model = problem.config.model
    size = model.statistic_size
    layout = layout_of(message.V.shape, size, options)
    rows = {
        client: None if layout.whole else layout.rows_for(items_of(problem, pseudo, client))
        for client in clients.tolist()
    }
    encoding = encoding_for(layout, message.public, len(clients), options, senders_of(rows.values(), layout))
    vanish = secure.vanishing(clients, message.round, seed, options)
    left_out = np.zeros(problem.ratings.clients, np.uint8)
    left_out[[client for client, stage in vanish.items() if stage != "reveal"]] = 1
    clipped = np.zeros(problem.ratings.clients, np.uint8)
    steps = weighing._replace(
        in_steps=True, scales=encoding.scales, weight_scale=encoding.weight_scale, largest_move=encoding.bound,
        largest_weight=encoding.largest_weight, statistic_scale=encoding.statistic_scale,
        largest_statistic=encoding.statistic_bound, left_out=left_out, clipped=clipped,
        by_chance=encoding.by_chance, marks=not layout.whole,
        rounding_keys=_rounding_keys(problem, message, clients),
    )  # fmt: skip
    sums, U = train(problem, private, message, pseudo, steps, clients)
    warn_of_clipping(int(clipped.sum()), message.round)
    survivors, traffic = secure.without_masks(rows, layout, vanish, message.round, seed, options)
    total = of_steps(replace(sums, clients=len(survivors), clipped=float(clipped.sum())), encoding)
    down = len(clients) * message.bytes + traffic.bytes_down
    return decode(total, encoding), U, RoundReport(len(clients), traffic.bytes_up, down)


def _rounding_keys(problem: Problem, message: Broadcast, clients: Clients) -> NDArray[np.uint64]:
    """The draws of ``encode``, by client number."""
    keys = np.zeros(problem.ratings.clients, np.uint64)
    keys[clients] = list(rounding_keys(clients.tolist(), message.round, problem.config.seed).values())
    return keys
