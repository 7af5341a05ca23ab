"""Options that several commands share."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fedrecplus.config import Config, load_config, preset, presets
from fedrecplus.data import FileOptions, Ratings, load, progress_bar
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.files import STDOUT, check_writable, write_json_to, write_text

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
Workers = Annotated[int, typer.Option(min=0, help="Trainings side by side; 0: one per core.")]
CsvFile = Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="A line per row and fold, as CSV.")]
MarkdownFile = Annotated[Path | None, typer.Option("--markdown", metavar="FILE", help="All tables.")]
PlotFile = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="A page with plots; wants the extra `report`.")
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-rule",
        metavar="NAME",
        help="Import this rule from outside the package, where a run folder names it; may be repeated.",
    ),
]
JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="The figures as JSON; -: on standard output, and nothing else there."),
]


def own_file(
    user_column: Annotated[str | None, typer.Option(help="Own file: column of users, by name or number.")] = None,
    item_column: Annotated[str | None, typer.Option(help="Own file: column of items, by name or number.")] = None,
    rating_column: Annotated[str | None, typer.Option(help="Own file: column of ratings, by name or number.")] = None,
    separator: Annotated[str | None, typer.Option(help="Own file: what separates columns.")] = None,
    scale: Annotated[str | None, typer.Option(metavar="LOW:HIGH:STEP", help="Own file: rating scale.")] = None,
    duplicates: Annotated[
        str, typer.Option(metavar="error|last|mean", help="Own file: what to do where one user rated an item twice.")
    ] = "error",
) -> FileOptions:
    """How to read a file of ratings of one's own."""
    return FileOptions(user_column, item_column, rating_column, separator, scale, duplicates)


def reads_own_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of ``own_file``, after its own; it gets them as one argument, ``options``."""
    own, more = (inspect.signature(function, eval_str=True) for function in (command, own_file))

    @functools.wraps(command)
    def called(**given: Any) -> None:
        options = own_file(**{name: given.pop(name) for name in more.parameters})
        command(**given, options=options)

    kept = [parameter for parameter in own.parameters.values() if parameter.name != "options"]
    merged = own.replace(parameters=[*kept, *more.parameters.values()])
    # what typer reads
    called.__annotations__ = {name: parameter.annotation for name, parameter in merged.parameters.items()}
    called.__signature__ = merged  # type: ignore[attr-defined]
    return called


def names_in(text: str | None) -> list[str]:
    """``A,B,…`` as a list."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def load_with_bar(dataset: str, options: FileOptions) -> Ratings:
    """Load ratings, with a bar where that takes its time and somebody looks on."""
    if not sys.stderr.isatty():
        return load(dataset, options=options)
    with progress_bar() as progress:
        return load(dataset, options=options, progress=progress)


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
        raise unknown_name("algorithm", name, [*presets(), *more])
    return preset(name)


def _named(config: Config, stem: str) -> Config:
    """A file's config goes by the name that it gives itself; where that is none, or a preset's, by the file's."""
    return replace(config, algorithm=stem) if config.algorithm in (Config().algorithm, *presets()) else config


def check_file_place(*places: Path | None, plot: Path | None = None) -> None:
    """Find out before a long training that its figures could not be written, or that the extra for plots is missing."""
    if plot is not None:
        from fedrecplus.report.build import plotly_js  # here: it wants the extra `report`

        plotly_js()
    for place in (*places, plot):
        if place is None or place == STDOUT:
            continue
        if place.exists() and not place.is_file():
            kind = "a folder" if place.is_dir() else "a device or a pipe"
            raise UserError(f"{place} is {kind}", "give the name of a file")
        check_writable(place.parent)


def write_files(content: dict[str, Any], json: Path | None, plot: Path | None, texts: dict[Path | None, str]) -> None:
    """Write the files that were asked for: JSON, a page with plots, and texts."""
    write_json_to(json, content)
    for place, text in texts.items():
        if place is not None:
            write_text(place, text)
    if plot is not None:
        from fedrecplus.report.build import page_of  # here: it wants the extra `report`

        write_text(plot, page_of([content]))
