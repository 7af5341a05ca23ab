"""``fedrecplus rollback``."""

from __future__ import annotations

from typing import Annotated

import typer

from fedrecplus.cli.display import say
from fedrecplus.cli.registries import (
    DEFAULT_REGISTRY,
    SERVER_HOME,
    OfServer,
    RegistryFolder,
    ServerPlace,
    in_words,
    place_of,
    registry_of,
)


def rollback_command(
    number: Annotated[
        int | None, typer.Argument(metavar="[NUMBER]", help="A model's number; left away, the one before the current.")
    ] = None,
    registry: RegistryFolder = DEFAULT_REGISTRY,
    server: OfServer = False,
    home: ServerPlace = SERVER_HOME,
) -> None:
    """Make an earlier model of a registry the current one; `fedrecplus models` lists them.

    \b
    Examples:
      fedrecplus rollback
      fedrecplus rollback 3 --registry models
      fedrecplus rollback --server                       nodes that join get the model before
    """
    place = registry_of(registry, server, home)
    say(f"{in_words(place.rollback(number))} is current in {place_of(place)}")
