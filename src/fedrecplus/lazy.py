"""Packages that import a name when it is first used: `fedrecplus --help` must not wait for numba and polars."""

from __future__ import annotations

import functools
import sys
from importlib import import_module
from typing import Any


def lazily(package: str) -> None:
    """Let a package offer what its ``__init__`` imports under ``if TYPE_CHECKING``: there each name stands once."""
    door: Any = sys.modules[package]

    def find(name: str) -> object:
        homes = _homes(package)
        if name == "__all__":
            return sorted(homes)
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # a module of the package
            return import_module(f"{package}.{name}")
        value = getattr(import_module(homes[name]), name)
        setattr(door, name, value)
        return value

    door.__getattr__ = find
    door.__dir__ = lambda: sorted({*vars(door), *_homes(package)} - {"TYPE_CHECKING", "lazily"})


@functools.cache
def _homes(package: str) -> dict[str, str]:
    """Name → the module that it is imported from, for those who read types alone."""
    import ast  # here: who only asks for help needs no door

    door: Any = sys.modules[package]
    blocks = [line for line in ast.parse(door.__loader__.get_source(package)).body if isinstance(line, ast.If)]
    lines = [line for block in blocks if ast.unparse(block.test) == "TYPE_CHECKING" for line in block.body]
    return {name.name: str(line.module) for line in lines if isinstance(line, ast.ImportFrom) for name in line.names}
