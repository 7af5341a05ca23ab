"""The audit from Python, and what it found as a table in a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedrecplus.audit.audit import AuditExtent, audit_cases, run_cases
from fedrecplus.audit.tables import AUDIT_HEADINGS, summary, table_line
from fedrecplus.config import Config, check, preset
from fedrecplus.data import RatingsLike, frame_of, load, split
from fedrecplus.errors import UserError
from fedrecplus.markdown import html_table


@dataclass(frozen=True)
class AuditResult:
    """What attacks learned from the uploads of some algorithms."""

    dataset: str
    rows: list[dict[str, Any]]
    """one per algorithm, number of local epochs and attack"""

    @property
    def says(self) -> list[str]:
        """A sentence per algorithm: what its strongest attack comes to."""
        return summary(self.rows)

    def to_frame(self, backend: str = "polars") -> Any:
        """The table that is shown, as a frame of texts."""
        shown = [table_line(row) for row in self.rows]
        return frame_of({name: [cells[at] for cells in shown] for at, name in enumerate(AUDIT_HEADINGS)}, backend)

    def __repr__(self) -> str:
        head = f"AuditResult({self.dataset!r}, {len(self.rows)} attacks)"
        return "\n".join([head, *(f"  {sentence}" for sentence in self.says)])

    def _repr_html_(self) -> str:
        return html_table(AUDIT_HEADINGS, [table_line(row) for row in self.rows], self.dataset, self.says)


def run_audit(
    ratings: RatingsLike,
    algorithms: str | Config | Sequence[str | Config],
    *,
    users: int = 200,
    rounds: int = 20,
    attacks: Sequence[str] = (),
    fold: int = 0,
    seed: int = 0,
    workers: int = 0,
) -> AuditResult:
    """Attack what clients upload, as ``fedrecplus audit`` does.

    So many ``users`` are attacked, with the uploads of so many ``rounds``, by ``attacks`` (all that apply, if none is
    named).
    """
    several = [algorithms] if isinstance(algorithms, str | Config) else algorithms
    schemes: dict[str, Config] = {}
    for algorithm in several:
        config = preset(algorithm) if isinstance(algorithm, str) else algorithm
        if config.algorithm in schemes:
            raise UserError(
                f"{config.algorithm} is there twice", "give each config a name: replace(config, algorithm=…)"
            )
        schemes[config.algorithm] = check(replace(config, seed=seed))
    extent = AuditExtent(rounds, users, tuple(attacks))
    _ = extent.chosen  # a misspelt attack is found before data is fetched
    training, test = split(load(ratings), fold, seed=seed)
    return AuditResult(training.name, run_cases(audit_cases(schemes), training, test, extent, workers))
