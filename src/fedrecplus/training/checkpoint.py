"""A checkpoint: the state of a simulation, and what the loop knows besides."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from fedrecplus.engines import SimulationState
from fedrecplus.files import write_tensors
from fedrecplus.training.model_files import read_tensors
from fedrecplus.training.tally import Tally


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
