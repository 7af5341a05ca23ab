"""What may look on while a training runs: one protocol, a progress bar, and stopping early.

>>> class Printer(Callback):
...     def metrics(self, number, figures):
...         print(number, sorted(figures)[:2])
>>> Printer().metrics(10, {"rmse": 0.9, "mae": 0.7})
10 ['mae', 'rmse']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrecplus.config import Config
from fedrecplus.errors import UserError, unknown_name

if TYPE_CHECKING:  # a training without a bar, such as a device's, must not wait for rich
    from rich.console import Console
    from rich.progress import Progress as Bar

_WATCHED = ("rmse", "mae", "nmse")


@dataclass(frozen=True)
class Step:
    """One thing worth telling: a finished round, perhaps with its error, or a message for the user."""

    round: int
    rounds: int
    rmse: float | None = None
    """on the test ratings, where this round was evaluated"""
    message: str | None = None
    """something the user should read, such as a restart after divergence"""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """what each worker of a cluster took for this round; nothing where there is none"""


Progress = Callable[[Step], None]


def silent(_: Step) -> None:
    """Tell nobody."""


class Callback:
    """Looks on while a training runs. Each method may be left as it is; none changes a training but ``wants_stop``."""

    def start(self, config: Config, rounds_done: int, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Before the first round, or before the first one after a checkpoint, with the metrics lines until there.

        After an attempt that diverged it is called again, and all begins anew.
        """

    def round(self, number: int, rounds: int) -> None:
        """After each round: its number, from 1, and how many there shall be."""

    def metrics(self, number: int, figures: Mapping[str, Any]) -> None:
        """After a round that was evaluated: errors, seconds and traffic so far, as in ``metrics.jsonl``."""

    def files(self, folder: Path, result: Mapping[str, Any]) -> None:
        """At the end, where there is a run folder: the folder, with all its files, and what ``result.json`` holds."""

    def end(self, result: Mapping[str, Any]) -> None:
        """At the end, after ``files``; also without a run folder."""

    def wants_stop(self) -> bool:
        """Whether the training shall end after this round, with the model that it has."""
        return False


class EarlyStopping(Callback):
    """Ends a training when a figure hasn't got better for so many evaluations.

    It looks at the ratings that ``train`` evaluates on. Give it validation ratings there, and judge the model on
    others: a test set that decides when to stop is no test set any more. A server whose steps shrink towards the last
    round (a cooldown, as in ``fedmf`` and ``fedrec+``) has not cooled down when it is stopped: fewer ``server.rounds``
    are better there.

        fit, validation = fr.validation_cut(training)
        run = fr.train(fit, validation, "fedrec+", callbacks=[fr.EarlyStopping(patience=3)])
        fr.evaluate(run, fit, test).rmse

    >>> EarlyStopping(patience=2, figure="mae").wants_stop()
    False
    """

    def __init__(self, patience: int = 3, least_gain: float = 0.0, figure: str = "rmse") -> None:
        if patience < 1:
            raise UserError(f"patience of {patience} evaluations", "give 1 or more")
        if figure not in _WATCHED:
            raise unknown_name("figure", figure, _WATCHED)
        self.patience, self.least_gain, self.figure = patience, least_gain, figure
        self.best, self.best_round, self.waited = float("inf"), 0, 0

    def start(self, config: Config, rounds_done: int, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Begin anew, or where the run was left."""
        self.best, self.best_round, self.waited = float("inf"), 0, 0
        for line in metrics:
            self.metrics(line["round"], line)

    def metrics(self, number: int, figures: Mapping[str, Any]) -> None:
        """Note whether it has got better."""
        value = figures[self.figure]
        if value is None:
            raise UserError(f"likes alone have no {self.figure} to stop by", "train without EarlyStopping")
        if value < self.best - self.least_gain:
            self.best, self.best_round, self.waited = value, number, 0
        else:
            self.waited += 1

    def wants_stop(self) -> bool:
        """Whether patience is at its end."""
        return self.waited >= self.patience


class ProgressBar(Callback):
    """A bar on standard error, or below the cell of a notebook."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console
        self.bar: Bar | None = None

    def start(self, config: Config, rounds_done: int, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Show the bar."""
        from rich import console, progress

        if self.bar is not None:
            self.bar.stop()
        text = progress.TextColumn
        columns = (text("{task.description}", markup=False), progress.BarColumn(), progress.MofNCompleteColumn())
        times = (text("{task.fields[note]}"), progress.TimeElapsedColumn(), progress.TimeRemainingColumn())
        self.bar = progress.Progress(*columns, *times, console=self.console or console.Console(stderr=True))
        self.task = self.bar.add_task(config.algorithm, total=config.server.rounds, completed=rounds_done, note="")
        self.bar.start()

    def round(self, number: int, rounds: int) -> None:
        """Move it."""
        if self.bar is not None:
            self.bar.update(self.task, completed=number)

    def metrics(self, number: int, figures: Mapping[str, Any]) -> None:
        """Say the error."""
        if self.bar is not None and figures["rmse"] is not None:
            self.bar.update(self.task, note=f"RMSE {figures['rmse']:.4f}")

    def end(self, result: Mapping[str, Any]) -> None:
        """Leave it as it is."""
        if self.bar is not None:
            self.bar.stop()


def check_callbacks(callbacks: Iterable[Any]) -> tuple[Callback, ...]:
    """The callbacks, or an error for what is none."""
    checked = tuple(callbacks)
    for one in checked:
        if not isinstance(one, Callback):
            raise UserError(f"{one!r} is no callback", "give objects of classes that extend fr.Callback")
    return checked
