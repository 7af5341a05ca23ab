"""What a setting is: a field with a default, a range and one line of meaning.

Every part of a training owns a class of settings. One description serves TOML, ``--set``, Python, ``--help``, the
search space of ``tune`` and the page of all settings. What no preset, document or study varies is a constant of the
class, a ``ClassVar``: code reads it as it reads a setting, and nobody can set it.

>>> class Example(Settings):
...     ratio: Annotated[float, number(0, 10, "pseudo items per rated item")] = 1.0
>>> read_setting(Example, "ratio", "2.5", "--set")
2.5
"""

from __future__ import annotations

import functools
import math
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from fedrecplus.errors import UnknownName, UserError, unknown_name

__all__ = [
    "Annotated",
    "Setting",
    "Settings",
    "check_constant",
    "constants_of",
    "number",
    "read_setting",
    "read_settings",
    "settings_of",
    "text",
    "value_text",
]


@typing.dataclass_transform(frozen_default=True, kw_only_default=True)
class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of one part, each ``Annotated`` with ``number`` or ``text``."""


Own = TypeVar("Own", bound=Settings)
_TRUTHS = {**dict.fromkeys(("true", "yes", "on", "1"), True), **dict.fromkeys(("false", "no", "off", "0"), False)}


def number(low: float, high: float, meaning: str) -> Meta:
    """A number between two bounds, both included."""
    return Meta(ge=low, le=high, description=meaning)


def text(meaning: str) -> Meta:
    """Anything but a number: a choice of words, a name, true or false."""
    return Meta(description=meaning)


@dataclass(frozen=True)
class Setting:
    """One setting, described."""

    name: str
    default: Any
    low: float | None
    high: float | None
    meaning: str
    values: tuple[str, ...] = ()
    """the words to choose from, where it is a choice"""
    whole: bool = False
    """whether it is a whole number"""

    @property
    def range(self) -> str:
        """What it may be, in words; empty where that is anything."""
        limits = "" if self.low is None else f"{self.low:g} to {self.high:g}"
        return ", ".join(self.values) or limits


def value_text(value: Any) -> str:
    """A setting's value as TOML and ``--set`` write it, but for quotes."""
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


@functools.cache
def settings_of(owner: type[Settings]) -> tuple[Setting, ...]:
    """All settings of a class, described, in the order of the code."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(owner)}
    described = []
    for name, hint in _hints(owner).items():
        meta = _meta(hint)
        kind = typing.get_args(hint)[0] if meta else hint
        values = typing.get_args(kind) if typing.get_origin(kind) is typing.Literal else ()
        limits = meta or Meta()
        described.append(
            Setting(name, defaults[name], limits.ge, limits.le, limits.description or "", values, kind is int)
        )
    return tuple(described)


def read_settings(
    owner: type[Own], values: Mapping[str, Any], source: str, prefix: str = "", start: Own | None = None
) -> Own:
    """Settings from a table; what it leaves out has the default, or is as in ``start``."""
    read = {name: read_setting(owner, name, value, source, prefix) for name, value in values.items()}
    read = {name: value for name, value in read.items() if name not in constants_of(owner)}
    return msgspec.structs.replace(start or owner(), **read)


def read_setting(owner: type[Settings], name: str, value: Any, source: str, prefix: str = "") -> Any:
    """One value, as the setting's type; text is read as a number or as true or false where these are wanted."""
    hints = _hints(owner)
    path = f"{prefix}{name}"
    if name in constants_of(owner):
        return check_constant(constants_of(owner)[name], value, source, path)
    if name not in hints:
        raise unknown_setting(path, [f"{prefix}{known}" for known in hints])
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{source}: {path} = {value} is not a number", _remedy(owner, name))
    kind = typing.get_args(hints[name])[0] if _meta(hints[name]) else hints[name]
    try:
        read = msgspec.convert(_from_text(value, kind) if isinstance(value, str) else value, hints[name])
    except msgspec.ValidationError as error:
        raise UserError(f"{source}: {path} = {value!r} {_wrong(str(error), kind)}", _remedy(owner, name)) from None
    return read


def check_constant(constant: Any, value: Any, source: str, path: str) -> Any:
    """The constant, for a config of the time when it was a setting; one that had another value is refused."""
    if value != constant and str(value) != str(constant):
        raise UserError(
            f"{source}: {path} = {value!r} can't be set any more: it is {constant!r} in every training",
            "leave it out, or read this config with the version of fedrecplus that wrote it",
        )
    return constant


def _from_text(value: str, kind: Any) -> Any:
    """A number, or true or false, where that is what the text says; else the text, which is then found wrong."""
    if kind is bool:
        return _TRUTHS.get(value.lower(), value)
    if kind in (int, float):
        try:
            read = kind(value)
        except ValueError:
            return value
        return read if math.isfinite(read) else value
    return value


def unknown_setting(path: str, known: Iterable[str]) -> UnknownName:
    """The error for a setting that isn't there."""
    return unknown_name("setting", path, known)


@functools.cache
def _all_hints(owner: type[Settings]) -> dict[str, Any]:
    return typing.get_type_hints(owner, include_extras=True)


@functools.cache
def _hints(owner: type[Settings]) -> dict[str, Any]:
    hints = _all_hints(owner)
    return {field.name: hints[field.name] for field in msgspec.structs.fields(owner)}


def constants_of(owner: type[Settings]) -> dict[str, Any]:
    """What is the same in every training, by name."""
    fields = _hints(owner)
    hints = _all_hints(owner)
    return {name: getattr(owner, name) for name in hints if name not in fields and not name.startswith("_")}


def _meta(hint: Any) -> Meta | None:
    return next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, Meta)), None)


def _wrong(error: str, kind: Any) -> str:
    """What is wrong with a value, of which msgspec says that it expected something else."""
    if "<=" in error or ">=" in error:
        return "is out of range"
    words = {
        int: "is not a whole number",
        float: "is not a number",
        bool: "is neither true nor false",
        str: "is not text",
    }
    return words.get(kind, "is not one of its values")


def _remedy(owner: type[Settings], name: str) -> str:
    setting = next(each for each in settings_of(owner) if each.name == name)
    if setting.values:
        return f"choose one of {', '.join(setting.values)}"
    if setting.low is not None and setting.high is not None:
        kind = "a whole number" if setting.whole else "a number"
        return f"give {kind} between {setting.low:g} and {setting.high:g}"
    return "give true or false" if isinstance(setting.default, bool) else "give text"
