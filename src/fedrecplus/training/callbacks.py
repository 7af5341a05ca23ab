"""What may look on while a training runs: one protocol, a progress bar, and stopping early.

>>> class Printer(Callback):
...     def metrics(self, number, figures):
...         print(number, sorted(figures)[:2])
>>> Printer().metrics(10, {"rmse": 0.9, "mae": 0.7})
10 ['mae', 'rmse']
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedrecplus.config import Config, flat, to_tables
from fedrecplus.errors import UserError, unknown_name

if TYPE_CHECKING:
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


def silent_progress(_: Step) -> None:
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


_FILES = ("config.toml", "metrics.jsonl", "result.json", "model.safetensors")
"""what is handed to a tracker: never ``clients.safetensors``, which holds everybody's ratings and weights"""


class TensorBoard(Callback):
    """Metrics as scalars, for ``tensorboard --logdir FOLDER``."""

    def __init__(self, folder: str | Path) -> None:
        self.writer = _imported("tensorboard.summary", "tensorboard").Writer(str(folder))

    def metrics(self, number: int, figures: Mapping[str, Any]) -> None:
        """Write a point of each curve."""
        for name, value in _numbers(figures).items():
            self.writer.add_scalar(name, value, number)
        self.writer.flush()

    def end(self, result: Mapping[str, Any]) -> None:
        """Close the file."""
        self.writer.close()


class MLflow(Callback):
    """Settings, metrics and files of a run, in the tracking store that MLflow is set to.

    The clients' private parts stay where they are.
    """

    def __init__(self, experiment: str | None = None, run_name: str | None = None) -> None:
        self.mlflow = _imported("mlflow", "mlflow-skinny")
        self.experiment, self.run_name, self.run = experiment, run_name, None

    def start(self, config: Config, rounds_done: int, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Begin a run there, once."""
        if self.run is None:
            if self.experiment is not None:
                self.mlflow.set_experiment(self.experiment)
            self.run = self.mlflow.start_run(run_name=self.run_name or config.algorithm)
            self.mlflow.log_params(flat(to_tables(config)))

    def metrics(self, number: int, figures: Mapping[str, Any]) -> None:
        """Write a point of each curve."""
        self.mlflow.log_metrics(_numbers(figures), step=number)

    def files(self, folder: Path, result: Mapping[str, Any]) -> None:
        """Keep the files that are nobody's secret."""
        for name in _FILES:
            self.mlflow.log_artifact(str(folder / name))

    def end(self, result: Mapping[str, Any]) -> None:
        """End the run there."""
        self.mlflow.end_run()
        self.run = None


class WandB(Callback):
    """Settings, metrics and files of a run in Weights & Biases; ``options`` are those of ``wandb.init``.

    The clients' private parts stay where they are.
    """

    def __init__(self, project: str, **options: Any) -> None:
        self.wandb = _imported("wandb", "wandb")
        self.project, self.options = project, options
        self.run: Any = None

    def start(self, config: Config, rounds_done: int, metrics: Sequence[Mapping[str, Any]]) -> None:
        """Begin a run there, once."""
        if self.run is None:
            named = {"name": config.algorithm, **self.options}
            self.run = self.wandb.init(project=self.project, config=flat(to_tables(config)), **named)

    def metrics(self, number: int, figures: Mapping[str, Any]) -> None:
        """Write a point of each curve."""
        self.run.log(_numbers(figures), step=number, commit=True)

    def files(self, folder: Path, result: Mapping[str, Any]) -> None:
        """Keep the files that are nobody's secret."""
        for name in _FILES:
            self.run.save(str(folder / name), base_path=str(folder), policy="now")

    def end(self, result: Mapping[str, Any]) -> None:
        """End the run there."""
        self.run.finish()
        self.run = None


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    numeric = {name: value for name, value in figures.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numeric.items() if name != "round"}


def _imported(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"{package} can't be imported: {error}", f"pip install {package}") from None
