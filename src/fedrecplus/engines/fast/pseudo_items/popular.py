"""Kernel of ``parts/pseudo_items/popular.py``."""

from __future__ import annotations

from typing import Any

from fedrecplus.engines.fast.drawing import Clients, Drawing, Select
from fedrecplus.engines.fast.pseudo_items._drawing import draw, nobody
from fedrecplus.parts.pseudo_items import SetSettings
from fedrecplus.parts.pseudo_items.popular import PATIENCE, cumulative


def selector(some: Drawing, options: SetSettings) -> Select:
    """Draw for some clients."""
    shares = cumulative(some.message.public.popularity)
    rated, keys = some.rated, some.keys("pseudo-items")

    def select(clients: Clients, out: Any) -> None:
        draw(clients, rated, shares, PATIENCE, keys, nobody(len(some.message.V)), out)

    return select
