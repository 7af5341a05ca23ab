"""How far something is that takes its time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

Progress = Callable[[str, int, int], None]
"""Called with what is being fetched or made, how much of it is there and how much there will be (0: unknown)."""


@contextlib.contextmanager
def progress_bar(console: Console | None = None) -> Iterator[Progress]:
    """A bar that appears when there is something to wait for and goes away with it, on standard error.

    >>> with progress_bar() as progress:
    ...     progress("ml-1m.zip", 10, 100)
    """
    from rich.console import Console  # here: who shows nothing goes without it
    from rich.progress import BarColumn, Progress as Bar, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    bar = Bar(*columns, console=console or Console(stderr=True), transient=True)
    tasks: dict[str, TaskID] = {}

    def report(what: str, done: int, total: int) -> None:
        if not tasks:
            bar.start()
        if what not in tasks:
            tasks[what] = bar.add_task(what, total=total or None)
        bar.update(tasks[what], completed=done)

    try:
        yield report
    finally:
        if tasks:  # stopping a bar that was never shown would leave an empty line
            bar.stop()
