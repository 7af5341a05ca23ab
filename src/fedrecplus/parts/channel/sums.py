"""The cohort's sums and nothing else: what ideal secure aggregation would show. Simulation only, no cryptography."""

from __future__ import annotations

from typing import Literal

from fedrecplus.settings import Annotated, text
from fedrecplus.settings import Settings as _Settings

VIEW = "sums"
SIMULATION_ONLY = True


class Settings(_Settings):
    """Options of the channel."""

    rows: Annotated[
        Literal["whole", "rows"],
        text("rows that an upload spans: all of the table, or rated and pseudo rows, whose list the server sees"),
    ] = "whole"


def shows_rows(settings: Settings) -> bool:
    """Whether the server sees which items a client uploads rows of."""
    return settings.rows != "whole"
