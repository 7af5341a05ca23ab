"""``fedrecplus theory``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.options import Allow, JsonFile, PlotFile, check_file_place, write_files
from fedrecplus.experiments.theory.lemmas import HEADINGS, lemma_rows
from fedrecplus.experiments.theory.study import theory
from fedrecplus.provenance import Stopwatch


def theory_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME-OR-FILE", help="Ratings, where the folder doesn't name them.")
    ] = None,
    looks: Annotated[int, typer.Option(min=4, help="How many rounds to look at.")] = 24,
    allow: Allow = None,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Set the paper's convergence theorem beside a run: estimates, conditions, bound, measured gradient, rate, lemmas.

    \b
    Example:
      fedrecplus theory runs/ml-100k-fedrec+paper-fold0-seed0 --plot theory.html

    The theorem is about gradient steps, so the run must have model.rule=mf. The run is trained again from its config.
    Where a condition of the theorem doesn't hold, no bound is given.
    """
    check_file_place(json_file, plot=plot_file)
    watch = Stopwatch()
    found = theory(run, dataset=dataset, looks=looks, allow=allow or ())
    found["made"] = watch.made(found["seed"])
    _show(found)
    write_files(found, json_file, plot_file, {})


def _show(found: dict[str, Any]) -> None:
    show_table(["estimate", "value"], [[name, f"{value:.4g}"] for name, value in found["estimates"].items()])
    say("")
    rows = [[each["what"], "yes" if each["holds"] else "no", each["found"]] for each in found["conditions"]]
    show_table(["condition", "holds", "found"], rows)
    say("")
    headings, lines = ["T", "min ‖∇f‖²", "fit", "bound"], []
    bounds = found["bounds"] or [None] * len(found["rounds"])
    for t, small, curve, limit in zip(found["rounds"], found["smallest"], found["fit"]["curve"], bounds, strict=True):
        lines.append([str(t), f"{small:.4g}", f"{curve:.4g}", f"{limit['bound']:.4g}" if limit else "–"])
    show_table(headings, lines)
    say("")
    show_table(HEADINGS, lemma_rows(found["lemmas"]))
    for sentence in found["says"]:
        say(sentence)
