"""The choices of a training: a file is a choice, and owns everything about itself.

``parts/virtual_ratings/user_average.py`` is the choice ``user-average`` of the kind ``virtual_ratings``. Files whose
name begins with an underscore are shared by the choices of their kind and are none themselves. A name with a dot is the
import path of a module outside the package; entry points of the group ``fedrecplus.<kind>`` add names of their own.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from dataclasses import dataclass
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from fedrecplus.errors import UserError, unknown_name
from fedrecplus.settings import Settings


@dataclass(frozen=True)
class Kind:
    """One kind of part: where the built-in ones are, and what each must have."""

    name: str
    package: str
    functions: tuple[tuple[str, ...], ...]
    """of each inner tuple, a part has one at least"""
    told: str
    """in error messages"""
    shared: tuple[str, str] = ("", "")
    """parts with this function have the options of this class of the package, and maybe more"""

    def shared_settings(self, module: ModuleType) -> type[Settings]:
        """The options that a part can't do without: whoever runs rounds asks for them."""
        function, name = self.shared
        if not function or not hasattr(module, function):
            return Settings
        found: type[Settings] = getattr(importlib.import_module(self.package), name)
        return found


@dataclass(frozen=True)
class Part:
    """A choice: its module, and what the module says of itself."""

    kind: str
    name: str
    module: ModuleType

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    @property
    def settings_type(self) -> type[Settings]:
        """The class of its own options; a part with none but those of its kind need not write one."""
        found: type[Settings] | None = getattr(self.module, "Settings", None)
        if found is not None or self.kind not in KINDS:
            return found or Settings
        return KINDS[self.kind].shared_settings(self.module)

    @property
    def summary(self) -> str:
        """The first line of its documentation."""
        return (self.module.__doc__ or "").strip().split("\n")[0]

    def needs(self, what: str) -> bool:
        """Whether it looks at something that is not always provided: see ``docs/architecture.md``."""
        return what in getattr(self.module, "NEEDS", ())

    def has(self, function: str) -> bool:
        """Whether it has a function that parts of its kind may go without."""
        return hasattr(self.module, function)


_OF_MODELS = (
    "user_columns", "start_items", "start_users", "local_training",
    "predict", "item_columns", "user_weights", "fold_in",
)  # fmt: skip

KINDS = {
    kind.name: kind
    for kind in (
        Kind("model", "fedrecplus.parts.model", tuple((name,) for name in _OF_MODELS), "model"),
        Kind("encoder", "fedrecplus.parts.encoder", (("encode",),), "encoder"),
        Kind(
            "pseudo_items",
            "fedrecplus.parts.pseudo_items",
            (("select",),),
            "pseudo item rule",
            ("select", "SetSettings"),
        ),
        Kind(
            "virtual_ratings",
            "fedrecplus.parts.virtual_ratings",
            (("fill",),),
            "virtual rating rule",
            ("fill", "FillSettings"),
        ),
        Kind(
            "aggregation",
            "fedrecplus.parts.aggregation",
            (("weight", "aggregate"),),
            "aggregation rule",
            ("weight", "WeightSettings"),
        ),
        Kind(
            "server_optimizer",
            "fedrecplus.parts.server_optimizer",
            (("step",), ("MOMENTS",)),
            "server optimizer",
            ("step", "RateSettings"),
        ),
        Kind("channel", "fedrecplus.parts.channel", (("VIEW",),), "channel"),
        Kind("privacy", "fedrecplus.parts.privacy", (("UNIT",),), "differential privacy mechanism"),
    )
}
"""the kinds that a config chooses from, each a section of it"""


VIEWS = ("uploads", "sums", "nothing")
"""what a channel may show the server"""


def choices(kind: str | Kind) -> tuple[str, ...]:
    """The names of all parts of a kind, those of installed packages included.

    >>> "similar" in choices("pseudo_items")
    True
    """
    kind = KINDS[kind] if isinstance(kind, str) else kind
    return tuple(sorted({*built_in(kind), *_installed(kind.name)}))


def part(kind: str | Kind, name: str) -> Part:
    """The part behind a name; an unknown name is an error that names the nearest one."""
    return _part(KINDS[kind] if isinstance(kind, str) else kind, name)


def kinds_of(path: str) -> tuple[str, ...]:
    """The kinds that a module outside the package can be a part of, by its functions."""
    module = _import_outside("rule", path, path)
    found = [kind.name for kind in KINDS.values() if not _missing(kind, module)]
    if not found:
        raise UserError(f"{path} is no part: it has no function of one", "see docs/architecture.md: A part is one file")
    return tuple(found)


def is_outside(name: str) -> bool:
    """Whether a name is the import path of somebody's own part."""
    return "." in name


@functools.cache
def built_in(kind: Kind) -> tuple[str, ...]:
    """The names of the parts that come with the package."""
    package = importlib.import_module(kind.package)
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name.replace("_", "-") for name in names if not name.startswith("_")))


@functools.cache
def _installed(kind: str) -> dict[str, str]:
    return {point.name: point.value for point in entry_points(group=f"fedrecplus.{kind}")}


@functools.cache
def _part(kind: Kind, name: str) -> Part:
    if is_outside(name):
        return _checked(kind, name, _import_outside(kind.told, name, name))
    if name in built_in(kind):
        return Part(kind.name, name, importlib.import_module(f"{kind.package}.{name.replace('-', '_')}"))
    if name in _installed(kind.name):
        return _checked(kind, name, _import_outside(kind.told, name, _installed(kind.name)[name]))
    raise unknown_name(kind.told, name, choices(kind))


def _import_outside(told: str, name: str, path: str) -> ModuleType:
    try:
        return importlib.import_module(path)
    except (Exception, SystemExit) as error:
        raise UserError(
            f"{told} {name!r} can't be imported: {type(error).__name__}: {error}",
            f"give the import path of a module, as in `python -c 'import {path}'`",
        ) from None


def _checked(kind: Kind, name: str, module: ModuleType) -> Part:
    for alternatives in _missing(kind, module):
        raise UserError(
            f"{name} is no {kind.told}: it has no {' or '.join(alternatives)}",
            f"see docs/extending.md, and the files in {kind.package} for examples",
        )
    if kind.name == "channel" and module.VIEW not in VIEWS:
        raise UserError(f"{name}: VIEW = {module.VIEW!r} says not what the server sees", f"write {' or '.join(VIEWS)}")
    shared = kind.shared_settings(module)
    settings = getattr(module, "Settings", shared)
    if not (isinstance(settings, type) and issubclass(settings, shared)):
        home = "fedrecplus.settings" if shared is Settings else kind.package
        raise UserError(
            f"{name}: its Settings lack what every {kind.told} has", f"derive them from {home}.{shared.__name__}"
        )
    return Part(kind.name, name, module)


def _missing(kind: Kind, module: ModuleType) -> list[tuple[str, ...]]:
    """The functions that a part of the kind must have and the module hasn't."""
    return [names for names in kind.functions if not any(hasattr(module, name) for name in names)]
