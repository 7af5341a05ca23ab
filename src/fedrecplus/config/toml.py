"""Configs as TOML files, and the presets."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Collection
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w

from fedrecplus.config.change import from_tables, refuse_old, to_tables
from fedrecplus.config.check import check
from fedrecplus.config.config import Config
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.parts import KINDS, built_in


def dumps(config: Config) -> str:
    """The complete config as TOML text."""
    return tomli_w.dumps(to_tables(config))


def loads(text: str, source: str = "config", allow: Collection[str] | None = None) -> Config:
    """A config from TOML text; what it leaves out has the default or, with ``extends``, is as in that preset.

    ``allow`` is for texts that came from somebody else, in a run folder or over the network: parts that don't come with
    the package are imported only if they are named there. None is for one's own text, which may name any.

    >>> wider = loads('extends = "fedrec+"\\npseudo_items = {ratio = 3}')
    >>> wider.pseudo_items.rule, wider.pseudo_items.settings.ratio
    ('matched', 3.0)
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{source}: {error}", "correct the TOML there") from None
    refuse_old(tables, source)
    if allow is not None:
        refuse_outside(tables, allow, source)
    extended, start = tables.pop("extends", None), Config()
    if extended is not None:
        if extended not in presets():
            raise unknown_name(f"preset in {source}: extends =", str(extended), presets())
        start = replace(preset(extended), algorithm=start.algorithm)  # a config of its own has a name of its own
    return from_tables(tables, start, source)


def refuse_outside(tables: dict[str, Any], allow: Collection[str], source: str) -> None:
    """Refuse rules that neither come with the package nor were allowed, before anything is imported."""
    for name, kind in KINDS.items():
        table = tables.get(name)
        rule = table.get("rule") if isinstance(table, dict) else None
        if rule is not None and rule not in built_in(kind) and rule not in allow:
            raise UserError(
                f"{source}: {name}.rule = {rule!r} would run code that doesn't come with fedrecplus",
                f"look at that code, then allow it by its name: --allow-rule={rule}",
            )


def load_config(path: str | Path, allow: Collection[str] | None = None) -> Config:
    """A config from a TOML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "give the path of a TOML config") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: {error.reason}", "save it as UTF-8") from None
    return check(loads(text, str(path), allow))


def presets() -> tuple[str, ...]:
    """The names of all presets."""
    folder = resources.files("fedrecplus.config") / "presets"
    return tuple(sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml")))


@functools.cache
def preset(name: str) -> Config:
    """A preset by name.

    >>> preset("fedrec").pseudo_items.rule
    'random'
    """
    if name not in presets():
        raise unknown_name("algorithm", name, presets())
    return check(replace(loads(_text(name), f"preset {name}"), algorithm=name))


def preset_summary(name: str) -> str:
    """What a preset is for: the first comment line of its file."""
    return _text(name).splitlines()[0].removeprefix("#").strip()


def _text(name: str) -> str:
    return (resources.files("fedrecplus.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
