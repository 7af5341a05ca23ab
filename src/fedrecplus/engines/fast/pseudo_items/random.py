"""Kernel of ``parts/pseudo_items/random.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.engines.fast.pseudo_items._drawing import draw
from fedrecplus.engines.fast.selecting import Clients, Select, Selecting
from fedrecplus.parts.pseudo_items.random import Settings


def selector(some: Selecting, options: Settings) -> Select:
    """Draw for some clients."""
    uniformly = np.zeros(0)

    def select(clients: Clients, out: Any) -> None:
        draw(clients, *some.rows, uniformly, 0, *some.keys, some.items, out)

    return select
