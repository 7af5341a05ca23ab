"""How a node's vector is laid out and scaled in a secure sum: from settings and public figures alone, on both sides."""

from __future__ import annotations

import numpy as np

from fedrecplus.config import Config
from fedrecplus.parts.channel._ring import Encoding, Layout, contributors, encoding_of
from fedrecplus.protocol import PublicItems

_LARGEST_WEIGHT = 1.0


def sum_layout(config: Config, shape: tuple[int, ...]) -> Layout:
    """The shape of everybody's vector."""
    how, model = config.channel.options, config.model
    size = int(model.part.statistic_size(model.options)) if model.part.has("statistic_size") else 0
    return Layout(shape[0], shape[1], int(getattr(how, "bits", 32)), size)


def sum_encoding(config: Config, public: PublicItems, shape: tuple[int, ...], persons: int) -> Encoding:
    """The scales of a sum over so many persons at most."""
    layout, how, weighs = sum_layout(config, shape), config.channel.options, config.aggregation
    largest = _LARGEST_WEIGHT
    if config.weighs_on_client and weighs.part.has("largest_weight"):
        largest = float(weighs.part.largest_weight(weighs.options))
    most = np.minimum(contributors(public.popularity, persons), persons)
    return encoding_of(layout, most, persons, float(getattr(how, "bound", 50.0)), largest)


def persons_bound(persons: int) -> int:
    """The number of persons that a node says it speaks for, rounded up to a power of two: sums must have room for all.

    >>> [persons_bound(count) for count in (0, 1, 10)]
    [1, 1, 16]
    """
    return 1 << max(persons - 1, 0).bit_length()
