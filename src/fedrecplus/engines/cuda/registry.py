"""The CUDA kernels of the parts, by name, and the note that a part has none."""

from __future__ import annotations

import functools
import warnings
from types import ModuleType

from fedrecplus.config import Choice
from fedrecplus.engines.fast.registry import module_if_there
from fedrecplus.errors import EngineWarning
from fedrecplus.parts import KINDS, built_in


def kernel_of(choice: Choice) -> ModuleType | None:
    """The CUDA kernel of a chosen part; none where it has none for these options."""
    if choice.rule not in built_in(KINDS[choice.kind]):
        return None
    found = module_if_there(f"fedrecplus.engines.cuda.{choice.kind}", choice.rule.replace("-", "_"))
    handles = getattr(found, "handles", None)
    return found if handles is None or handles(choice.options) else None


@functools.cache
def say_on_processor(kind: str, rule: str) -> None:
    """Say once that a rule runs through the fast engine."""
    text = f"{kind}.rule = {rule!r} has no CUDA kernel for these settings: it runs on the processor"
    warnings.warn(text, EngineWarning, stacklevel=2)
