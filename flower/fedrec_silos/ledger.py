"""What noised trainings have cost the people of a silo, whichever runs they were: a file beside their ratings."""

from __future__ import annotations

import json
from pathlib import Path

from fedrecplus.errors import UserError
from fedrecplus.files import locked, write_json

LIFETIME = 30.0
"""ε over all runs; ``node-config: lifetime-epsilon=N`` says otherwise"""


def book(file: Path, run: int, epsilon: float, lifetime: float) -> None:
    """Note what a run costs, once, before anything of it leaves; refuse one beyond the silo's budget.

    Costs are added up, which is more than they are together. After: Dwork, Rothblum and Vadhan 2010 (basic composition)
    """
    with locked(file.with_name(f"{file.name}.lock"), f"the ledger {file}", "try again in a moment", patience=30.0):
        paid: dict[str, float] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        spent = sum(paid.values())
        if str(run) in paid:
            return
        if spent + epsilon > lifetime:
            raise UserError(
                f"ε = {spent:g} is spent here, {epsilon:g} more would exceed lifetime-epsilon = {lifetime:g}",
                "ask this silo to allow more, or train with a smaller privacy.epsilon",
            )
        write_json(file, {**paid, str(run): epsilon})
