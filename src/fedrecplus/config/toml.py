"""Configs as TOML files, and the presets."""

from __future__ import annotations

import functools
import json
import tomllib
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from fedrecplus.config.check import check
from fedrecplus.config.settings import Config
from fedrecplus.config.values import from_dict, to_dict
from fedrecplus.errors import UserError, unknown_name


def dumps(config: Config) -> str:
    """The complete config as TOML text."""
    lines: list[str] = []
    tables = to_dict(config)
    lines += [f"{name} = {_toml_value(value)}" for name, value in tables.items() if not isinstance(value, dict)]
    for name, table in tables.items():
        if isinstance(table, dict):
            lines += ["", f"[{name}]"]
            lines += [f"{option} = {_toml_value(value)}" for option, value in table.items()]
    return "\n".join(lines) + "\n"


def loads(text: str, source: str = "config") -> Config:
    """A config from TOML text; what it leaves out has the default or, with ``extends``, is as in that preset.

    >>> wider = loads('extends = "fedrec+"\\npseudo_items = {ratio = 3}')
    >>> wider.pseudo_items.rule, wider.pseudo_items.ratio
    ('matched', 3.0)
    """
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{source}: {error}", "correct the TOML there") from None
    extended, start = tables.pop("extends", None), Config()
    if extended is not None:
        if extended not in presets():
            raise unknown_name(f"preset in {source}: extends =", str(extended), presets())
        start = replace(preset(extended), algorithm=start.algorithm)  # a config of its own has a name of its own
    return from_dict(tables, start, source)


def load_config(path: str | Path) -> Config:
    """A config from a TOML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", "give the path of a TOML config") from None
    return check(loads(text, str(path)))


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
    text = (resources.files("fedrecplus.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return check(from_dict({"algorithm": name}, loads(text, f"preset {name}")))


def preset_summary(name: str) -> str:
    """What a preset is for: the first comment line of its file."""
    text = (resources.files("fedrecplus.config") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return text.splitlines()[0].removeprefix("#").strip()


def _toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
