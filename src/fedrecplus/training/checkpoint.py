"""A checkpoint: the state of a simulation, and what the loop knows besides.

The public figures are part of it: where they come from a noisy sum, computing them again would be a second release.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from fedrecplus.engines import RoundReport, SimulationState
from fedrecplus.files import write_tensors
from fedrecplus.protocol import PublicItems
from fedrecplus.training.model_files import read_tensors

_TABLES, _FIGURES = ("popularity", "average"), ("mean", "people", "source", "epsilon")
_PREFIX = "public."


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
    """All that a training needs to go on to the very same numbers. Draws are keyed, so no generator has a state; noise
    of the operating system is in what was released already."""

    state: SimulationState
    tally: Tally
    retries: int
    """attempts that diverged before this one"""
    released: Mapping[str, Any] = field(default_factory=dict)
    """figures of ``PublicItems``; none in a deployment, whose catalogue has them"""

    @classmethod
    def of(cls, state: SimulationState, tally: Tally, retries: int, public: PublicItems) -> Checkpoint:
        """With the figures that were released before the first round."""
        return cls(state, tally, retries, {name: getattr(public, name) for name in (*_TABLES, *_FIGURES)})

    def public(self, prepared: PublicItems) -> PublicItems:
        """These items with the figures that the run began with."""
        return replace(prepared, **self.released)

    def write(self, path: Path) -> None:
        """Write it, whole or not at all."""
        figures = {name: self.released[name] for name in _FIGURES if name in self.released}
        facts = {"tally": self.tally.to_dict(), "retries": self.retries, "released": figures}
        tables = {_PREFIX + name: self.released[name] for name in _TABLES if name in self.released}
        write_tensors(path, self.state.arrays() | tables, {"facts": json.dumps(facts)}, private=True)

    @classmethod
    def read(cls, path: Path) -> Checkpoint:
        """Read what ``write`` wrote."""
        arrays, metadata = read_tensors(path)
        facts = json.loads(metadata["facts"])
        tables = {name: arrays.pop(_PREFIX + name) for name in _TABLES if _PREFIX + name in arrays}
        released = {**tables, **facts.get("released", {})}
        return cls(SimulationState.of_arrays(arrays), Tally(**facts["tally"]), facts["retries"], released)
