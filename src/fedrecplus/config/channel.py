"""Sending uploads another way: what ``--channel`` and ``--rows`` stand for."""

from __future__ import annotations

from fedrecplus.config.change import change, own_names
from fedrecplus.config.config import Config
from fedrecplus.errors import UserError
from fedrecplus.parts import Channel, choices
from fedrecplus.parts.aggregation import WeightedAggregation


def with_channel(config: Config, channel: str | None = None, rows: str | None = None) -> Config:
    """The config with another channel, and other rows in an upload, as ``channel.rule`` and ``channel.rows``.

    Where the channel shows no uploads, clients weigh themselves: the server can't weigh what it doesn't see.

    >>> sent = with_channel(Config(), "sums")
    >>> sent.channel.rule, sent.aggregation.settings.weigh_on
    ('sums', 'client')
    """
    if channel is not None:
        config = change(config, "channel.rule", channel, "--channel")
        if config.channel.VIEW != "uploads" and isinstance(config.aggregation, WeightedAggregation):
            config = change(config, "aggregation.weigh_on", "client", "--channel")
    if rows is None:
        return config
    rule = config.channel.rule
    if "rows" not in own_names("channel", rule):
        able = [name for name in choices(Channel) if "rows" in own_names("channel", name)]
        raise UserError(
            f"--rows {rows}: channel.rule = {rule!r} shows the server every upload: always the rated and pseudo rows",
            f"add --channel {' or '.join(able)}, or leave --rows away",
        )
    return change(config, "channel.rows", rows, "--rows")
