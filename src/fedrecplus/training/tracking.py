"""Trainings in TensorBoard, MLflow and Weights & Biases. Each library is imported when its callback is made."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, to_tables
from fedrecplus.errors import UserError
from fedrecplus.training.callbacks import Callback

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
            self.mlflow.log_params(flat_settings(config))

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
            self.run = self.wandb.init(project=self.project, config=flat_settings(config), **named)

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


def flat_settings(config: Config) -> dict[str, Any]:
    """Every setting by its path.

    >>> flat_settings(Config())["model.rule"]
    'mf'
    """
    flat: dict[str, Any] = {}
    for name, value in to_tables(config).items():
        flat |= {f"{name}.{inner}": one for inner, one in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    numeric = {name: value for name, value in figures.items() if isinstance(value, int | float)}
    return {name: float(value) for name, value in numeric.items() if name != "round"}


def _imported(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(f"{package} can't be imported: {error}", f"pip install {package}") from None
