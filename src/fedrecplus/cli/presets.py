"""``fedrecplus presets``."""

from __future__ import annotations

from typing import Annotated

import typer

from fedrecplus.cli.display import say, show_list
from fedrecplus.config import dumps, preset, preset_summary, presets


def presets_command(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Show all settings of this one.")] = None,
) -> None:
    """List the algorithms, or show every setting of one.

    \b
    What is shown is a config file, ready to be changed and used:
      fedrecplus presets fedrec+ > my.toml
      fedrecplus train --dataset ml-100k --config my.toml
    """
    if name is not None:
        say(dumps(preset(name)).rstrip())
        return
    show_list([(known, preset_summary(known)) for known in presets()])
