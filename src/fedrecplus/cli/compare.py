"""``fedrecplus compare``, and ``fedrecplus demo``, which is one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeGuard

import typer

from fedrecplus import experiments
from fedrecplus.cli import options as shared
from fedrecplus.cli.declaring import JsonFile, check_file_place, names_in, takes
from fedrecplus.cli.display import say, show_jobs, show_table, tell
from fedrecplus.config import Config, preset
from fedrecplus.data import FileOptions, Ratings
from fedrecplus.errors import UserError
from fedrecplus.provenance import Stopwatch
from fedrecplus.training import AUTO


@takes(changes=shared.changes_of, options=shared.own_file)
def compare_command(
    dataset: Annotated[list[str], typer.Option(metavar="NAME-OR-FILE", help="Ratings; may be repeated.")],
    algorithms: Annotated[
        str,
        typer.Option(
            "--algorithm",
            metavar="A,B,…",
            help="Presets, auto for what suits the ratings, TOML files, run folders, popularity, or import paths of "
            "your own models; "
            "global-mean and bias-only are added.",
        ),
    ],
    folds: Annotated[int, typer.Option(help="How many folds.")] = 5,
    split_by: shared.SplitBy = None,
    test_file: shared.TestFile = None,
    seed: shared.Seed = None,
    baseline: Annotated[
        str | None, typer.Option(metavar="NAME", help="What the others are tested against. Default: the first.")
    ] = None,
    workers: shared.Workers = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Keep every run folder and the tables here.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in --out.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the runs in --out.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Show error by group, ranking metrics and the whole tests, too.")
    ] = False,
    allow: shared.Allow = None,
    json_file: JsonFile = None,
    csv_file: shared.CsvFile = None,
    markdown_file: shared.MarkdownFile = None,
    *,
    changes: shared.Changes,
    options: FileOptions,
) -> None:
    """Train several algorithms on the same folds and say whether they differ.

    \b
    Examples:
      fedrecplus compare --dataset ml-100k --algorithm fedmf,fedrec,fedrec+ --folds 5
      fedrecplus compare --dataset my.csv --algorithm fedrec,fedrec+ --baseline fedrec --details --json figures.json
      fedrecplus compare --dataset my.csv --algorithm fedrec+,my_models.Neighbours --split last:1

    Figures are means ± standard deviations over folds. p is Wilcoxon's signed-rank test over clients: each client's
    RMSE, averaged over folds, against the baseline's. NDCG@10 ranks every item that a client hasn't rated; a test item
    is relevant from 4 of 5 up, or from --set evaluation.relevant_from. --channel, --rows and --set change all
    algorithms: `fedrecplus settings` lists the settings of every part: model, encoder, pseudo_items, virtual_ratings,
    aggregation, server_optimizer, channel, privacy.
    """
    if resume and overwrite:
        raise UserError("--resume keeps what is in the folder, --overwrite replaces it", "give one of them")
    if out is None and (resume or overwrite):
        raise UserError("--resume and --overwrite are about the runs in --out", "name their folder: --out DIR")
    check_file_place(json_file, csv_file, markdown_file)
    chosen = _configs_of(names_in(algorithms), allow or [])
    configs = [changes.applied(one) if _trains(one) else one for one in chosen]
    experiments.named_configs(configs, seed or 0)  # misspellings are found before data is fetched
    scheme = shared.split_of(split_by, options, test_file)
    watch = Stopwatch()
    sets = [shared.with_test(shared.load_with_bar(name, options), test_file, options) for name in dataset]
    fewest = min(ratings.clients for ratings in sets)
    configs = [changes.for_people(one, fewest) if _trains(one) else one for one in configs]
    study_options: dict[str, Any] = {
        "seed": seed or 0,
        "baseline": baseline,
        "workers": workers,
        "resume": resume,
        "overwrite": overwrite,
        "split": scheme,
    }
    comparisons = compare_with_bars(sets, configs, out, folds=folds, **study_options)
    for comparison in comparisons:
        show_comparison(comparison, details)
    write_reports(comparisons, watch.made(seed or 0), out, json_file, csv_file, markdown_file)


def compare_with_bars(
    sets: Sequence[Ratings], configs: Sequence[Config | str], out: Path | None, *, folds: int = 5, **options: Any
) -> list[experiments.Comparison]:
    """Compare on each data set, with live progress; ``how`` is for ``compare``."""
    comparisons = []
    count = folds * len(set(experiments.named_configs(configs, 0)) | set(experiments.ADDED))
    hint = "go on with the same command and --resume" if out else "give --out DIR to be able to --resume"
    for ratings in sets:
        place = out if out is None or len(sets) == 1 else out / Path(ratings.name).name
        with show_jobs(ratings.name, count, hint) as monitor:
            how: dict[str, Any] = {"out": place, "folds": folds, "monitor": monitor, **options}
            comparisons.append(experiments.compare(ratings, configs, **how))
    return comparisons


def show_comparison(comparison: experiments.Comparison, details: bool = False) -> None:
    """One's own table, and what others report below it. Tests that the table has no room for get one of their own."""
    whole = show_table(*experiments.errors_table(comparison), comparison.title, spare=experiments.SPARE)
    tables = experiments.details_tables(comparison)
    further = tables if details else [] if whole else tables[:1]
    for table in [*further, *([experiments.published_table(comparison)] if comparison.published else [])]:
        say("")
        show_table(*table)
    for line in experiments.comparison_notes(comparison):
        tell(f"note: {line}")


