"""``fedrecplus compare``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli.display import say, show_jobs, show_table
from fedrecplus.cli.interrupt import Interrupted, stop_on_interrupt
from fedrecplus.cli.options import (
    JsonFile,
    Seed,
    Settings,
    check_file_place,
    config_of,
    load_with_bar,
    names_in,
    reads_own_files,
)
from fedrecplus.config import Config, assign
from fedrecplus.data import FileOptions, Ratings
from fedrecplus.errors import UserError
from fedrecplus.experiments.compare import Comparison, compare, named_configs
from fedrecplus.experiments.report import (
    GROUP_HEADINGS,
    HEADINGS,
    PAIRED_HEADINGS,
    RANKING_HEADINGS,
    cells,
    group_cells,
    paired_cells,
    published_cells,
    ranking_cells,
    to_csv,
    to_json,
    to_markdown,
)
from fedrecplus.experiments.trivial import TRIVIAL
from fedrecplus.files import write_json, write_json_to, write_text
from fedrecplus.provenance import Stopwatch


@reads_own_files
def compare_command(
    dataset: Annotated[list[str], typer.Option(metavar="NAME-OR-FILE", help="Ratings; may be repeated.")],
    algorithms: Annotated[
        str, typer.Option(metavar="A,B,…", help="Presets, TOML files, or the trivial global-mean and bias-only.")
    ],
    folds: Annotated[int, typer.Option(help="How many folds.")] = 5,
    seed: Seed = None,
    settings: Settings = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the others are tested against. Default: the first.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Trainings side by side; 0: one per core.")] = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep every run folder and the tables here.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in --out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the runs in --out.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Show error by group, ranking metrics and the whole tests, too.")
    ] = False,
    json_file: JsonFile = None,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="A line per algorithm and fold.")
    ] = None,
    markdown_file: Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="All tables.")] = None,
    *,
    options: FileOptions,
) -> None:
    """Train several algorithms on the same folds and say whether they differ.

    \b
    Examples:
      fedrecplus compare --dataset ml-100k --algorithms fedmf,fedrec,fedrec+ --folds 5
      fedrecplus compare --dataset my.csv --algorithms fedrec,fedrec+ --baseline fedrec --details --json figures.json

    Figures are means ± standard deviations over folds. p is Wilcoxon's signed-rank test over clients: each client's
    RMSE, averaged over folds, against the baseline's.
    """
    if resume and overwrite:
        raise UserError("--resume keeps what is in the folder, --overwrite replaces it", "give one of them")
    check_file_place(json_file, csv_file, markdown_file)
    configs = _configs_of(names_in(algorithms), settings or [])
    named_configs(configs, seed or 0)  # misspellings are found before data is fetched
    watch, sets = Stopwatch(), [load_with_bar(name, options) for name in dataset]
    comparisons = compare_with_bars(
        sets, configs, folds, seed or 0, baseline, workers, out, resume=resume, overwrite=overwrite
    )
    for comparison in comparisons:
        show_comparison(comparison, details)
    write_reports(comparisons, watch.made(seed or 0), out, json_file, csv_file, markdown_file)


def compare_with_bars(
    sets: Sequence[Ratings],
    configs: Sequence[Config],
    folds: int,
    seed: int,
    baseline: str | None,
    workers: int,
    out: Path | None,
    *,
    resume: bool = False,
    overwrite: bool = False,
) -> list[Comparison]:
    """Compare on each data set, with live progress."""
    comparisons = []
    names = {config.algorithm for config in configs} | set(TRIVIAL)
    try:
        for ratings in sets:
            place = out if out is None or len(sets) == 1 else out / Path(ratings.name).name
            with stop_on_interrupt() as stop, show_jobs(ratings.name, folds * len(names)) as (progress, done):
                comparison = compare(
                    ratings,
                    configs,
                    folds_count=folds,
                    seed=seed,
                    baseline=baseline,
                    workers=workers,
                    out=place,
                    resume=resume,
                    overwrite=overwrite,
                    progress=progress,
                    done=done,
                    stop=stop,
                )
            comparisons.append(comparison)
    except KeyboardInterrupt:
        hint = "go on with the same command and --resume" if out else "give --out DIR to be able to --resume"
        raise Interrupted(hint) from None
    return comparisons


def show_comparison(comparison: Comparison, details: bool = False) -> None:
    """One's own table, and what others report below it. Tests that the table has no room for get one of their own."""
    summaries = comparison.summaries
    whole = show_table(HEADINGS, [*map(cells, summaries)], comparison.dataset, spare=("RMSE, 95 % interval", "p"))
    if details or not whole:
        say("")
        show_table(PAIRED_HEADINGS, [*map(paired_cells, summaries)])
    if details:
        say("")
        show_table(GROUP_HEADINGS, [*map(group_cells, summaries)])
        say("")
        show_table(RANKING_HEADINGS, [*map(ranking_cells, summaries)])
    if comparison.published:
        say("")
        show_table(
            ["published", "MAE", "RMSE", "NMSE"],
            [row[:4] for row in published_cells(comparison)],
        )


def write_reports(
    comparisons: Sequence[Comparison],
    made: dict[str, Any],
    out: Path | None,
    json_file: Path | None = None,
    csv_file: Path | None = None,
    markdown_file: Path | None = None,
) -> None:
    """Write the files that are asked for, and all of them into ``out``."""
    content = to_json(comparisons, made)
    write_json_to(json_file, content)
    if out:
        write_json(out / "comparison.json", content)
    for kind, text, asked in (
        ("csv", to_csv(comparisons), csv_file),
        ("md", to_markdown(comparisons), markdown_file),
    ):
        for place in (asked, out / f"comparison.{kind}" if out else None):
            if place:
                write_text(place, text)


def _configs_of(names: Sequence[str], settings: Sequence[str]) -> list[Config]:
    """A file's config goes by the algorithm that it began as or, where that is taken or not said, by its own name."""
    configs: list[Config] = []
    taken = {Config().algorithm, *(name for name in names if not name.endswith(".toml"))}
    for name in names:
        config = Config(algorithm=name) if name in TRIVIAL else config_of(name)
        if name.endswith(".toml") and config.algorithm in taken:
            config = replace(config, algorithm=Path(name).stem)
        taken.add(config.algorithm)
        configs.append(config if name in TRIVIAL else assign(config, settings))
    return configs
