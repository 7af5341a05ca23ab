"""The CUDA kernels of the parts, by name, and the note that a part has none."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import warnings
from types import ModuleType

from fedrecplus.config import Choice
from fedrecplus.errors import EngineWarning
from fedrecplus.parts import KINDS, built_in


def kernel_of(choice: Choice) -> ModuleType | None:
    """The CUDA kernel of a chosen part; none where it has none for these options."""
    if choice.rule not in built_in(KINDS[choice.kind]):
        return None
    found = _own(choice.kind, choice.rule.replace("-", "_"))
    handles = getattr(found, "handles", None)
    return found if handles is None or handles(choice.options) else None


@functools.cache
def _own(kind: str, name: str) -> ModuleType | None:
    path = f"fedrecplus.engines.cuda.{kind}"
    if importlib.util.find_spec(path) is None or importlib.util.find_spec(f"{path}.{name}") is None:
        return None
    return importlib.import_module(f"{path}.{name}")


@functools.cache
def say_on_processor(kind: str, rule: str) -> None:
    """Say once that a rule runs through the fast engine."""
    text = f"{kind}.rule = {rule!r} has no CUDA kernel for these settings: it runs on the processor"
    warnings.warn(text, EngineWarning, stacklevel=2)
