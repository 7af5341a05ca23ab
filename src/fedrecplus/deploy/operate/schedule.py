"""Training again and again: each run goes on with the model of the one before it, with whoever is there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from fedrecplus.errors import UserError
from fedrecplus.training import RunFolder

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_SHORTEST = 10.0


def seconds_of(text: str) -> float:
    """A length of time.

    >>> seconds_of("1d"), seconds_of("90m")
    (86400.0, 5400.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None or float(found[1]) * _UNITS[found[2]] < _SHORTEST:
        raise UserError(f"{text!r} is no length of time", "write 12h, 1d or 1w; ten seconds at least")
    return float(found[1]) * _UNITS[found[2]]


def next_run(out: Path) -> tuple[Path, Path | None]:
    """The folder of the next run, which may have begun, and that of the finished one before it."""
    numbers = [int(path.name) for path in out.iterdir() if path.name.isdigit()] if out.exists() else []
    last = max(numbers, default=0)
    finished = [number for number in sorted(numbers) if RunFolder(out / f"{number:04d}").finished]
    before = out / f"{finished[-1]:04d}" if finished else None
    return out / f"{last + (last in finished or not last):04d}", before


def train_again(
    out: Path, every: float, begun: Callable[[Path], bool], begin: Callable[[Path, Path | None], None],
    run: Callable[[Path], None], say: Callable[[str], None], times: int | None = None,
) -> None:  # fmt: skip
    """Train, wait until the next time, train on; for ever, or so many ``times``.

    A run that fails is said and gone on with at the next time: nodes may be away today and here tomorrow.
    """
    done = 0
    while times is None or done < times:
        began = time.time()
        folder, before = next_run(out)
        if not begun(folder):
            begin(folder, before)
        try:
            run(folder)
        except UserError as error:
            say(f"{folder}: {error.for_shell}")
        done += 1
        if times is None or done < times:
            pause = max(0.0, began + every - time.time())
            say(f"the next training begins in {pause / 3600:.1f} h")
            time.sleep(pause)
