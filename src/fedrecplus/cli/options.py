"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.cli.declaring import JsonFile as JsonFile, check_file_place as check_file_place, takes
from fedrecplus.cli.display import show_loading, tell
from fedrecplus.config import (
    Budget,
    Config,
    assign,
    budget_of,
    change,
    check,
    load_config,
    preset,
    presets,
    with_budget,
    with_channel,
)
from fedrecplus.data import FileOptions, Ratings, Split, concatenate, load
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.files import write_json_to, write_text

CONFIG, DATA = "config.toml", "data.json"

Seed = Annotated[int | None, typer.Option(help="Seed of folds, start values and draws. Default: 0.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PART.OPTION=VALUE",
        help="Change a setting; may be repeated. `fedrecplus settings` lists them.",
    ),
]
Channel = Annotated[
    str | None,
    typer.Option(
        "--channel",
        metavar="clear|sums|secure|shares|he",
        help="What hides uploads from the server: nothing, an ideal sum (simulation only), secure sums, secret shares, "
        "homomorphic encryption. The same as --set channel.rule=…; clients then weigh themselves.",
    ),
]
Rows = Annotated[
    str | None,
    typer.Option(
        "--rows",
        metavar="whole|blocks|rows",
        help="Rows of the item table in an upload: all (the list tells nothing), whole public blocks, or rated and "
        "pseudo items (the list is seen). The same as --set channel.rows=…",
    ),
]
NOT_COVERED = (
    "covered: the published item table and statistics. Not covered: each person's own predictions, which that person's "
    "ratings go into (joint differential privacy), the choice of settings by looking at these ratings (tuning), and "
    "measurements on test ratings"
)
KEPT = "nothing is kept of an unfinished study but run folders in --out"
Workers = Annotated[int, typer.Option(min=0, help="Trainings side by side; 0: one per core.")]
SplitBy = Annotated[
    str | None,
    typer.Option(
        "--split",
        metavar="HOW",
        help="How to test: random, user, time:SHARE, last:N, cold-users, cold-items or column. Default: random folds.",
    ),
]
TestFile = Annotated[
    str | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="Test on these ratings, train on all of --dataset. Where it lists pairs of user and item that --dataset "
        "has, test on those and train on the others.",
    ),
]
CsvFile = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="A line per row and fold, as CSV.")]
MarkdownFile = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="All tables.")]
PlotFile = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="A page with plots.")]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-rule",
        metavar="PACKAGE.RULE",
        help="Import this rule from outside the package, where a run folder names it; may be repeated.",
    ),
]


@dataclass(frozen=True)
class Changes:
    """What a command line changes of an algorithm's settings."""

    channel: str | None
    rows: str | None
    flags: tuple[str, ...]
    settings: tuple[str, ...]
    """of ``--set``: they come last, after the options that a budget brings"""
    budget: Budget | None

    def applied(self, config: Config) -> Config:
        """The config with all that doesn't wait for a budget."""
        now = self.settings if self.budget is None else ()
        return assign(with_channel(config, self.channel, self.rows), [*self.flags, *now])

    def for_people(self, config: Config, people: int) -> Config:
        """The same with the budget, which goes by how many there are."""
        return config if self.budget is None else assign(with_budget(config, *self.budget, people), self.settings)


def changes_of(
    channel: Channel = None,
    rows: Rows = None,
    simulation_only: Annotated[
        bool,
        typer.Option(
            "--simulation-only",
            help="Allow what must not run on real devices, such as one person's u uᵀ in the clear; results say so.",
        ),
    ] = False,
    negatives: Annotated[
        int,
        typer.Option(
            min=0,
            help="Also rank each test item among this many items drawn by the seed, as many papers do. Default: 0.",
        ),
    ] = 0,
    settings: Settings = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Budget ε of differential privacy, per person, for the whole training; picks what suits it."),
    ] = None,
    delta: Annotated[float | None, typer.Option(help="δ of the budget, below 1/clients. Default: 1e-5.")] = None,
    noise: Annotated[
        str | None, typer.Option(metavar="central|distributed|local", help="Who adds the noise. Default: central.")
    ] = None,
    seeded_noise: Annotated[
        bool,
        typer.Option(
            "--seeded-noise",
            help="Research: draw the noise of a budget from the seed, so that the run can be repeated. publish, page "
            "and serve refuse it.",
        ),
    ] = False,
) -> Changes:
    """What a command line changes."""
    given = {"simulation_only=true": simulation_only, "seeded_noise=true": seeded_noise}
    flags = [flag for flag, wanted in given.items() if wanted]
    flags += [f"evaluation.negatives={negatives}"] if negatives else []
    return Changes(channel, rows, tuple(flags), tuple(settings or ()), budget_of(epsilon, delta, noise, channel))


