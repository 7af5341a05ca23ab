"""What can be chosen about made-up ratings."""

from __future__ import annotations

from fedrecplus.data.scale import Scale
from fedrecplus.errors import UserError
from fedrecplus.settings import Annotated, Settings, number, read_settings, settings_of, text

SYNTHETIC = "synthetic"


class SyntheticOptions(Settings):
    """How many made-up ratings, and how they come about.

    >>> str(SyntheticOptions.parse("clients=50,noise=0"))
    'synthetic:clients=50,noise=0.0'
    """

    clients: Annotated[int, number(2, 2**31 - 1, "how many clients")] = 1000
    items: Annotated[int, number(2, 2**24, "how many items")] = 500
    ratings_per_client: Annotated[int, number(1, 2**24, "the mean; nobody rates more than all items")] = 50
    factors: Annotated[int, number(1, 1024, "rank of the truth, biases aside")] = 8
    noise: Annotated[float, number(0, 100, "sd of what the truth doesn't explain, in standard units")] = 0.5
    popularity: Annotated[float, number(0, 2, "Zipf's exponent; 0: all items are as popular")] = 1.0
    activity: Annotated[float, number(0, 3, "sd of the logarithm of a client's ratings; MovieLens: about 1")] = 1.0
    scale: Annotated[str, text("rating scale, low:high:step")] = "1:5:1"
    seed: Annotated[int, number(0, 2**62, "of all draws")] = 0

    @staticmethod
    def parse(given: str) -> SyntheticOptions:
        """Read ``name=value,name=value``."""
        pairs = (part.partition("=") for part in given.split(",") if part.strip())
        options = read_settings(SyntheticOptions, {name.strip(): value.strip() for name, _, value in pairs}, SYNTHETIC)
        if options.ratings_per_client > options.items:
            raise UserError(
                f"synthetic: ratings_per_client={options.ratings_per_client} of {options.items} items",
                "nobody rates an item twice: give more items or fewer ratings",
            )
        Scale.parse(options.scale)
        return options

    def __str__(self) -> str:
        """As it is written to get these options: what differs from the defaults."""
        values = [(setting, getattr(self, setting.name)) for setting in settings_of(SyntheticOptions)]
        chosen = ",".join(f"{setting.name}={value}" for setting, value in values if value != setting.default)
        return f"{SYNTHETIC}:{chosen}" if chosen else SYNTHETIC
