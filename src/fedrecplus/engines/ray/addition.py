"""Sums of shards, added in the order of their numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedrecplus.protocol import Sums


class Addition:
    """Sums of sums, in the order in which they come, in 64 bits; one table is held, however many shards there are."""

    _TABLES = ("total", "weights", "covariance", "statistic")

    def __init__(self) -> None:
        self._whole: Sums | None = None

    def add(self, part: Sums) -> None:
        """One shard's sums more."""
        if self._whole is None:
            self._whole = replace(part, **{name: getattr(part, name).astype(np.float64) for name in self._TABLES})
            return
        for name in self._TABLES:
            table = getattr(self._whole, name)
            table += getattr(part, name)
        overall, clients = self._whole.overall + part.overall, self._whole.clients + part.clients
        self._whole = replace(self._whole, overall=overall, clients=clients)

    def sums(self, dtype: Any) -> Sums:
        """All of them together."""
        assert self._whole is not None, "there is no cluster without shards"
        return replace(self._whole, total=self._whole.total.astype(dtype))