def own_file(
    user_column: Annotated[str | None, typer.Option(help="Own file: column of users, by name or number.")] = None,
    item_column: Annotated[str | None, typer.Option(help="Own file: column of items, by name or number.")] = None,
    rating_column: Annotated[
        str | None, typer.Option(help="Own file: column of ratings, by name or number; none: likes, clicks, purchases.")
    ] = None,
    separator: Annotated[str | None, typer.Option(help="Own file: what separates columns.")] = None,
    scale: Annotated[str | None, typer.Option(metavar="LOW:HIGH:STEP", help="Own file: rating scale.")] = None,
    duplicates: Annotated[
        str, typer.Option(metavar="error|last|mean", help="Own file: what to do where one user rated an item twice.")
    ] = "error",
    missing: Annotated[
        str, typer.Option(metavar="error|drop", help="Own file: lines without user, item or rating.")
    ] = "error",
    on_error: Annotated[
        str, typer.Option(metavar="error|skip", help="Own file: lines that are no ratings; skip: count them.")
    ] = "error",
    timestamp_column: Annotated[str | None, typer.Option(help="Own file: column of times.")] = None,
    fold_column: Annotated[
        str | None, typer.Option(help="Own file: column of folds: numbers, or train and test; for --split column.")
    ] = None,
    test_column: Annotated[
        str | None, typer.Option(help="Own file: column that marks what is tested on, with 1, true or test.")
    ] = None,
    title_column: Annotated[str | None, typer.Option(help="Own file: column of items' titles.")] = None,
    genres_column: Annotated[str | None, typer.Option(help="Own file: column of genres, a|b|c.")] = None,
    year_column: Annotated[str | None, typer.Option(help="Own file: column of items' years.")] = None,
    items: Annotated[
        str | None, typer.Option(metavar="FILE", help="Own file: titles, genres and years, a line per item.")
    ] = None,
    catalogue: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Own file: like --items, and these are the items that there are, from a list that was public before "
            "anybody rated. --epsilon needs it.",
        ),
    ] = None,
) -> FileOptions:
    """How to read a file of ratings of one's own."""
    if items is not None and catalogue is not None:
        raise UserError("--items and --catalogue both describe the items", "give --catalogue alone")
    of_items = (title_column, genres_column, year_column, catalogue or items, catalogue is not None)
    of_ratings = (user_column, item_column, rating_column, separator, scale, duplicates)
    further: dict[str, Any] = {"test": test_column, "missing": missing, "on_error": on_error}
    return FileOptions(*of_ratings, timestamp_column, fold_column, *of_items, **further)


reads_own_files = takes(options=own_file)
"""a command of ratings: it gets ``FileOptions`` as its argument ``options``"""


def load_with_bar(dataset: str, options: FileOptions) -> Ratings:
    """Load ratings, and show how far that is."""
    with show_loading() as progress:
        ratings = load(dataset, options=options, progress=progress)
    if ratings.likes_alone:
        what = "no ratings" if not ratings.rated else "only ratings that are all the same"
        tell(f"note: {ratings.name} has {what}, which say who chose what: lists can be judged, errors can't")
    return ratings


def split_of(how: str | None, options: FileOptions, test: str | None) -> Split:
    """The split that is asked for; a column of folds, or a file to test on, asks for itself."""
    column = options.fold is not None or options.test is not None
    if test is not None and (how is not None or column):
        raise UserError("--test names the test ratings, --split and --fold-column cut them out", "give one of them")
    named = "column" if test is not None or column else "random"
    return Split.parse(how or named)


def with_test(ratings: Ratings, test: str | None, options: FileOptions) -> Ratings:
    """The ratings together with those of a file to test on, as fold 0."""
    if test is None:
        return ratings
    return concatenate(ratings, load(test, options=options, like=ratings))


def config_of(name: str, allow: Sequence[str] | None = None, more: Iterable[str] = ()) -> Config:
    """A preset, the config in a TOML file, or that of a run, in which rules from outside need to be allowed.

    ``more`` are further names that the caller knows: an unknown one is answered with all of them.
    """
    if name not in presets() and Path(name).is_dir():
        if not (Path(name) / CONFIG).exists():
            raise UserError(f"{name} is not a run's folder: it has no {CONFIG}", "give the --out of a training")
        return load_config(Path(name) / CONFIG, allow or ())
    if name.endswith(".toml"):
        of_a_run = Path(name).name == CONFIG and (Path(name).parent / DATA).exists()
        if of_a_run:
            return load_config(name, allow or ())
        return _named(load_config(name), Path(name).stem)  # a file of one's own may name any rule
    if name not in presets():
        from fedrecplus.experiments import TRIVIAL

        if name in TRIVIAL:
            remedy = f"set it beside others: fedrecplus compare --dataset ml-100k --algorithm fedrec+,{name}"
            raise UserError(f"{name} has nothing to train: it knows means or counts alone", remedy)
        raise unknown_name("algorithm", name, [*presets(), *more])
    return preset(name)


def changed(config: Config, seed: int | None, settings: Sequence[str] | None) -> Config:
    """A config with what ``--seed`` and ``--set`` say, checked."""
    config = assign(config, settings or [])
    return check(config if seed is None else change(config, "seed", seed, "--seed"))


def _named(config: Config, stem: str) -> Config:
    """A file's config goes by the name that it gives itself; where that is none, or a preset's, by the file's."""
    return replace(config, algorithm=stem) if config.algorithm in (Config().algorithm, *presets()) else config


def write_files(
    content: dict[str, Any],
    json: Path | None,
    plot: Path | None,
    texts: dict[Path | None, str],
    title: str = "fedrecplus",
) -> None:
    """Write the files that were asked for: JSON, a page with plots, and texts."""
    write_json_to(json, content)
    for place, text in texts.items():
        if place is not None:
            write_text(place, text)
    if plot is not None:
        from fedrecplus.web.report import page_of  # here: only pages need it

        write_text(plot, page_of([content], title))
