"""What ``--channel``, ``--rows`` and ``--epsilon`` stand for: uploads sent another way, and a privacy budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedrecplus.config.change import change, own_names
from fedrecplus.config.config import Config
from fedrecplus.errors import UserError
from fedrecplus.parts import Channel, choices
from fedrecplus.parts.aggregation import WeightedAggregation
from fedrecplus.parts.channel import RingChannel
from fedrecplus.parts.privacy import tuned_for_budget

MECHANISMS = ("central", "distributed", "local")


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
            f"--rows={rows}: channel.rule = {rule!r} shows the server every upload: always the rated and pseudo rows",
            f"add --channel={' or '.join(able)}, or leave --rows out",
        )
    return change(config, "channel.rows", rows, "--rows")


Budget = tuple[float, float, str]
"""ε, δ and who adds the noise"""


def budget_of(epsilon: float | None, delta: float | None, noise: str | None, channel: str | None) -> Budget | None:
    """The budget that is asked for. δ or noise without ε would promise something and do nothing.

    A channel that was asked for by name, and that the budget would put another in the place of, is refused.
    """
    if epsilon is None:
        if delta is not None or noise is not None:
            raise UserError("--delta and --noise say nothing without a budget", "give --epsilon, such as --epsilon=10")
        return None
    noise = noise or "central"
    if channel is not None and noise != "local" and Channel.choose(channel).VIEW == "uploads":
        raise UserError(
            f"--channel={channel} with --epsilon and --noise={noise}: the server would see uploads without noise, and "
            "there is nothing to claim",
            "leave --channel out (the budget's is `sums`), or give --channel=secure",
        )
    return epsilon, 1e-5 if delta is None else delta, noise


def with_budget(config: Config, epsilon: float, delta: float, noise: str, clients: int) -> Config:
    """The config with a budget: model, rounds, clip and statistics as they suit so many clients.

    The channel stays unless it shows uploads; pseudo items go, since nobody sees rows that they could hide among.
    """
    if noise not in MECHANISMS:
        raise UserError(f"--noise={noise}: no such mechanism", f"choose one of {', '.join(MECHANISMS)}")
    source, budget = "--epsilon", {"privacy.epsilon": epsilon, "privacy.delta": delta}
    config = _changed(config, {"privacy.rule": noise, **budget}, source)  # refuses what is no ε or δ
    if noise == "local":  # a baseline: what others do to the algorithm as it is
        return _changed(config, budget, source)
    settings = {**tuned_for_budget(epsilon, delta, clients, choices=config.model.rule == "joint"), **budget}
    model = settings.pop("model.rule")
    rules = {"model": model, "aggregation": "uniform", "server_optimizer": "sgd", "pseudo_items": "none"}
    if config.channel.VIEW == "uploads":
        rules["channel"] = "sums"
    config = _changed(config, {f"{kind}.rule": rule for kind, rule in rules.items()}, source)
    if config.statistics.source == "participants":
        config = change(config, "statistics.source", "secure-sum", source)
    if isinstance(config.channel, RingChannel):
        settings["channel.bound"] = settings["privacy.clip"]  # no number of a clipped update is greater
        settings["channel.bits"] = 32  # rounding must not lift an update over its clip
    return _changed(config, settings, source)


def _changed(config: Config, settings: Mapping[str, Any], source: str) -> Config:
    for path, value in settings.items():
        config = change(config, path, value, "--delta" if path == "privacy.delta" else source)
    return config
