"""Statistics of the participants from one secure sum before the first round, with noise of a budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedrecplus.config import Config
from fedrecplus.deploy.wire.catalogue import ItemCatalogue
from fedrecplus.deploy.wire.ring import STATISTICS_ROUND, deployed_budget, statistics_ring
from fedrecplus.deploy.wire.stages import is_secure
from fedrecplus.parts.channel import rounding_norm
from fedrecplus.parts.privacy import check_delta, os_words, sensitivity
from fedrecplus.protocol import Sums
from fedrecplus.rounds import STATISTICS, ServerState, with_noise


def awaits_statistics(config: Config, catalogue: ItemCatalogue) -> bool:
    """Whether a sum is to be taken: the settings have a budget for it, and the catalogue has figures of others.

    A catalogue with figures of a noised sum has cost its budget already, and they are never refreshed.
    """
    has_budget = config.privacy.rule != "none" or config.statistics.epsilon > 0.0
    return config.statistics.source == "secure-sum" and has_budget and is_secure(config) and catalogue.is_public


def before_first_round(catalogue: ItemCatalogue) -> ServerState:
    """What nodes are asked for statistics with: no V, only as many rows as there are items."""
    nothing = np.zeros((len(catalogue.ids), 0))
    return ServerState(STATISTICS_ROUND, nothing, nothing, np.zeros((0, 0)), [])


def with_statistics(config: Config, catalogue: ItemCatalogue, sums: Sums) -> ItemCatalogue:
    """The catalogue with figures of the sum; where devices add no noise, the server does."""
    budget, on_devices = deployed_budget(config)
    check_delta(budget.delta, sums.clients)
    total, sd = np.concatenate([sums.total.T.ravel(), sums.statistic]), sums.noise
    if on_devices is None:
        norm = sensitivity(budget.cap)
        norm += rounding_norm(sums.total.size, sums.statistic.size, sums.clients, statistics_ring(budget.cap))
        total, sd = with_noise(total, budget.multiplier, norm, sums.clients, sums.clients, STATISTICS, config, os_words)
    return replace(catalogue, public=budget.public(catalogue.public, total, sd))
