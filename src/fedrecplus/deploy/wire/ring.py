"""How a node's vector is laid out and scaled in a secure sum: from settings and public figures alone, on both sides."""

from __future__ import annotations

from fedrecplus.config import Config
from fedrecplus.deploy.wire.stages import LARGEST_MESSAGE
from fedrecplus.errors import UserError
from fedrecplus.parts.channel import Encoding, RingLayout, encoding_for, layout_of
from fedrecplus.protocol import PublicItems


def sum_layout(config: Config, shape: tuple[int, ...]) -> RingLayout:
    """The shape of everybody's vector."""
    model = config.model
    size = int(model.part.statistic_size(model.options)) if model.part.has("statistic_size") else 0
    return layout_of(shape, size, config.channel.options)


def sum_encoding(config: Config, public: PublicItems, shape: tuple[int, ...], persons: int) -> Encoding:
    """The scales of a sum over so many persons at most."""
    return encoding_for(sum_layout(config, shape), public, persons, config.channel.options)


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
