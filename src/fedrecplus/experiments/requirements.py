"""What a study asks of a config."""

from __future__ import annotations

from fedrecplus.config import Config
from fedrecplus.data import Ratings
from fedrecplus.errors import UserError


def require_ratings(ratings: Ratings) -> None:
    """Refuse likes alone where errors are compared."""
    if ratings.likes_alone:
        raise UserError(
            f"{ratings.name} has no ratings, only who chose what: there is no error to compare",
            "compare lists with `fedrecplus compare`",
        )


def require_federation(config: Config, *, any_weights: bool = False, model: str | None = None) -> None:
    """Refuse a config without uploads to look at.

    With ``any_weights``, also a channel that allows uniform weights alone. With ``model``, also any other model.
    """
    name = config.algorithm
    if config.engine == "central":
        raise UserError(f"{name} trains in one place, without rounds and uploads", "name a federated algorithm")
    if any_weights and config.channel.exchanges:
        raise UserError(
            f"{name} has channel.rule={config.channel.rule}, which allows uniform weights alone",
            "set channel.rule=clear, or name another algorithm",
        )
    if model is not None and config.model.rule != model:
        raise UserError(
            f"{name} has model.rule={config.model.rule}, and the theorem is about gradient steps of model.rule={model}",
            f"train with model.rule={model}: fedrec+paper, or another preset of that model",
        )
