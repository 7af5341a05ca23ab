"""The cohort's sums and nothing else: what ideal secure aggregation would show. Simulation only, no cryptography."""

from __future__ import annotations

from typing import Literal

from fedrecplus.parts.channel import Channel
from fedrecplus.settings import Annotated, Settings as _Settings, text


class Settings(_Settings):
    """Options of the channel."""

    rows: Annotated[
        Literal["whole", "rows"],
        text("rows that an upload spans: all of the table, or rated and pseudo rows, whose list the server sees"),
    ] = "whole"


class PlainSums(Channel[Settings]):
    """Ideal secure aggregation."""

    VIEW = "sums"
    SIMULATION_ONLY = True

    @property
    def rows(self) -> str:
        """As the settings say."""
        return self.settings.rows
