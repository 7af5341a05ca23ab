"""``fedrecplus ablate``: what a setting is worth, and what the aggregation is for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli.display import say, show_jobs, show_table
from fedrecplus.cli.interrupt import Interrupted, stop_on_interrupt
from fedrecplus.cli.options import JsonFile, Seed, Settings, check_file_place, load_with_bar, names_in, reads_own_files
from fedrecplus.config import Config, assign, change, check, preset
from fedrecplus.data import FileOptions, Ratings
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments import ablate_tables, heterogeneity_tables
from fedrecplus.experiments.ablate import STUDIES, Ablation, ablate, grid, parse_vary, study_of
from fedrecplus.experiments.heterogeneity import SHARE, Extent, Study, check_extent, heterogeneity
from fedrecplus.experiments.heterogeneity_scenarios import RULES, SCENARIOS
from fedrecplus.experiments.heterogeneity_trial import Trial
from fedrecplus.files import write_json_to, write_text
from fedrecplus.provenance import Stopwatch

HETEROGENEITY = "heterogeneity"


@dataclass(frozen=True)
class Places:
    """Files that were asked for."""

    json: Path | None
    csv: Path | None
    markdown: Path | None
    plot: Path | None

    def write(self, content: dict[str, Any], csv: str, markdown: str) -> None:
        """Write them."""
        write_json_to(self.json, content)
        if self.csv:
            write_text(self.csv, csv)
        if self.markdown:
            write_text(self.markdown, markdown)
        if self.plot:
            from fedrecplus.report.build import page_of  # here: it wants the extra `report`

            write_text(self.plot, page_of([content]))


@reads_own_files
def ablate_command(
    study: Annotated[
        str | None,
        typer.Argument(metavar="[STUDY]", help="pseudo-items, two-by-two or heterogeneity. Default: the first two."),
    ] = None,
    dataset: Annotated[str, typer.Option(metavar="NAME-OR-FILE", help="Ratings.")] = "ml-100k",
    algorithm: Annotated[
        str | None, typer.Option(metavar="PRESET", help="Where to start. Default: fedrec+; heterogeneity: fedmf.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(metavar="PART.OPTION=V1,V2,…", help="Vary a setting; repeated, every combination is trained."),
    ] = None,
    folds: Annotated[
        int | None, typer.Option(min=1, help="How many folds. Default: 5; heterogeneity: the first of 5.")
    ] = None,
    seed: Seed = None,
    settings: Settings = None,
    share: Annotated[
        float | None,
        typer.Option(help=f"heterogeneity: share of the clients that is not like the others. Default: {SHARE}."),
    ] = None,
    scenarios: Annotated[
        str | None, typer.Option(metavar="A,B,…", help=f"heterogeneity: only some of {', '.join(SCENARIOS)}.")
    ] = None,
    rules: Annotated[
        str | None, typer.Option(metavar="A,B,…", help=f"heterogeneity: only some of {', '.join(RULES)}.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Trainings side by side; 0: one per core.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep every run folder here.")] = None,
    json_file: JsonFile = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="A line per cell and fold.")] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="The table.")] = None,
    plot_file: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="A page with plots; wants the extra `report`.")
    ] = None,
    *,
    options: FileOptions,
) -> None:
    """Vary settings of a preset, on the same folds, and say what they are worth.

    \b
    Examples:
      fedrecplus ablate                                            the paper's figure, and its two ideas apart
      fedrecplus ablate --vary pseudo_items.ratio=0.5,1,2 --vary aggregation.rule=uniform,wasserstein
      fedrecplus ablate heterogeneity --share 0.3 --plot heterogeneity.html

    Figures are means ± standard deviations over folds; p is Wilcoxon's signed-rank test over clients against the first
    row, under heterogeneity against uniform weights.
    """
    check_file_place(json_file, csv_file, markdown_file, plot_file)
    if plot_file:
        from fedrecplus.report.build import plotly_js  # here: it wants the extra `report`

        plotly_js()  # a missing extra is found before anything is trained
    watch, places = Stopwatch(), Places(json_file, csv_file, markdown_file, plot_file)
    usual = "fedmf" if study == HETEROGENEITY else "fedrec+"
    config = change(preset(algorithm or usual), "seed", seed or 0, "--seed")
    config = check(assign(config, settings or []))
    _check_fits(study, {"--vary": vary, "--out": out}, {"--share": share, "--scenarios": scenarios, "--rules": rules})
    if study == HETEROGENEITY:
        extent = Extent(
            tuple(SCENARIOS) if scenarios is None else tuple(names_in(scenarios)),
            tuple(RULES) if rules is None else tuple(names_in(rules)),
            SHARE if share is None else share,
            folds or 1,
        )
        check_extent(extent, config)  # misspellings are found before data is fetched
        found = _heterogeneity(load_with_bar(dataset, options), config, extent, workers)
        _finish_heterogeneity(found, watch.made(config.seed), places)
        return
    wanted = _wanted(study, vary or [], config)
    ratings = load_with_bar(dataset, options)
    ablations = [_ablate(ratings, *each, folds or 5, workers, out) for each in wanted]
    _finish_ablations(ablations, watch.made(config.seed), places)


def _wanted(study: str | None, vary: Sequence[str], config: Config) -> list[tuple[str, Config, tuple[str, ...]]]:
    """Which studies, each with what it starts from and varies; misspellings are found before data is fetched."""
    if study is not None and study not in STUDIES:
        raise unknown_name("study", study, [*STUDIES, HETEROGENEITY])
    if study is not None and vary:
        raise UserError(f"{study} knows what it varies", "give a study or --vary, not both")
    if vary:
        wanted = [("grid", config, tuple(vary))]
    else:
        wanted = [(name, *study_of(name, config)) for name in ([study] if study else STUDIES)]
    for _, start, varied in wanted:
        grid(start, parse_vary(varied, start))
    return wanted


def _ablate(
    ratings: Ratings, study: str, config: Config, vary: Sequence[str], folds: int, workers: int, out: Path | None
) -> Ablation:
    count = folds * len(grid(config, parse_vary(vary, config)))
    try:
        with stop_on_interrupt() as stop, show_jobs(f"{study} on {ratings.name}", count) as (progress, done):
            return ablate(
                ratings,
                config,
                vary,
                study=study,
                folds_count=folds,
                workers=workers,
                out=out / study if out else None,
                progress=progress,
                done=done,
                stop=stop,
            )
    except KeyboardInterrupt:
        raise Interrupted("nothing is kept of an unfinished study but run folders in --out") from None


def _finish_ablations(ablations: Sequence[Ablation], made: dict[str, Any], places: Places) -> None:
    for ablation in ablations:
        headings, rows = ablate_tables.table(ablation)
        title = f"{ablation.study}: {ablation.algorithm} on {ablation.dataset}"
        show_table(headings, rows, title, spare=("RMSE, 95 % interval", "NMSE"))
    places.write(
        {"kind": "ablation", "studies": [ablation.to_dict() for ablation in ablations], "made": made},
        "".join(ablate_tables.to_csv(ablation) for ablation in ablations),
        "\n".join(ablate_tables.to_markdown(ablation) for ablation in ablations),
    )


def _check_fits(study: str | None, of_settings: dict[str, Any], of_clients: dict[str, Any]) -> None:
    """Refuse what the study would have to ignore."""
    if study == HETEROGENEITY:
        for option in (name for name, given in of_settings.items() if given):
            raise UserError(f"heterogeneity varies clients and rules: it has no use for {option}", "leave it away")
    else:
        for option in (name for name, given in of_clients.items() if given is not None):
            raise UserError(f"{option} is for `ablate heterogeneity` alone", "name that study, or leave it away")


def _heterogeneity(ratings: Ratings, config: Config, extent: Extent, workers: int) -> Study:
    def tell(trial: Trial) -> None:
        error = "diverged" if trial.diverged else f"RMSE {trial.rmse:.4f}"
        typer.echo(f"{trial.scenario}, {trial.rule}, fold {trial.fold}: {error} ({trial.seconds:.1f} s)", err=True)

    try:
        with stop_on_interrupt() as stop:
            return heterogeneity(ratings, config, extent, workers=workers, stop=stop, done=tell)
    except KeyboardInterrupt:
        raise Interrupted("nothing is kept of an unfinished study") from None


def _finish_heterogeneity(study: Study, made: dict[str, Any], places: Places) -> None:
    headings, rows = heterogeneity_tables.table(study)
    show_table(headings, rows, f"RMSE of honest clients: {study.algorithm} on {study.dataset}")
    say("↓ better, ↑ worse than uniform weights (Wilcoxon over clients)\n")
    for finding in heterogeneity_tables.findings(study):
        say(f"- {finding}")
    places.write(
        {**heterogeneity_tables.to_dict(study), "made": made},
        heterogeneity_tables.to_csv(study),
        heterogeneity_tables.to_markdown(study),
    )
