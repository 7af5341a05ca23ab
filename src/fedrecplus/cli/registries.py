"""What the commands about published models share: which registry, and how a model is named."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedrecplus.training.registry import PublishedModel

DEFAULT_REGISTRY = Path("runs/registry")
RegistryFolder = Annotated[
    Path,
    typer.Option("--registry", metavar="DIR", help="The folder of published models.", envvar="FEDRECPLUS_REGISTRY"),
]


def in_words(model: PublishedModel) -> str:
    """A model in a line."""
    return f"model {model.number} ({model.figures.get('algorithm')}, digest {model.digest[:12]})"
