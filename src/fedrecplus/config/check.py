"""Settings that can't be, or can't be together."""

from __future__ import annotations

from fedrecplus.config.settings import Config
from fedrecplus.errors import UserError
from fedrecplus.parts import part

RANGES: dict[str, tuple[float, float]] = {
    "seed": (0, 2**62),
    "model.factors": (1, 4096),
    "model.start_rating": (0.0, 100.0),
    "model.start_spread": (0.0, 1e3),
    "model.regularisation": (0.0, 1e6),
    "model.user_regularisation": (-1e6, 1e6),
    "model.floor": (0.0, 1e6),
    "client.local_epochs": (1, 10_000),
    "client.learning_rate": (1e-12, 1e6),
    "client.learning_rate_decay": (1e-6, 10.0),
    "client.batch_size": (0, 10**9),
    "client.contrast": (1.0, 1e6),
    "client.fraction": (1e-9, 1.0),
    "client.dropout": (0.0, 0.999),
    "pseudo_items.ratio": (0.0, 1e6),
    "pseudo_items.count": (0, 10**9),
    "virtual_ratings.predict_after": (0, 10**9),
    "virtual_ratings.local_steps": (0, 10**6),
    "aggregation.temperature": (0.0, 3.0),  # a greater one takes the smallest distance out of 32-bit numbers
    "aggregation.bound": (0.0, 1e9),
    "aggregation.denoising": (0.0, 1.0),
    "aggregation.trim": (0.0, 0.5),
    "server.rounds": (1, 10**7),
    "server.learning_rate": (1e-12, 1e9),
    "server.learning_rate_decay": (1e-6, 10.0),
    "server.contrast": (1.0, 1e6),
    "server.momentum": (0.0, 1.0 - 1e-9),
    "server.second_momentum": (0.0, 1.0 - 1e-9),
    "prediction.regularisation": (0.0, 1e9),
    "prediction.floor": (0.0, 1e9),
    "prediction.mean_ratings": (0.0, 1e9),
    "prediction.average_ratings": (0.0, 1e9),
    "prediction.traits": (0.0, 1e3),
    "prediction.content": (0.0, 1e3),
    "prediction.trait_ratings": (0.0, 1e9),
    "evaluation.every": (1, 10**7),
}
"""lowest and highest value of every setting that is a number; NaN is in no range"""


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
    for name, (low, high) in RANGES.items():
        section, _, option = name.rpartition(".")
        value = getattr(getattr(config, section) if section else config, option)
        if not low <= value <= high:
            raise UserError(f"{name} = {value} is out of range", f"choose between {low:g} and {high:g}")


def _check_combinations(config: Config) -> None:
    weighing = config.aggregation
    if weighing.weigh_on == "client" and weighing.global_step == "mean":
        raise UserError(
            "a client can't weigh itself against this round's mean, which it doesn't know",
            "set aggregation.global_step=last or aggregation.weigh_on=server",
        )
    if config.client.contrast > 1 and config.client.batch_size > 0:
        raise UserError(
            "client.contrast is held to what the curvature over all of a client's rows can bear, not that of a few",
            "set client.batch_size=0 or client.contrast=1",
        )
    if config.server.contrast > 1 and weighing.covariance != "none":
        raise UserError(
            "server.contrast changes the steps that clients are told, and not the covariances beside them",
            "set aggregation.covariance=none or server.contrast=1",
        )
    if weighing.denoising > 0 and weighing.rule != "uniform":
        raise UserError(
            f"denoising clients need uniform weights, not aggregation.rule={weighing.rule}",
            "set aggregation.rule=uniform or aggregation.denoising=0",
        )
    if weighing.denoising > 0 and weighing.covariance != "none":
        raise UserError(
            "denoising clients upload sums of several clients' rows, which have no covariance of one client's update",
            "set aggregation.covariance=none or aggregation.denoising=0",
        )
    if weighing.denoising > 0 and weighing.weigh_on == "client":
        raise UserError(
            "denoising clients upload counts, which have no place beside a client's own weight",
            "set aggregation.weigh_on=server or aggregation.denoising=0",
        )
    if weighing.weigh_on == "client" and not hasattr(part("aggregation", weighing.rule), "weight"):
        raise UserError(
            f"aggregation.rule={weighing.rule} looks at all uploads together, so no client can weigh itself",
            "set aggregation.weigh_on=server",
        )
    if config.model.floor > 0 and weighing.normalise != "item":
        raise UserError(
            f"model.floor needs means over an item's uploads, not aggregation.normalise={weighing.normalise}",
            "set aggregation.normalise=item or model.floor=0",
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
