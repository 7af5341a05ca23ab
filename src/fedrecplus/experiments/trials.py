"""One try of a search for settings, and what there is to tell while tries run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from fedrecplus.experiments.validation import Objective


@dataclass(frozen=True)
class Trial:
    """One try."""

    number: int
    """0 is the config that the search starts from"""
    settings: dict[str, Any]
    state: str = "running"
    """in the end ``complete``, ``pruned`` or ``failed``"""
    objective: str = "rmse"
    """what it is judged by"""
    value: float | None = None
    """mean over data sets of the objective after the last round, RMSE in standard units; None unless complete"""
    by_dataset: dict[str, float] = field(default_factory=dict)
    """the same of each, a mean over its cuts"""
    best_round: int | None = None
    """the evaluated round with the best mean: before the last, fewer rounds do better; the last, more may"""
    best_round_value: float | None = None
    seconds: float = 0.0
    why: str | None = None
    """why it failed or was pruned"""

    @property
    def rmse(self) -> float | None:
        """The value, where it is an RMSE."""
        return self.value if self.objective == "rmse" else None

    @property
    def best_round_rmse(self) -> float | None:
        """The value in the best round, where it is an RMSE."""
        return self.best_round_value if self.objective == "rmse" else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "rmse": self.rmse, "best_round_rmse": self.best_round_rmse}

    @classmethod
    def of(cls, frozen: Any, objective: Objective) -> Trial:
        """A trial that has ended, from Optuna's record of it."""
        noted, curve = frozen.user_attrs, frozen.intermediate_values
        best = min(curve, key=lambda number: objective.better(curve[number]), default=None)
        found = {"best_round": best, "best_round_value": curve.get(best), "seconds": frozen.duration.total_seconds()}
        found["objective"] = objective.name
        if "failure" in noted:
            found |= {"state": "failed", "why": noted["failure"]}
        elif frozen.state.name == "PRUNED":
            found |= {"state": "pruned", "why": f"worse than the median in round {frozen.last_step}"}
        else:
            found |= {"state": "complete", "value": frozen.value, "by_dataset": noted["by_dataset"]}
        return cls(noted["number"], noted["settings"], **found)


@dataclass(frozen=True)
class Moment:
    """What there is to tell while trials run."""

    trial: Trial
    best: Trial | None
    """of the trials that are complete"""
    ended: int
    """how many trials have come to an end"""
    round: int = 0
    rounds: int = 0
    value: float | None = None
    """of the objective, after that round"""
