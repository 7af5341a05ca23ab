"""The kernels of the parts, by name: ``pseudo_items/similar.py`` here is that of ``parts/pseudo_items/similar.py``.

A part from outside names the module of its kernel, if it has one, as ``KERNEL``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType
from typing import Any

from fedrecplus.parts import Part


def kernel_of(part: Part[Any]) -> ModuleType | None:
    """The kernel of a chosen part; none where it has none for these options, and its own file must do."""
    if part.is_built_in:
        found = module_if_there(f"fedrecplus.engines.fast.{part.kind}", part.rule.replace("-", "_"))
    else:
        found = None if part.KERNEL is None else importlib.import_module(part.KERNEL)
    handles = getattr(found, "handles", None)
    return found if handles is None or handles(part.settings) else None


@functools.cache
def module_if_there(package: str, name: str) -> ModuleType | None:
    """A module of a package; none where either is missing."""
    if importlib.util.find_spec(package) is None or importlib.util.find_spec(f"{package}.{name}") is None:
        return None
    return importlib.import_module(f"{package}.{name}")
