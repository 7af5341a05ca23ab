"""The layout of a server's home, and how the home of an earlier version gets it: one step for each layout.

A step can be taken again: one that was killed leaves what was there until the new is whole. The number is written last.
Who was admitted before there was `nodes.json` is found in Flower's database when the server starts (``flower.roster``).
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fedrecplus import __version__
from fedrecplus.errors import UserError
from fedrecplus.training.model_files import MODEL, SharedModel
from fedrecplus.training.registry import Registry

MODELS, OFFERED = "models", "model"
"""the registry of published models; what was there before it: the folder of the one that nodes were offered"""


def _from_1(home: Path) -> None:
    """The model that nodes were offered becomes the first of a registry; one that can't be read is left there."""
    if not (home / OFFERED / MODEL).exists():
        return
    with contextlib.suppress(UserError):
        if not Registry(home / MODELS).begun:
            Registry(home / MODELS).take(lambda: _offered(home / OFFERED))
        shutil.rmtree(home / OFFERED)


def _offered(folder: Path) -> tuple[SharedModel, dict[str, Any]]:
    model = SharedModel.read(folder)
    when = datetime.fromtimestamp((folder / MODEL).stat().st_mtime, UTC).isoformat(timespec="seconds")
    return model, {
        "when": when,
        "figures": {"algorithm": model.config.algorithm, "items": len(model.item_ids)},
        "made": {},
    }


STEPS: tuple[Callable[[Path], None], ...] = (_from_1,)
"""the n-th makes layout n + 1 of layout n"""
LAYOUT = 1 + len(STEPS)


def check_layout(home: Path, layout: int) -> None:
    """Refuse a home of a later version, before anything in it is touched."""
    if layout > LAYOUT:
        raise UserError(
            f"{home} has layout {layout}; fedrecplus {__version__} knows layouts up to {LAYOUT}",
            "upgrade fedrecplus here: pip install --upgrade 'fedrecplus[deploy]'; the home is left as it is",
        )


def bring_up_to_date(home: Path, layout: int) -> None:
    """Take the steps that a home of an earlier version needs; whoever calls this notes the new number then."""
    check_layout(home, layout)
    for step in STEPS[layout - 1 :]:
        step(home)
