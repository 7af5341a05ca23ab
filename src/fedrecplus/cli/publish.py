"""``fedrecplus publish``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.cli.display import say
from fedrecplus.cli.options import Allow
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


def publish_command(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.")],
    registry: RegistryFolder = DEFAULT_REGISTRY,
    server: OfServer = False,
    home: ServerPlace = SERVER_HOME,
    allow: Allow = None,
) -> None:
    """Copy a finished run's public model into a registry and make it the current one.

    \b
    Examples:
      fedrecplus publish runs/ml-100k-fedrec+-fold0-seed0
      fedrecplus publish runs/first --registry models
      fedrecplus publish runs/first --server             nodes that join get it; `deploy run` does so at its end

    The public table alone is copied: no ratings and no weights of a client. What was published before stays, and
    `fedrecplus rollback` makes it current again. A service that runs on the registry takes the new model by itself.
    """
    place = registry_of(registry, server, home)
    say(f"{in_words(place.publish(run, allow or ()))} is current in {place_of(place)}")
