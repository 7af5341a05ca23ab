"""Kernel of ``parts/pseudo_items/random.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedrecplus.engines.fast.drawing import Clients, Drawing, Select
from fedrecplus.engines.fast.pseudo_items._drawing import draw, nobody
from fedrecplus.parts.pseudo_items import SetSettings


def selector(some: Drawing, options: SetSettings) -> Select:
    """Draw for some clients."""
    rated, keys, uniformly = some.rated, some.keys("pseudo-items"), np.zeros(0)

    def select(clients: Clients, out: Any) -> None:
        draw(clients, rated, uniformly, 0, keys, nobody(len(some.message.V)), out)

    return select
