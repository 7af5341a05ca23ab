"""``fedrecplus ablate``: what a setting is worth, and what the aggregation is for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli import options as shared
from fedrecplus.cli.declaring import names_in
from fedrecplus.cli.display import say, show_jobs, show_table
from fedrecplus.cli.interrupt import stop_on_interrupt
from fedrecplus.cli.options import config_of, load_with_bar
from fedrecplus.config import Config
from fedrecplus.data import FileOptions, Ratings
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments import ablate as grids, heterogeneity as clients
from fedrecplus.provenance import Stopwatch

HETEROGENEITY = "heterogeneity"


@shared.reads_own_files
def ablate_command(
    study: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY]", help="pseudo-items, two-by-two or heterogeneity. Default: the first two."),
    ] = None,
    dataset: Annotated[str, typer.Option(metavar="NAME-OR-FILE", help="Ratings.")] = "ml-100k",
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="PRESET-OR-FILE", help="Where to start. Default: fedrec+; heterogeneity: mf by plain steps."
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="PART.OPTION=V1,V2,…", help="Vary a setting; repeated, every combination is trained."),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(min=1, help="How many folds, 2 or more. Default: 5; heterogeneity: the first of 5, 1 to 5."),
    ] = None,
    seed: shared.Seed = None,
    settings: shared.Settings = None,
    share: Annotated[
        float | None,
        typer.Option(
            help=f"heterogeneity: share of the clients that differ from the others. Default: {clients.SHARE}."
        ),
    ] = None,
    scenarios: Annotated[
        str | None, typer.Option(metavar="A,B,…", help=f"heterogeneity: only some of {', '.join(clients.SCENARIOS)}.")
    ] = None,
    rules: Annotated[
        str | None, typer.Option(metavar="A,B,…", help=f"heterogeneity: only some of {', '.join(clients.RULES)}.")
    ] = None,
    workers: shared.Workers = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep every run folder here.")] = None,
    json_file: shared.JsonFile = None,
    csv_file: shared.CsvFile = None,
    markdown_file: shared.MarkdownFile = None,
    plot_file: shared.PlotFile = None,
    *,
    options: FileOptions,
) -> None:
    """Vary settings of a preset, on the same folds, and say what they are worth.

    \b
    Examples:
      fedrecplus ablate   # the paper's figure, and its two ideas apart
      fedrecplus ablate --vary pseudo_items.ratio=0.5,1,2 --vary aggregation.rule=uniform,wasserstein
      fedrecplus ablate heterogeneity --share 0.3 --plot heterogeneity.html

    Figures are means ± standard deviations over folds; p is Wilcoxon's signed-rank test over clients against the first
    row, under heterogeneity against uniform weights.
    """
    shared.check_file_place(json_file, csv_file, markdown_file, plot_file)
    _check_fits(study, {"--vary": vary, "--out": out}, {"--share": share, "--scenarios": scenarios, "--rules": rules})
    watch, usual = Stopwatch(), clients.START if study == HETEROGENEITY else config_of("fedrec+")
    config = shared.changed(config_of(algorithm) if algorithm else usual, seed or 0, settings)
    content: dict[str, Any]
    # misspellings are found before data is fetched
    if study == HETEROGENEITY:
        extent = clients.StudyExtent(
            None if scenarios is None else tuple(names_in(scenarios)),
            None if rules is None else tuple(names_in(rules)),
            clients.SHARE if share is None else share,
            folds or 1,
        )
        clients.check_extent(extent, config)
        content, csv, markdown = _heterogeneity(load_with_bar(dataset, options), config, extent, workers)
    else:
        if folds == 1:
            raise UserError("--folds 1 leaves nothing to train on", "give 2 or more; heterogeneity alone takes 1")
        wanted = _wanted(study, vary or [], config)
        ratings = load_with_bar(dataset, options)
        content, csv, markdown = _ablate(ratings, wanted, folds or 5, workers, out)
    content["made"] = watch.made(config.seed)
    shared.write_files(content, json_file, plot_file, {csv_file: csv, markdown_file: markdown})


def _check_fits(study: str | None, of_settings: dict[str, Any], of_clients: dict[str, Any]) -> None:
    """Refuse what the study would have to ignore."""
    if study == HETEROGENEITY:
        for option in (name for name, given in of_settings.items() if given):
            raise UserError(f"heterogeneity varies clients and rules: it has no use for {option}", "leave it out")
    else:
        for option in (name for name, given in of_clients.items() if given is not None):
            raise UserError(f"{option} is for `ablate heterogeneity` alone", "name that study, or leave it out")


def _wanted(study: str | None, vary: Sequence[str], config: Config) -> list[tuple[str, Config, tuple[str, ...]]]:
    """Which studies, each with what it starts from and varies."""
    if study is not None and study not in grids.STUDIES:
        raise unknown_name("study", study, [*grids.STUDIES, HETEROGENEITY])
    if study is not None and vary:
        raise UserError(f"{study} knows what it varies", "give a study or --vary, not both")
    if vary:
        wanted = [("grid", config, tuple(vary))]
    else:
        wanted = [(name, *grids.study_of(name, config)) for name in ([study] if study else grids.STUDIES)]
    for _, start, varied in wanted:
        grids.grid(start, grids.parse_vary(varied, start))
    return wanted


def _ablate(
    ratings: Ratings, wanted: Sequence[tuple[str, Config, tuple[str, ...]]], folds: int, workers: int, out: Path | None
) -> tuple[dict[str, Any], str, str]:
    """Run and show the studies; their JSON, CSV and Markdown."""
    results = []
    for study, config, vary in wanted:
        count = folds * len(grids.grid(config, grids.parse_vary(vary, config)))
        options: dict[str, Any] = {"study": study, "folds": folds, "workers": workers, "out": out and out / study}
        with show_jobs(f"{study} on {ratings.name}", count, shared.KEPT) as monitor:
            results.append(grids.ablate(ratings, config, vary, **options, monitor=monitor))
    for each in results:
        title = f"{each.study}: {each.algorithm} on {each.dataset}"
        show_table(*grids.table(each.to_dict()), title, spare=("RMSE, 95 % interval", "NMSE"), names=len(each.vary))
    content = {"kind": "ablation", "studies": [each.to_dict() for each in results]}
    return content, "".join(map(grids.to_csv, results)), "\n".join(map(grids.to_markdown, results))


def _heterogeneity(
    ratings: Ratings, config: Config, extent: clients.StudyExtent, workers: int
) -> tuple[dict[str, Any], str, str]:
    """Run and show the study; its JSON, CSV and Markdown."""

    def tell(trial: clients.StudyTrial) -> None:
        error = "diverged" if trial.diverged else f"RMSE {trial.figures['rmse']:.4f}"
        typer.echo(f"{trial.scenario}, {trial.rule}, fold {trial.fold}: {error} ({trial.seconds:.1f} s)", err=True)

    with stop_on_interrupt("nothing is kept of an unfinished study") as stop:
        study = clients.heterogeneity(ratings, config, extent, workers=workers, stop=stop, done=tell)
    shown, content = clients.tables, clients.tables.to_dict(study)
    show_table(
        *shown.table(content), f"RMSE of honest clients, and changes of it: {study.algorithm} on {study.dataset}"
    )
    say("↓ better, ↑ worse than uniform weights (Wilcoxon over clients, Holm over the table)\n")
    for finding in content["findings"]:
        say(f"- {finding}")
    return content, shown.to_csv(study), shown.to_markdown(study)
