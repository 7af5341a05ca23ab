"""Settings by name: reading, changing and checking them, with errors that name the nearest setting."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from fedrecplus.config.settings import Config
from fedrecplus.errors import UserError, unknown_name

_TRUE, _FALSE = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def fields_of(section: Any) -> Mapping[str, Any]:
    """Setting name → type, of a section's dataclass."""
    return typing.get_type_hints(section)


def to_dict(config: Config) -> dict[str, Any]:
    """A config as plain tables, complete."""
    return dataclasses.asdict(config)


def from_dict(tables: Mapping[str, Any], start: Config | None = None, source: str = "config") -> Config:
    """A config from tables; what they leave out stays as in ``start``."""
    config = start or Config()
    for name, value in tables.items():
        if isinstance(value, Mapping):
            for option, inner in value.items():
                config = change(config, f"{name}.{option}", inner, source)
        else:
            config = change(config, name, value, source)
    return config


def change(config: Config, path: str, value: Any, source: str = "--set") -> Config:
    """The config with one setting changed; text is read as the setting's type.

    >>> change(Config(), "client.local_epochs", "5").client.local_epochs
    5
    >>> change(Config(), "client.local_epoch", "5")
    Traceback (most recent call last):
    fedrecplus.errors.UserError: unknown setting 'client.local_epoch'
      → did you mean 'client.local_epochs'? Known: client.batch_size, client.contrast, client.dropout, ...
    """
    section_name, _, option = path.rpartition(".")
    if section_name == "":
        hints = fields_of(Config)
        if option not in hints or dataclasses.is_dataclass(hints[option]):
            raise unknown_name("setting", path, _all_paths())
        return dataclasses.replace(config, **{option: _read(hints[option], value, path, source)})
    if not dataclasses.is_dataclass(fields_of(Config).get(section_name)):
        raise unknown_name("setting", path, _all_paths())
    section = getattr(config, section_name)
    hints = fields_of(type(section))
    if option not in hints:
        raise unknown_name("setting", path, [f"{section_name}.{name}" for name in hints])
    changed = dataclasses.replace(section, **{option: _read(hints[option], value, path, source)})
    return dataclasses.replace(config, **{section_name: changed})


def assign(config: Config, assignments: typing.Iterable[str]) -> Config:
    """Apply ``part.option=value`` texts in turn."""
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"--set {assignment!r} has no '='", "write --set part.option=value")
        config = change(config, path.strip(), value.strip())
    return config


def _all_paths() -> list[str]:
    paths = []
    for name, hint in fields_of(Config).items():
        paths += [f"{name}.{option}" for option in fields_of(hint)] if dataclasses.is_dataclass(hint) else [name]
    return paths


def _read(hint: Any, value: Any, path: str, source: str) -> Any:
    if typing.get_origin(hint) is typing.Literal:
        allowed = typing.get_args(hint)
        if value not in allowed:
            raise unknown_name(f"value for {path}:", str(value), allowed)
        return value
    try:
        if hint is bool:
            return _read_bool(value)
        if hint is int and isinstance(value, float):
            raise ValueError
        if hint is not str and isinstance(value, bool):
            raise ValueError
        return hint(value)
    except (TypeError, ValueError):
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
        raise UserError(f"{source}: {path} = {value!r} is not {words[hint]}", f"give {words[hint]}") from None


def _read_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if str(value).lower() in _TRUE | _FALSE:
        return str(value).lower() in _TRUE
    raise ValueError
