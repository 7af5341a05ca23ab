"""Kernel of ``parts/aggregation/wasserstein.py``."""

from __future__ import annotations

from fedrecplus.engines.fast.weighing import MEAN_OWN, OWN, TABLE, Weighing
from fedrecplus.parts.aggregation.wasserstein import SMALLEST, Settings

_ROWS = {"table": TABLE, "own": OWN, "mean-own": MEAN_OWN}


def weighing(options: Settings) -> Weighing | None:
    """Weights by distance; nothing where single updates must be seen twice, or whole covariances kept."""
    if options.global_step == "mean" or options.covariance == "full":
        return None
    return Weighing(
        distances=options.temperature > 0,
        rows=_ROWS[options.rows],
        diagonal=options.covariance == "diagonal",
        temperature=options.temperature,
        bound=options.bound,
        smallest=SMALLEST,
    )
