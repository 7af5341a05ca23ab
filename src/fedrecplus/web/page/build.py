"""A run folder as a static site: the built page, and the run's public model beside it."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.errors import UserError
from fedrecplus.files import check_writable, write_bytes
from fedrecplus.parts.model.ials import Ials
from fedrecplus.parts.model.joint import Joint
from fedrecplus.settings import constants_of
from fedrecplus.training import SharedModel, finished_model
from fedrecplus.web.page.quantise import cost_of, packed, quantise, tables_of, with_tables
from fedrecplus.web.page.what_leaves import facts_of, tables_beside

FORMAT = 1
"""of ``model.json`` and ``model.bin``"""
MODELS = ("mf", "biased-mf", "reconstruction", "ials", "joint", "fcf", "biases")
"""that the page can compute"""
OFFLINE = "offline.js"
"""the service worker: its first line, written here, names the files that it keeps and their digest"""
_NOT_SERVED = ("sources.json",)
_OF_SERVERS = ("device.js", "licenses.txt")
"""what the page of a server has besides: the browser as a device"""


@dataclass(frozen=True)
class Site:
    """A finished site."""

    folder: Path
    files: dict[str, int]
    """name → bytes"""
    compressed: int
    """bytes of all files as a server that compresses would send them"""
    cost: dict[str, float]
    """what quantising changes: see ``quantise.cost_of``"""
    gives_away: tuple[str, ...]
    """in plain words"""


def build_site(run: Path, out: Path, bits: int = 8, allow: Collection[str] = (), besides: Sequence[Path] = ()) -> Site:
    """Write the page of a finished run's model into a folder. Nothing private of any run is read.

    ``besides`` are runs over the same items, whose tables the panel "What leaves" uses for presets of other models.
    """
    (model, facts), others = read_model(run, allow), [read_model(one, allow)[0] for one in besides]
    check_writable(out)
    contents = site_files(model, provenance(facts), bits, others)
    for name, content in contents.items():
        write_bytes(out / name, content)
    sizes = {name: len(content) for name, content in contents.items()}
    compressed = sum(len(gzip.compress(content, 9, mtime=0)) for content in contents.values())
    precision = json.loads(contents["model.json"])["precision"]
    return Site(out, sizes, compressed, precision, tuple(facts["figures"]["gives_away"]))


def site_files(
    model: SharedModel, made: dict[str, Any], bits: int = 8, others: Sequence[SharedModel] = ()
) -> dict[str, bytes]:
    """Every file of a model's site."""
    contents = page_files() | files_of_model(model, made, bits, others)
    version = hashlib.sha256(b"".join(name.encode() + contents[name] for name in sorted(contents))).hexdigest()[:16]
    contents[OFFLINE] = offline_worker(version, sorted(contents), contents[OFFLINE])
    return contents


def files_of_model(
    model: SharedModel, made: dict[str, Any], bits: int = 8, others: Sequence[SharedModel] = ()
) -> dict[str, bytes]:
    """Those that are another model's on another site."""
    table, facts = model_files(model, made, bits)
    tables_beside_it, leaves = leaves_files(model, others, bits)
    named = {"model.json": facts, "items.json": item_facts(model), "leaves.json": leaves}
    return {name: _compact(content) for name, content in named.items()} | {
        "model.bin": table,
        "leaves.bin": tables_beside_it,
    }


def read_model(run: Path, allow: Collection[str] = ()) -> tuple[SharedModel, dict[str, Any]]:
    """A finished run's model as it may be published, if the page can compute it, and what may be said of it."""
    model, facts = finished_model(run, allow)
    return computable(model), facts


def computable(model: SharedModel) -> SharedModel:
    """The model, if the page can compute it; of what is chosen soon after what it has no equations."""
    model = model.without_transitions()
    if model.config.model.rule not in MODELS:
        raise UserError(
            f"a browser can't compute the model {model.config.model.rule!r}: the page has the equations of "
            f"{', '.join(MODELS)} alone",
            "`fedrecplus recommend` makes its lists here; for a page, train with --algorithm=fedrec+secure",
        )
    return model