def write_reports(
    comparisons: Sequence[experiments.Comparison], made: dict[str, Any], out: Path | None, *places: Path | None
) -> None:
    """Write the JSON, CSV and Markdown files that are asked for, and all of them into ``out``."""
    content = experiments.to_json(comparisons, made)
    csv, markdown = experiments.to_csv(comparisons), experiments.to_markdown(comparisons)
    own = [out / f"comparison.{ending}" for ending in ("json", "csv", "md")] if out else []
    for json_place, csv_place, markdown_place in filter(None, (places, own)):
        shared.write_files(content, json_place, None, {csv_place: csv, markdown_place: markdown})


def _trains(algorithm: Any) -> TypeGuard[Config]:
    """Whether it is an algorithm of ours, whose settings may be changed: no trivial predictor, nobody else's model."""
    return isinstance(algorithm, Config) and algorithm.algorithm not in (*experiments.TRIVIAL, AUTO)


def _configs_of(names: Sequence[str], allow: Sequence[str]) -> list[Config | str]:
    """Configs, and the import paths of models from outside as they are."""
    configs: list[Config | str] = []
    for name in names:
        if name in (*experiments.TRIVIAL, AUTO):
            configs.append(Config(algorithm=name))
        elif experiments.is_import_path(name) and not Path(name).exists():
            configs.append(name)
        else:
            configs.append(shared.config_of(name, allow, experiments.TRIVIAL))
    return configs


ALGORITHMS = ("fedmf", "fedrec", "fedrec++", "fedrec+", "fedrec+private", "fedrec+secure")
_SHOWN, _BESIDE = "fedrec+secure", "fedrec+"
"""whose page the last line opens, and whose item table its panel has beside"""


def demo_command(
    dataset: Annotated[str, typer.Option(metavar="NAME-OR-FILE", help="Ratings.")] = "ml-100k",
    folds: Annotated[int, typer.Option(help="How many folds.")] = 5,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where run folders and tables go.")] = Path("runs/demo"),
    json_file: JsonFile = None,
) -> None:
    """Train six algorithms on five folds of MovieLens-100K and set them beside what others published.

    A few minutes on two cores. Every run folder stays in runs/demo, which a second demo replaces.
    """
    check_file_place(json_file)
    watch = Stopwatch()
    ratings = shared.load_with_bar(dataset, FileOptions())
    configs = [preset(name) for name in ALGORITHMS]
    comparisons = compare_with_bars([ratings], configs, out, folds=folds, overwrite=True)
    show_comparison(comparisons[0])
    write_reports(comparisons, watch.made(0), out, json_file, None, None)
    say(f"\nrun folders: {out}; tables: {out / 'comparison.md'}, .csv, .json")
    say(f"next: fedrecplus recommend {out / _SHOWN / 'fold-0'} --client {ratings.client_ids[0]}")
    say(f"open its page: fedrecplus page {out / _SHOWN / 'fold-0'} --beside {out / _BESIDE / 'fold-0'} --open")
