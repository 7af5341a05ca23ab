"""A checkpoint: the state of a simulation, and what the loop knows besides."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fedrecplus.engines import RoundReport, SimulationState
from fedrecplus.files import write_tensors
from fedrecplus.training.model_files import read_tensors


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


@dataclass(frozen=True)
class Checkpoint:
    """All that a training needs to go on to the very same numbers. Draws are keyed, so no generator has a state."""

    state: SimulationState
    tally: Tally
    retries: int
    """attempts that diverged before this one"""

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        facts = {"tally": self.tally.to_dict(), "retries": self.retries}
        write_tensors(path, self.state.arrays(), {"facts": json.dumps(facts)}, private=True)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read what ``write`` wrote."""
        arrays, metadata = read_tensors(path)
        facts = json.loads(metadata["facts"])
        return cls(SimulationState.of_arrays(arrays), Tally(**facts["tally"]), facts["retries"])
