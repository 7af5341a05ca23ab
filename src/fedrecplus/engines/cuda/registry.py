"""The CUDA kernels of the parts, by name, and the note that a part has none."""

from __future__ import annotations

import functools
import warnings
from types import ModuleType
from typing import Any

from fedrecplus.engines.fast.registry import module_if_there
from fedrecplus.errors import EngineWarning
from fedrecplus.parts import Part


def kernel_of(part: Part[Any]) -> ModuleType | None:
    """The CUDA kernel of a chosen part; none where it has none for these options."""
    if not part.is_built_in:
        return None
    found = module_if_there(f"fedrecplus.engines.cuda.{part.kind}", part.rule.replace("-", "_"))
    handles = getattr(found, "handles", None)
    return found if handles is None or handles(part.settings) else None


@functools.cache
def say_on_processor(kind: str, rule: str) -> None:
    """Say once that a rule runs through the fast engine."""
    text = f"{kind}.rule = {rule!r} has no CUDA kernel for these settings: it runs on the processor"
    warnings.warn(text, EngineWarning, stacklevel=2)
