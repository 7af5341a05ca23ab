"""Kernel of ``parts/pseudo_items/popular.py``."""

from __future__ import annotations

from typing import Any

from fedrecplus.engines.fast.pseudo_items._drawing import draw
from fedrecplus.engines.fast.selecting import Clients, Select, Selecting
from fedrecplus.parts.pseudo_items.popular import PATIENCE, Settings, cumulative


def selector(some: Selecting, options: Settings) -> Select:
    """Draw for some clients."""
    shares = cumulative(some.message.public.popularity)

    def select(clients: Clients, out: Any) -> None:
        draw(clients, *some.rows, shares, PATIENCE, *some.keys, some.items, out)

    return select
