"""Where a command's figures go: the option ``--json``, and whether files can be written there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.errors import UserError
from fedrecplus.files import STDOUT, check_writable

JsonFile = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="The figures as JSON; -: on standard output, and nothing else there."),
]


def check_file_place(*places: Path | None, plot: Path | None = None) -> None:
    """Find out before a long training that its figures could not be written."""
    for place in (*places, plot):
        if place is None or place == STDOUT:
            continue
        if place.exists() and not place.is_file():
            kind = "a folder" if place.is_dir() else "a device or a pipe"
            raise UserError(f"{place} is {kind}", "give the name of a file")
        check_writable(place.parent)
