"""The kernels of the parts, by name: ``pseudo_items/similar.py`` here is that of ``parts/pseudo_items/similar.py``.

A part from outside names the module of its kernel, if it has one, as ``KERNEL``.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from types import ModuleType

from fedrecplus.config import Choice
from fedrecplus.parts import KINDS, built_in


def kernel_of(choice: Choice) -> ModuleType | None:
    """The kernel of a chosen part; none where it has none for these options, and its own file must do."""
    if choice.rule in built_in(KINDS[choice.kind]):
        found = module_if_there(f"fedrecplus.engines.fast.{choice.kind}", choice.rule.replace("-", "_"))
    else:
        path = getattr(choice.part.module, "KERNEL", None)
        found = None if path is None else importlib.import_module(path)
    handles = getattr(found, "handles", None)
    return found if handles is None or handles(choice.options) else None


@functools.cache
def module_if_there(package: str, name: str) -> ModuleType | None:
    """A module of a package; none where either is missing."""
    if importlib.util.find_spec(package) is None or importlib.util.find_spec(f"{package}.{name}") is None:
        return None
    return importlib.import_module(f"{package}.{name}")
