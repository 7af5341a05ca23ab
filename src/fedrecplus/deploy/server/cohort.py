"""Whom a round asks: a sample, and somewhat more than it needs where nodes are known to be lost on the way."""

from __future__ import annotations

import math
import secrets
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.randomness import subkey, uniform

_REMEMBERED, _MOST_LOST = 20, 0.8
_ASSUMED = 0.1
_GRACE, _SLOW = 5.0, 3.0
"""seconds, and times the median answer, after which an answer is slow"""
ALL, ENOUGH, DEADLINE = "all", "enough", "deadline"
"""what closed a round"""


@dataclass(frozen=True)
class AskedNodes:
    """Nodes to ask, and how many sound answers close the round."""

    asked: list[int]
    target: int


def draw_cohort(config: Config, round_number: int, connected: Sequence[int], wanted: int, dropout: float) -> AskedNodes:
    """The cohort of a round among the nodes that are connected.

    ``wanted`` nodes, or ``cohort.fraction`` of all if that is 0. ``dropout`` is the share that was lost so far; so many
    more are asked. With ``cohort.sampling = "poisson"`` each node is asked by a coin of its own, which nobody can
    foresee, and nobody is asked in another's place.
    """
    how = config.cohort
    if how.sampling == "poisson" and not wanted:
        coins = secrets.SystemRandom()
        asked = [node for node in connected if coins.random() < how.fraction]
        return AskedNodes(asked, len(asked))
    target = min(len(connected), wanted or max(1, round(how.fraction * len(connected))))
    count = min(len(connected), math.ceil(target / (1.0 - min(dropout, _MOST_LOST)) - 1e-9))
    if count == len(connected):
        return AskedNodes(list(connected), target)
    draws = uniform(subkey(config.seed, "nodes", round_number), np.array(connected, dtype=np.uint64))
    return AskedNodes([connected[place] for place in np.argsort(draws)[:count]], target)


def dropout_seen(lines: Sequence[dict[str, Any]]) -> float:
    """The share of asked nodes that recent rounds have lost.

    A node counts as lost too that takes much longer than most, since a round that is one answer short waits for it. A
    round that had enough soon tells nothing of those who hadn't answered. Until a round has told, a tenth is assumed.
    """
    lost = asked = soon_lost = soon_asked = 0
    for line in lines[-_REMEMBERED:]:
        seconds = list(line["nodes"].values())
        grace = max(_GRACE, _SLOW * statistics.median(seconds)) if seconds else _GRACE
        slow, silent = sum(one > grace for one in seconds), len(line["silent"])
        if (closed := line.get("closed", ALL)) != ENOUGH:
            slow, silent = 0, silent if closed == DEADLINE else 0
        elif not slow:
            soon_lost += len(line["lost"])
            soon_asked += len(line["nodes"]) + len(line["lost"])
            continue
        lost += len(line["lost"]) + silent + slow
        asked += len(line["nodes"]) + len(line["lost"]) + silent
    if not asked:
        return max(_ASSUMED, soon_lost / soon_asked if soon_asked else 0.0)
    return lost / asked
