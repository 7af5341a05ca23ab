"""What the commands about published models share: which registry, and how a model is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedrecplus.training.registry import PublishedModel, Registry

if TYPE_CHECKING:
    from fedrecplus.deploy.server.published import ModelOnServer, PublishedModels

DEFAULT_REGISTRY = Path("runs/registry")
SERVER_HOME = Path("~/.fedrecplus/server")
RegistryFolder = Annotated[
    Path,
    typer.Option("--registry", metavar="DIR", help="The folder of published models.", envvar="FEDRECPLUS_REGISTRY"),
]
OfServer = Annotated[
    bool, typer.Option("--server", help="The registry of this machine's server: nodes that join get its current model.")
]
ServerPlace = Annotated[Path, typer.Option("--home", metavar="DIR", help="With --server: the server's home.")]


def registry_of(folder: Path, server: bool, home: Path) -> Registry | PublishedModels:
    """The registry that is meant: a folder, or the models in a server's database."""
    if not server:
        return Registry(folder)
    from fedrecplus.deploy.operate.homes import ServerHome

    return ServerHome.load(home.expanduser().absolute()).models


def place_of(registry: Registry | PublishedModels) -> str:
    """Where it is, in words."""
    return str(registry.folder) if isinstance(registry, Registry) else "the server"


def in_words(model: PublishedModel | ModelOnServer) -> str:
    """A model in a line."""
    return f"model {model.number} ({model.figures.get('algorithm')}, digest {model.digest[:12]})"
