"""What a training has cost so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fedrecplus.engines import RoundReport


@dataclass(frozen=True)
class Tally:
    """Sums over rounds. Seconds are those of rounds alone, without evaluation, files and compiling."""

    seconds: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    client_rounds: int = 0
    """how often a client took part in a round"""

    def after(self, report: RoundReport, seconds: float) -> Tally:
        """The sums with one round more."""
        return Tally(
            self.seconds + seconds,
            self.bytes_up + report.bytes_up,
            self.bytes_down + report.bytes_down,
            self.client_rounds + report.clients,
        )

    def figures(self) -> dict[str, Any]:
        """What results and metrics lines hold of it."""
        times = max(self.client_rounds, 1)
        return {
            "seconds": self.seconds,
            "bytes_up_per_client_round": self.bytes_up / times,
            "bytes_down_per_client_round": self.bytes_down / times,
        }

    def to_dict(self) -> dict[str, Any]:
        """For a checkpoint."""
        return asdict(self)
