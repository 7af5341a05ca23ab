"""Discovery of parts: a file is a choice.

The file ``pseudo_items/user_average.py`` is the choice ``user-average`` of the room ``pseudo_items``. Files whose name
begins with an underscore are shared by the choices of their room and are no choice themselves.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from types import ModuleType

from fedrecplus.errors import unknown_name


@functools.cache
def choices(room: str) -> tuple[str, ...]:
    """The names of all parts in a room.

    >>> "similar" in choices("pseudo_items")
    True
    """
    package = importlib.import_module(f"fedrecplus.{room}")
    names = (module.name for module in pkgutil.iter_modules(package.__path__))
    return tuple(sorted(name.replace("_", "-") for name in names if not name.startswith("_")))


@functools.cache
def part(room: str, name: str) -> ModuleType:
    """The module behind a choice; an unknown name is an error that names the nearest one."""
    if name not in choices(room):
        raise unknown_name(room.replace("_", " ").rstrip("s") + " rule", name, choices(room))
    return importlib.import_module(f"fedrecplus.{room}.{name.replace('-', '_')}")
