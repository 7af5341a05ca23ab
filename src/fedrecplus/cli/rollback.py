"""``fedrecplus rollback``."""

from __future__ import annotations

from typing import Annotated

import typer

from fedrecplus.cli.display import say
from fedrecplus.cli.registries import DEFAULT_REGISTRY, RegistryFolder, in_words
from fedrecplus.training.registry import Registry


def rollback_command(
    number: Annotated[
        int | None, typer.Argument(metavar="[NUMBER]", help="A model's number; left away, the one before the current.")
    ] = None,
    registry: RegistryFolder = DEFAULT_REGISTRY,
) -> None:
    """Make an earlier model of a registry the current one; `fedrecplus models` lists them.

    \b
    Examples:
      fedrecplus rollback
      fedrecplus rollback 3 --registry models
    """
    say(f"{in_words(Registry(registry).rollback(number))} is current in {registry}")
