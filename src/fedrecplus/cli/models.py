"""``fedrecplus models``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fedrecplus.cli.display import say, show_table
from fedrecplus.cli.options import JsonFile, check_file_place
from fedrecplus.cli.registries import (
    DEFAULT_REGISTRY,
    SERVER_HOME,
    OfServer,
    RegistryFolder,
    ServerPlace,
    place_of,
    registry_of,
)
from fedrecplus.files import write_json_to
from fedrecplus.training.registry import PublishedModel, Registry

_HEADINGS = ["model", "current", "published", "algorithm", "data", "RMSE", "NDCG@10", "items", "digest"]


def models_command(
    registry: RegistryFolder = DEFAULT_REGISTRY,
    server: OfServer = False,
    home: ServerPlace = SERVER_HOME,
    json_file: JsonFile = None,
) -> None:
    """List the models of a registry, and which of them is current."""
    check_file_place(json_file)
    place = registry_of(registry, server, home)
    if isinstance(place, Registry):
        place.check_there()
        current = place.current_number()
        rows = [_facts(model, current) for model in place.models()]
    else:  # a server has one, and nothing in it before the first training
        rows = [asdict(model) for model in place.models()]
    write_json_to(json_file, rows)
    if not rows:
        say(f"{place_of(place)} has no models; `fedrecplus publish RUN` puts one there")
        return
    show_table(_HEADINGS, [_cells(row) for row in rows], spare=("data", "items"))


def _facts(model: PublishedModel, current: int | None) -> dict[str, Any]:
    return {"current": model.number == current, **asdict(model), "folder": str(model.folder)}


def _cells(row: dict[str, Any]) -> list[str]:
    figures = row["figures"]
    errors = [f"{figures[name]:.4f}" if figures.get(name) is not None else "" for name in ("rmse", "ndcg@10")]
    named = [str(figures.get(name) or "") for name in ("algorithm", "dataset")]
    mark = "yes" if row["current"] else ""
    return [str(row["number"]), mark, row["when"], *named, *errors, str(figures.get("items") or ""), row["digest"][:12]]
