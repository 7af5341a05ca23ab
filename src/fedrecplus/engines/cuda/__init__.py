"""All clients at once on a graphics card: the parts' own functions in torch, kernels in Triton.

Nothing here is imported before somebody asks for the engine: torch takes seconds to load.
"""

from __future__ import annotations

import importlib.util
import os

from fedrecplus.config import Config
from fedrecplus.engines.interface import Engine
from fedrecplus.errors import UserError


def engine(config: Config) -> Engine:
    """The engine, in the precision that the config asks for; an error where there is no card or no torch."""
    if not _installed():
        raise UserError(
            f"engine = {config.engine!r} needs torch and triton, which are not installed",
            "pip install 'fedrecplus[cuda]', or set engine=fast",
        )
    if not has_card():
        raise UserError(
            f"engine = {config.engine!r} needs an NVIDIA card that torch can use, and there is none",
            "set engine=fast, or engine=auto, which takes a card where there is one",
        )
    from fedrecplus.engines.cuda.cuda_engine import CudaEngine  # here: torch and Triton take seconds to load

    return CudaEngine(precision_of(config), deterministic=config.deterministic)


def precision_of(config: Config) -> str:
    """The precision of tables on a card: 64 bits where roundings of V would decide which items clients choose."""
    return "float64" if config.chooses_by_V else config.precision


def has_card() -> bool:
    """Whether kernels can run here: on a card or, for tests, in Triton's interpreter (TRITON_INTERPRET=1)."""
    if not _installed():
        return False
    if os.environ.get("TRITON_INTERPRET") == "1":
        return True
    import torch  # here: see above

    return bool(torch.cuda.is_available())


def _installed() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("torch", "triton"))