def page_files() -> dict[str, bytes]:
    """The built page: what is the same for every model."""
    return {name: content for name, content in built_files().items() if name not in _OF_SERVERS}


def built_files() -> dict[str, bytes]:
    """All files of the built page."""
    folder = files("fedrecplus.web.page") / "site"
    by_name = {each.name: each.read_bytes() for each in folder.iterdir() if each.name not in _NOT_SERVED}
    if "app.js" not in by_name:
        raise UserError("the page has not been built", "run `make page`, which needs node and npm")
    return by_name


def model_files(model: SharedModel, made: dict[str, Any], bits: int = 8) -> tuple[bytes, dict[str, Any]]:
    """``model.bin`` and the facts of ``model.json``: all that a browser needs to fold a person in."""
    model = without_components(model)
    tables = tables_of(model, bits)
    data, arrays = packed(tables)
    config, scale, as_shown = model.config, model.scale, with_tables(model, tables)
    facts = {
        "format": FORMAT,
        "algorithm": config.algorithm,
        "dataset": str(made.get("dataset", "")),
        "scale": {"low": scale.low, "high": scale.high, "step": scale.step},
        "model": {
            "rule": config.model.rule,
            "options": {**constants_of(type(config.model.settings)), **config.model.values},
        },
        "mean": float(model.public.mean),
        "noise": float(model.public.noise),
        "rounds": config.server.rounds,
        "likes_alone": model.likes_alone,
        "scores_lists": config.model.scores_lists,
        "lists": list_facts(as_shown),
        "arrays": arrays,
        "precision": {"bits": bits, **cost_of(model, as_shown)},
        "digest": hashlib.sha256(data).hexdigest(),
        "made": made,
    }
    return data, facts


def without_components(model: SharedModel) -> SharedModel:
    """The model without a kernel's components, which a browser doesn't compute: straight lines alone predict there."""
    chosen = model.config.model
    if not isinstance(chosen, Joint) or chosen.settings.kernel_scale == 0.0:
        return model
    return replace(model, config=replace(model.config, model=chosen.with_settings(kernel_scale=0.0)))


def list_facts(model: SharedModel) -> dict[str, Any] | None:
    """What everybody's list score has in common, where choices have a part in it. See ``ials.list_weights``."""
    chosen, public = model.config.model, model.public
    if not isinstance(chosen, Ials):
        return None
    of_rating, of_popularity = chosen.mixing_weights(public)
    alike, first = chosen.likeness(model.V[:, -chosen.settings.interaction_factors :], public)
    return {"rating": of_rating, "popularity": of_popularity, "alike": alike, "first": first.tolist() if alike else []}


def leaves_files(model: SharedModel, others: Sequence[SharedModel], bits: int = 8) -> tuple[bytes, dict[str, Any]]:
    """``leaves.bin``, the tables of other runs, and the facts of ``leaves.json``: every preset's client step."""
    tables = tables_beside(model, others)
    data, arrays = packed({f"V{number}": quantise(table.V, bits) for number, table in enumerate(tables) if number})
    return data, {"presets": facts_of(tables), "arrays": arrays, "step": model.scale.standard_step}


def item_facts(model: SharedModel) -> dict[str, Any]:
    """Ids and titles, and each item's genres as places in the list of their names."""
    names = model.genre_names
    belongs = model.public.content[:, : len(names)] > 0
    return {
        "ids": [str(one) for one in model.item_ids.tolist()],
        "titles": list(model.titles),
        "genre_names": list(names),
        "genres": [np.flatnonzero(row).tolist() for row in belongs] if names else [],
    }


def provenance(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Where a model comes from, of what a registry says of it."""
    facts_told = {name: facts["figures"].get(name) for name in ("dataset", "rmse", "mae")} | dict(facts["made"])
    return {name: value for name, value in facts_told.items() if value is not None}


def offline_worker(version: str, names: list[str], code: bytes) -> bytes:
    """The service worker of this very site: a new model makes it another file, so browsers notice."""
    kept = ["./", *(name for name in names if name not in (OFFLINE, "index.html"))]
    return f"self.SITE={json.dumps({'version': version, 'files': kept})};\n".encode() + code


def _compact(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
