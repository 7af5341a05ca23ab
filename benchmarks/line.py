"""A line of the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Line:
    """One number, what it should be, and what it was made of."""

    what: str
    value: float | None
    """None where it could not be measured; ``parts`` then says why"""
    unit: str
    goal: str = ""
    parts: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def as_table(lines: Sequence[Line]) -> str:
    """Markdown, so that the printed table is also the one in the docs."""
    rows = ["| measure | value | goal | made of |", "|---|---|---|---|"]
    for line in lines:
        value = "not measured" if line.value is None else f"{_short(line.value)} {line.unit}".strip()
        made_of = ", ".join(f"{name} {_short(part)}" for name, part in line.parts.items())
        rows.append(f"| {line.what} | {value} | {line.goal} | {made_of} |")
    return "\n".join(rows)


def _short(value: Any) -> str:
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
