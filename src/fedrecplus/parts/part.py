"""A part: a choice of one kind with its settings, and how a name finds it.

A file is a choice. ``parts/virtual_ratings/user_average.py`` holds the one class that is the choice ``user-average`` of
the kind ``virtual_ratings``. Files whose name begins with an underscore are shared by the choices of their kind and are
none themselves. A name with a dot is the import path of a module outside the package; entry points of the group
``fedrecplus.<kind>`` add names of their own.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
import sys
import typing
from abc import ABC
from types import ModuleType
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import msgspec

from fedrecplus.errors import UserError, unknown_name
from fedrecplus.settings import Settings, read_settings

S = TypeVar("S", bound=Settings)


class Part(ABC, Generic[S]):
    """A choice and its settings, generic in their class. A class that derives from it directly is a kind of part."""

    kind: ClassVar[str]
    """the section of a config that chooses it; the kind says it"""
    label: ClassVar[str]
    """in error messages; the kind says it"""
    settings_type: ClassVar[type[Settings]] = Settings
    """the class that stands between the brackets: ``class Similar(PseudoItems[SetSettings])``"""
    NEEDS: ClassVar[frozenset[str]] = frozenset()
    """what it looks at that is not always provided: ``features``, ``last_step``, ``averages``, ``uploads``"""

    def __init__(self, settings: S | None = None, rule: str = "") -> None:
        self.settings = cast(S, self.settings_type()) if settings is None else settings
        self.rule = rule or _own_rule(type(self))

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for generic in cls.__dict__.get("__orig_bases__", ()):
            origin, arguments = typing.get_origin(generic), typing.get_args(generic)
            if isinstance(origin, type) and issubclass(origin, Part):
                cls.settings_type = _settings_class(cls, arguments[0], cast(Any, origin).__parameters__[0].__bound__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.settings!r})"

    @property
    def _identity(self) -> tuple[str, str, S]:
        return self.kind, self.rule, self.settings

    @classmethod
    def choose(cls, rule: str, **settings: Any) -> Self:
        """The part of this kind behind a name; an unknown name is an error that names the nearest one."""
        chosen = part_class(cls, rule)
        return cast(Self, chosen(msgspec.structs.replace(chosen.settings_type(), **settings), rule))

    def with_rule(self, rule: str, source: str) -> Self:
        """Another part of the kind; settings that both have keep their values."""
        chosen = part_class(kind_of(type(self)), rule)
        known = chosen.settings_type.__struct_fields__
        kept = {name: value for name, value in self.values.items() if name in known}
        return cast(Self, chosen(read_settings(chosen.settings_type, kept, source, f"{self.kind}."), rule))

    def with_settings(self, **changes: Any) -> Self:
        """The same part with other settings, which are not checked again."""
        return type(self)(msgspec.structs.replace(self.settings, **changes), self.rule)

    @property
    def values(self) -> dict[str, Any]:
        """Its settings by name."""
        return msgspec.structs.asdict(self.settings)

    @property
    def is_built_in(self) -> bool:
        """Whether it comes with the package."""
        return self.rule in built_in(kind_of(type(self)))

    @property
    def summary(self) -> str:
        """The first line of its file's documentation."""
        return summary_of(type(self))

    def check_with(self, config: Any) -> None:
        """Refuse what it can't be together with, in a whole ``Config``."""


def summary_of(chosen: type[Part[Any]]) -> str:
    """What a part says of itself: the first line of its file's documentation."""
    return (sys.modules[chosen.__module__].__doc__ or "").strip().split("\n")[0]


def choices(kind: type[Part[Any]]) -> tuple[str, ...]:
    """The names of all parts of a kind, those of installed packages included."""
    return tuple(sorted({*built_in(kind), *_installed(kind.kind)}))


def is_outside(name: str) -> bool:
    """Whether a name is the import path of somebody's own part."""
    return "." in name


@functools.cache
def kind_of(chosen: type[Part[Any]]) -> type[Part[Any]]:
    """The kind of a part's class: the one of its bases that derives from ``Part`` directly."""
    return next(base for base in chosen.__mro__ if Part in base.__bases__)


@functools.cache
def built_in(kind: type[Part[Any]]) -> tuple[str, ...]:
    """The names of the parts that come with the package."""
    names = (module.name for module in pkgutil.iter_modules(sys.modules[kind.__module__].__path__))
    return tuple(sorted(name.replace("_", "-") for name in names if not name.startswith("_")))


@functools.cache
def part_class(kind: type[Part[Any]], rule: str) -> type[Part[Any]]:
    """The class behind the name of a part."""
    if is_outside(rule):
        return _the_class(kind, rule, import_outside(kind.label, rule, rule))
    if rule in built_in(kind):
        return _the_class(kind, rule, importlib.import_module(f"{kind.__module__}.{rule.replace('-', '_')}"))
    if rule in _installed(kind.kind):
        return _the_class(kind, rule, import_outside(kind.label, rule, _installed(kind.kind)[rule]))
    raise unknown_name(kind.label, rule, choices(kind))


def import_outside(label: str, name: str, path: str) -> ModuleType:
    """A module of somebody's own; what goes wrong in it is an error of its own."""
    try:
        return importlib.import_module(path)
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{label} {name!r} can't be imported: {type(error).__name__}: {error}",
            f"give the import path of a module, as in `python -c 'import {path}'`",
        ) from None


def classes_in(kind: type[Part[Any]], module: ModuleType) -> list[type[Part[Any]]]:
    """The classes of a kind that a module defines, unfinished ones included."""
    defined = (
        value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__
    )
    return [value for value in defined if issubclass(value, kind)]


def _the_class(kind: type[Part[Any]], rule: str, module: ModuleType) -> type[Part[Any]]:
    """The one class of a module that is a part of the kind."""
    classes = classes_in(kind, module)
    whole = [value for value in classes if not inspect.isabstract(value)]
    if len(whole) == 1:
        return whole[0]
    remedy = f"see docs/extending.md, and the files in {kind.__module__} for examples"
    if whole:
        names = " and ".join(value.__name__ for value in whole)
        raise UserError(f"{rule} is no {kind.label}: {names} are {len(whole)} of them, and a file is one", remedy)
    if not classes:
        raise UserError(f"{rule} is no {kind.label}: it has no class that derives from {kind.__name__}", remedy)
    missing = " and no ".join(sorted(classes[-1].__abstractmethods__))
    raise UserError(f"{rule} is no {kind.label}: its {classes[-1].__name__} has no {missing}", remedy)


@functools.cache
def _installed(kind: str) -> dict[str, str]:
    from importlib.metadata import entry_points  # here: it brings the reader of e-mails, and few have such parts

    return {point.name: point.value for point in entry_points(group=f"fedrecplus.{kind}")}


def _own_rule(chosen: type[Part[Any]]) -> str:
    """The name of a class that nobody chose by a name: its file's."""
    package, _, name = chosen.__module__.rpartition(".")
    return name.replace("_", "-") if package == kind_of(chosen).__module__ else chosen.__module__


def _settings_class(chosen: type[Part[Any]], argument: Any, bound: type[Settings]) -> type[Settings]:
    """The settings between the brackets; those of the kind where a type variable or nothing in particular stands."""
    if argument is Any:
        return Settings
    if isinstance(argument, TypeVar):
        return cast("type[Settings]", argument.__bound__)
    if not (isinstance(argument, type) and issubclass(argument, bound)):
        raise UserError(
            f"{chosen.__module__}: its Settings lack what every {chosen.label} has",
            f"derive them from {bound.__module__.partition('._')[0]}.{bound.__name__}",
        )
    return argument
