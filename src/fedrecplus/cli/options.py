"""Options that several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.config import Config, load_config, preset
from fedrecplus.data import FileOptions, Ratings, load, progress_bar
from fedrecplus.errors import UserError

Seed = Annotated[int | None, typer.Option(help="Seed of folds, start values and draws. Default: 0.")]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PART.OPTION=VALUE", help="Change a setting; may be repeated. `presets NAME` lists them."
    ),
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the figures here as JSON, too.")]
UserColumn = Annotated[str | None, typer.Option(help="Own file: column of users, by name or number.")]
ItemColumn = Annotated[str | None, typer.Option(help="Own file: column of items, by name or number.")]
RatingColumn = Annotated[str | None, typer.Option(help="Own file: column of ratings, by name or number.")]
Separator = Annotated[str | None, typer.Option(help="Own file: what stands between columns.")]
ScaleText = Annotated[str | None, typer.Option("--scale", metavar="LOW:HIGH:STEP", help="Own file: rating scale.")]
Duplicates = Annotated[
    str, typer.Option(metavar="error|last|mean", help="Own file: what to do where one user rated an item twice.")
]


def load_with_bar(dataset: str, options: FileOptions) -> Ratings:
    """Load ratings, with a bar where that takes its time and somebody looks on."""
    if not sys.stderr.isatty():
        return load(dataset, options=options)
    with progress_bar() as progress:
        return load(dataset, options=options, progress=progress)


def config_of(name: str) -> Config:
    """A preset, or the config in a TOML file."""
    return load_config(name) if name.endswith(".toml") else preset(name)


def check_file_place(*places: Path | None) -> None:
    """Find out before a long training that its figures could not be written."""
    for place in places:
        if place is not None and place.is_dir():
            raise UserError(f"{place} is a folder", "give the name of a file")
        if place is not None and place.parent.exists() and not place.parent.is_dir():
            raise UserError(f"{place.parent} is a file", "give a place in a folder")
