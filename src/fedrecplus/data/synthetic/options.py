"""What can be chosen about made-up ratings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError, unknown_name

SYNTHETIC = "synthetic"
_RANGES: dict[str, tuple[float, float]] = {
    "clients": (2, 2**31 - 1),
    "items": (2, 2**24),
    "ratings_per_client": (1, 2**24),
    "factors": (1, 1024),
    "noise": (0, 100),
    "popularity": (0, 2),
    "activity": (0, 3),
    "seed": (0, 2**63),
}


@dataclass(frozen=True)
class SyntheticOptions:
    """How many made-up ratings, and how they come about.

    >>> str(SyntheticOptions.parse("clients=50,noise=0"))
    'synthetic:clients=50,noise=0.0'
    """

    clients: int = 1000
    items: int = 500
    ratings_per_client: int = 50
    """the mean, before clients who would rate more than all items are stopped there"""
    factors: int = 8
    """the rank of the truth, biases aside"""
    noise: float = 0.5
    """the standard deviation of what the truth doesn't explain, in standard units (1 to 5)"""
    popularity: float = 1.0
    """Zipf's exponent: the i-th most popular item is drawn in proportion to 1 / i ** popularity; 0 is even"""
    activity: float = 1.0
    """the standard deviation of the logarithm of a client's number of ratings; MovieLens has about 1, 0 is even"""
    scale: str = "1:5:1"
    """the rating scale, ``low:high:step``"""
    seed: int = 0

    def __post_init__(self) -> None:
        for name, (least, most) in _RANGES.items():
            if not least <= (value := getattr(self, name)) <= most:
                raise UserError(f"synthetic: {name}={value} is out of range", f"give at least {least}, at most {most}")
        if self.ratings_per_client > self.items:
            raise UserError(
                f"synthetic: ratings_per_client={self.ratings_per_client} of {self.items} items",
                "nobody rates an item twice: give more items or fewer ratings",
            )
        Scale.parse(self.scale)

    @staticmethod
    def parse(text: str) -> SyntheticOptions:
        """Read ``name=value,name=value``."""
        kinds: dict[str, type[Any]] = {field.name: type(field.default) for field in fields(SyntheticOptions)}
        chosen = {}
        for setting in filter(None, (part.strip() for part in text.split(","))):
            name, _, value = setting.partition("=")
            if name not in kinds:
                raise unknown_name("option of synthetic", name, kinds)
            try:
                chosen[name] = kinds[name](value)
            except ValueError:
                kind = "whole number" if kinds[name] is int else "number"
                raise UserError(f"synthetic: {name}={value!r} is not a {kind}", f"write {name}=NUMBER") from None
        return SyntheticOptions(**chosen)

    def __str__(self) -> str:
        """As it is written to get these options: what differs from the defaults."""
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        chosen = ",".join(f"{field.name}={value}" for field, value in values if value != field.default)
        return f"{SYNTHETIC}:{chosen}" if chosen else SYNTHETIC
