"""What a secure sum adds up, and how it is laid out and scaled: from settings and public figures alone, on both sides.

There are two kinds: the uploads of a round, and the statistics that one sum is taken of before the first round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config
from fedrecplus.deploy.wire.stages import LARGEST_MESSAGE
from fedrecplus.engines import StatisticsBudget, statistics_budget
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import (
    Encoding,
    RingLayout,
    RingSettings,
    RingVector,
    encoding_for,
    layout_of,
    least_persons,
)
from fedrecplus.parts.privacy import CLIPPED_SHARE, Words, distributed, sensitivity
from fedrecplus.protocol import PublicItems
from fedrecplus.rounds import plan_of

STATISTICS_ROUND = -1
"""the number of the sum before the first round"""


@dataclass(frozen=True)
class SumTerms:
    """The fixed-point numbers of one sum, and the noise that devices add to it."""

    layout: RingLayout
    settings: RingSettings
    public: PublicItems
    noise: distributed.DeviceNoise | None = None
    """None where devices add none"""
    corrupted: float = 0.0
    """share of the nodes that may collude with the server: it knows their noise, and takes it off"""
    clipped_unit: float = 0.0
    """what a clipped person adds beside the statistic, under the noise; 0 where nobody is counted"""
    demonstration: bool = False
    """whether a sum may be so small that it can be taken apart"""

    @property
    def least_persons(self) -> int:
        """Persons that a sum must have, lest it be taken apart; noise of the devices hides them by itself."""
        return 0 if self.demonstration or self.noise is not None else least_persons(self.layout.columns)

    @property
    def surviving(self) -> float:
        """Share of the nodes that must be in the sum: without those that collude, their noise is enough."""
        if self.noise is None or self.noise.settings.devices:
            return 0.0
        return self.noise.settings.honest + self.corrupted

    @property
    def least_nodes(self) -> int:
        """Nodes that must be in the sum where the task fixes how many devices share the noise."""
        if self.noise is None or not self.noise.settings.devices:
            return 0
        return math.ceil(self.noise.settings.honest * self.noise.settings.devices / (1.0 - self.corrupted) - 1e-9)

    def encoding(self, persons: int, nodes: int, senders: NDArray[np.int64] | None = None) -> Encoding:
        """The scales of a sum of so many persons at most, behind so many nodes; ``senders`` where rows differ."""
        how, room = self.settings, 0
        if self.noise is not None:
            room = max(self.noise.room(how.bound, nodes), self.noise.room(how.statistic_bound, nodes))
        silos, unit = max(persons - nodes, 0), None if self.noise is None else self.clipped_unit
        return encoding_for(self.layout, self.public, persons, how, senders, silos, room, unit)

    def share(self, encoding: Encoding, nodes: int) -> float:
        """Standard deviation of the noise that each of so many nodes adds; 0 where devices add none."""
        if self.noise is None:
            return 0.0
        beside = (self.layout.statistic_size + 1, encoding.statistic_scale)
        return self.noise.share(encoding.scales, self.layout.columns, beside, nodes)

    def add_share(self, vector: RingVector, encoding: Encoding, nodes: int, words: Words) -> None:
        """A node's share of the noise, added to its vector before any mask."""
        if self.noise is None:
            return
        share, size = self.share(encoding, nodes), self.layout.statistic_size + 1
        noise = distributed.ring_noise(vector.updates.shape, share, encoding.scales[:, None], words)
        vector.updates += noise.astype(vector.updates.dtype)
        beside = distributed.ring_noise((size,), share, encoding.statistic_scale, words)
        vector.weights[len(vector.weights) - 2 - size : -2] += beside.astype(vector.weights.dtype)


def sum_terms(config: Config, public: PublicItems, shape: tuple[int, ...], round_number: int) -> SumTerms:
    """The terms of a round's sum, or of the statistics' before the first round."""
    if round_number == STATISTICS_ROUND:
        return _statistics_terms(config, len(public.popularity))
    noise, unit, plan = None, 0.0, plan_of(config)
    if plan is not None and config.privacy.NOISE_ON_DEVICES:
        options = config.privacy.settings
        noise = distributed.DeviceNoise(plan.rounds[round_number], options.clip, options)
        unit = CLIPPED_SHARE * options.clip
    ring = config.channel.settings
    return SumTerms(sum_layout(config, shape), ring, public, noise, ring.corrupted, unit, ring.demonstration)


def _statistics_terms(config: Config, items: int) -> SumTerms:
    """Counts and residuals as two columns, a person's own two numbers beside them; all rows, and no weights."""
    budget, options = deployed_budget(config)
    how, norm = statistics_ring(budget.cap), sensitivity(budget.cap)
    nothing = PublicItems(np.zeros((items, 0)), np.ones(items, dtype=np.int64), source="public")
    noise = None if options is None else distributed.DeviceNoise(budget.multiplier, norm, options)
    corrupted, demonstration = config.channel.settings.corrupted, config.channel.demonstration
    return SumTerms(layout_of((items, 2), 2, how), how, nothing, noise, corrupted, 0.0, demonstration)


class _StatisticsRing(RingSettings):
    """Options of a sum of counts and residuals, which has no weights but 1."""

    largest_weight: ClassVar[float] = 1.0


def statistics_ring(cap: int) -> RingSettings:
    """The ring of the statistics' sum: a contribution's norm is clipped, so its numbers are within that, too."""
    norm = sensitivity(cap)
    return _StatisticsRing(bound=norm, statistic_bound=norm, fewest_contributors=1)


def deployed_budget(config: Config) -> tuple[StatisticsBudget, distributed.Settings | None]:
    """The budget of the statistics' sum, and the devices' options where they add the noise.

    That is under ``distributed``, and where the rounds have no budget: nobody is trusted with exact figures then.
    """
    rule, options = config.privacy.rule, config.privacy.settings
    own = rule == "none"
    budget = statistics_budget(config, distributed.ACCOUNTANT if own else "PLD")
    if budget is None:
        raise UserError(
            "statistics.source=secure-sum without noise: exact figures of the participants are not to be published",
            "set statistics.epsilon, or a privacy.rule",
        )
    if own:
        return budget, distributed.Settings(devices=config.statistics.devices)
    return budget, options if config.privacy.NOISE_ON_DEVICES else None


def sum_layout(config: Config, shape: tuple[int, ...]) -> RingLayout:
    """The shape of everybody's vector of a round."""
    return layout_of(shape, config.model.statistic_size, config.channel.settings)


def check_vector(config: Config, shape: tuple[int, ...]) -> None:
    """Refuse a table whose vectors are too long for a message, before the first round."""
    size = sum_layout(config, shape).bytes_of(shape[0])
    if size > LARGEST_MESSAGE:
        raise UserError(
            f"a masked vector would have {size / 1e6:.0f} MB, and a message at most {LARGEST_MESSAGE / 1e6:.0f}",
            "set channel.bits=16, fewer model.factors, or a smaller catalogue",
        )


def persons_bound(persons: int) -> int:
    """The number of persons that a node says it speaks for, rounded up to a power of two: sums must have room for all.

    >>> [persons_bound(count) for count in (0, 1, 10)]
    [1, 1, 16]
    """
    return 1 << max(persons - 1, 0).bit_length()
