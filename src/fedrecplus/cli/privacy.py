"""``fedrecplus privacy``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.options import NOT_COVERED, JsonFile
from fedrecplus.errors import UserError
from fedrecplus.files import write_json_to
from fedrecplus.training import LEDGER, RunFolder, budget_spent, privacy_lines


def privacy_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder, finished or not.")],
    json_file: JsonFile = None,
) -> None:
    """Say what a run has spent of its privacy budget, finished or interrupted.

    \b
    Example:
      fedrecplus privacy runs/ml-100k-fedmf-fold0-seed0
    """
    folder, lines = RunFolder(run), privacy_lines(run / LEDGER)
    if not lines:
        if not folder.begun:
            raise UserError(f"{run} is not a run's folder", "give the --out of a training")
        say(f"{run} has no privacy budget: nothing is claimed of what it released")
        write_json_to(json_file, {"epsilon": None, "releases": []})
        return
    runs = list(dict.fromkeys(line["run"] for line in lines))
    delta = max(line["delta"] for line in lines)
    rows = [_row(name, [line for line in lines if line["run"] == name]) for name in runs]
    total = budget_spent(lines, delta)
    show_table(["run", "releases", "last", "ε spent", "δ"], rows)
    if len(runs) > 1:
        say(f"together: ε = {total:.3f} at δ = {delta:g}, if they were trained on the same people")
    say("finished" if folder.finished else "not finished: a round that comes again counts again")
    result = folder.result() if folder.finished else {}
    if (result.get("privacy") or {}).get("seeded_noise"):
        say("its noise comes from the seed, and hides nothing from those who know that")
    if folder.finished and result.get("privacy") is None and lines[-1]["release"] == "statistics":
        say("the budget is that of the statistics alone: the rounds of this run are not private")
    elif folder.finished and result.get("privacy") is None:
        say("the model that is in this folder now has no budget: these lines are of earlier runs, which it replaced")
    else:
        say(NOT_COVERED)
    write_json_to(json_file, {"epsilon": total, "delta": delta, "releases": lines, "finished": folder.finished})


def _row(name: str, lines: list[dict[str, Any]]) -> list[str]:
    delta = lines[-1]["delta"]
    return [name, str(len(lines)), lines[-1]["release"], f"{budget_spent(lines, delta):.3f}", f"{delta:g}"]
