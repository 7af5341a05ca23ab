"""Settings that can't be, or can't be together."""

from __future__ import annotations

from fedrecplus.config.settings import Config
from fedrecplus.errors import UserError
from fedrecplus.parts import part


def check(config: Config) -> Config:
    """The config, if it can be run; otherwise an error that says which setting to change."""
    for room, name in (
        ("pseudo_items", config.pseudo_items.rule),
        ("encoders", config.pseudo_items.encoder),
        ("virtual_ratings", config.virtual_ratings.rule),
        ("aggregation", config.aggregation.rule),
        ("server_steps", config.server.step),
    ):
        part(room, name)
    _check_ranges(config)
    _check_combinations(config)
    return config


def _check_ranges(config: Config) -> None:
    checks = {
        "model.factors": (config.model.factors, 1, 4096),
        "client.local_epochs": (config.client.local_epochs, 1, 10_000),
        "client.learning_rate": (config.client.learning_rate, 1e-12, 1e6),
        "client.batch_size": (config.client.batch_size, 0, 10**9),
        "client.fraction": (config.client.fraction, 1e-9, 1.0),
        "client.dropout": (config.client.dropout, 0.0, 0.999),
        "pseudo_items.ratio": (config.pseudo_items.ratio, 0.0, 1e6),
        "pseudo_items.count": (config.pseudo_items.count, 0, 10**9),
        "aggregation.temperature": (config.aggregation.temperature, 0.0, 10.0),
        "aggregation.bound": (config.aggregation.bound, 0.0, 1e9),
        "aggregation.denoising": (config.aggregation.denoising, 0.0, 1.0),
        "server.rounds": (config.server.rounds, 1, 10**7),
        "evaluation.every": (config.evaluation.every, 1, 10**7),
        "seed": (config.seed, 0, 2**62),
    }
    for name, (value, low, high) in checks.items():
        if not low <= value <= high:
            raise UserError(f"{name} = {value} is out of range", f"choose between {low:g} and {high:g}")


def _check_combinations(config: Config) -> None:
    weighing = config.aggregation
    if weighing.weigh_on == "client" and weighing.global_step == "mean":
        raise UserError(
            "a client can't weigh itself against this round's mean, which it doesn't know",
            "set aggregation.global_step=last or aggregation.weigh_on=server",
        )
    if weighing.denoising > 0 and weighing.rule != "uniform":
        raise UserError(
            f"denoising clients need uniform weights, not aggregation.rule={weighing.rule}",
            "set aggregation.rule=uniform or aggregation.denoising=0",
        )
    if weighing.covariance == "full" and config.engine == "fast":
        raise UserError(
            "aggregation.covariance=full is for small tables and the reference engine",
            "set engine=reference or aggregation.covariance=diagonal",
        )
    if config.pseudo_items.redraw and not config.virtual_ratings.refresh:
        raise UserError(
            "pseudo items that are drawn anew each round can't keep their first virtual ratings",
            "set virtual_ratings.refresh=true or pseudo_items.redraw=false",
        )
