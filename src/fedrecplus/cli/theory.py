"""``fedrecplus theory``."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli.declaring import whole_numbers_in
from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.options import Allow, JsonFile, PlotFile, Workers, check_file_place, write_files
from fedrecplus.experiments.theory import (
    Constants,
    conditions_table,
    corollary as horizons,
    horizons_table,
    lemmas_table,
    theory,
)
from fedrecplus.provenance import Stopwatch


def theory_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME-OR-FILE", help="Ratings, where the folder doesn't name them.")
    ] = None,
    looks: Annotated[int, typer.Option(min=4, help="How many rounds to look at.")] = 24,
    corollary: Annotated[
        str | None,
        typer.Option(metavar="T1,T2,…", help="Also train for these numbers of rounds with the corollary's step sizes."),
    ] = None,
    workers: Workers = 0,
    allow: Allow = None,
    json_file: JsonFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Set the paper's convergence theorem beside a run: estimates, conditions, bound, measured gradient, rate, lemmas.

    \b
    Example:
      fedrecplus theory runs/ml-100k-fedrec+paper-fold0-seed0 --plot theory.html
      fedrecplus theory runs/ml-100k-fedrec+paper-fold0-seed0 --corollary 10,32,100,316,1000

    The theorem is about gradient steps, so the run must have model.rule=mf. The run is trained again from its config.
    Where a condition of the theorem doesn't hold, no bound is given.
    """
    check_file_place(json_file, plot_file)
    watch, lengths = Stopwatch(), whole_numbers_in(corollary, "--corollary", "10,100,1000")
    if lengths:  # before the run is trained again
        horizons.check_horizons(lengths)
    content = theory(run, dataset=dataset, looks=looks, allow=allow or ())
    if lengths:
        k = Constants(**{field.name: content["estimates"][field.name] for field in fields(Constants)})
        content["corollary"] = horizons.corollary(
            run, lengths, k, dataset=dataset, looks=looks, allow=allow or (), workers=workers
        )
    content["made"] = watch.made(content["seed"])
    _show(content)
    write_files(content, json_file, plot_file, {})


def _show(content: dict[str, Any]) -> None:
    show_table(["estimate", "value"], [[name, f"{value:.4g}"] for name, value in content["estimates"].items()])
    say("")
    show_table(*conditions_table(content), words=("found",))
    say("")
    headings, lines = ["T", "min ‖∇f‖²", "fit", "bound", "χ² of the weights"], []
    bounds = content["bounds"] or [None] * len(content["rounds"])
    columns = (content[name] for name in ("rounds", "smallest", "chi_wp"))
    for t, small, chi, curve, limit in zip(*columns, content["fit"]["curve"], bounds, strict=True):
        lines.append([str(t), f"{small:.4g}", f"{curve:.4g}", f"{limit['bound']:.4g}" if limit else "–", f"{chi:.3g}"])
    show_table(headings, lines)
    say("")
    show_table(*lemmas_table(content["lemmas"]))
    if "corollary" in content:
        say("")
        show_table(*horizons_table(content["corollary"]))
    for sentence in [*content["says"], *content.get("corollary", {}).get("says", [])]:
        say(sentence)
