"""``fedrecplus publish``, ``models`` and ``rollback``: what is in a registry, and which model of it is current."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.options import Allow, JsonFile, check_file_place
from fedrecplus.files import write_json_to
from fedrecplus.training import PublishedModel, Registry

if TYPE_CHECKING:
    from fedrecplus.deploy.server import ModelOnServer, PublishedModels

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
_HEADINGS = ["model", "current", "published", "algorithm", "data", "RMSE", "NDCG@10", "items", "digest"]


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

    The public table alone is copied: no ratings and no weights of a client, no seed, no figure of an item that few
    people rated. It says what is given away. Noise of --seeded-noise is refused. What was published before stays, and
    `fedrecplus rollback` makes it current again. A service that runs on the registry takes the new model by itself.
    """
    place = _registry_of(registry, server, home)
    published = place.publish(run, allow or ())
    for line in published.figures.get("gives_away") or ():
        say(line)
    say(f"{_in_words(published)} is current in {_place_of(place)}")


def models_command(
    registry: RegistryFolder = DEFAULT_REGISTRY,
    server: OfServer = False,
    home: ServerPlace = SERVER_HOME,
    json_file: JsonFile = None,
) -> None:
    """List the models of a registry, and which of them is current."""
    check_file_place(json_file)
    place = _registry_of(registry, server, home)
    if isinstance(place, Registry):
        place.check_there()
        current = place.current_number()
        rows = [_facts(model, current) for model in place.models()]
    else:  # a server has one, and nothing in it before the first training
        rows = [asdict(model) for model in place.models()]
    write_json_to(json_file, rows)
    if not rows:
        say(f"{_place_of(place)} has no models; `fedrecplus publish RUN` puts one there")
        return
    show_table(_HEADINGS, [_cells(row) for row in rows], spare=("data", "items"))


def _facts(model: PublishedModel, current: int | None) -> dict[str, Any]:
    return {"current": model.number == current, **asdict(model), "folder": str(model.folder)}


def _cells(row: dict[str, Any]) -> list[str]:
    figures = row["figures"]
    errors = [f"{figures[name]:.3f}" if figures.get(name) is not None else "" for name in ("rmse", "ndcg@10")]
    named = [str(figures.get(name) or "") for name in ("algorithm", "dataset")]
    mark = "yes" if row["current"] else ""
    return [str(row["number"]), mark, row["when"], *named, *errors, str(figures.get("items") or ""), row["digest"][:12]]


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
    place = _registry_of(registry, server, home)
    say(f"{_in_words(place.rollback(number))} is current in {_place_of(place)}")


def _registry_of(folder: Path, server: bool, home: Path) -> Registry | PublishedModels:
    """The registry that is meant: a folder, or the models in a server's database."""
    if not server:
        return Registry(folder)
    from fedrecplus.deploy.operate import ServerHome

    return ServerHome.load(home.expanduser().absolute()).models


def _place_of(registry: Registry | PublishedModels) -> str:
    """Where it is, in words."""
    return str(registry.folder) if isinstance(registry, Registry) else "the server"


def _in_words(model: PublishedModel | ModelOnServer) -> str:
    """A model in a line."""
    return f"model {model.number} ({model.figures.get('algorithm')}, digest {model.digest[:12]})"
