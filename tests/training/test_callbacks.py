"""Callbacks: when they are called, stopping early, and trackers against the real libraries."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import fedrecplus as fr
from fedrecplus.errors import UserError
from tests.small_data import small_ratings

TRAINING, TEST = fr.split(small_ratings(clients=40), 0)
CONFIG = fr.assign(fr.preset("fedmf"), ["server.rounds=6", "evaluation.every=2"])


class Noting(fr.Callback):
    def __init__(self, stop_after: int = 99) -> None:
        self.told: list[tuple[Any, ...]] = []
        self.stop_after, self.at = stop_after, 0

    def start(self, config: fr.Config, rounds_done: int, metrics: Sequence[Mapping[str, Any]]) -> None:
        self.told.append(("start", rounds_done, len(metrics)))

    def round(self, number: int, rounds: int) -> None:
        self.at = number
        self.told.append(("round", number, rounds))

    def metrics(self, number: int, figures: Mapping[str, Any]) -> None:
        self.told.append(("metrics", number, figures["rmse"]))

    def files(self, folder: Path, result: Mapping[str, Any]) -> None:
        assert (folder / "model.safetensors").exists()
        self.told.append(("files", folder))

    def end(self, result: Mapping[str, Any]) -> None:
        self.told.append(("end", result["rmse"]))

    def wants_stop(self) -> bool:
        return self.at >= self.stop_after


def test_a_callback_is_told_rounds_metrics_and_files_in_order_and_changes_nothing(tmp_path: Path) -> None:
    noting = Noting()
    run = fr.train(TRAINING, TEST, CONFIG, out=tmp_path / "run", callbacks=[noting])
    assert [what for what, *_ in noting.told] == [
        *("start", "metrics", "round", "metrics", "round", "round", "metrics", "round", "round", "metrics", "round"),
        *("files", "end"),
    ]
    assert noting.told[-3:] == [("round", 6, 6), ("files", tmp_path / "run"), ("end", run.rmse)]
    assert fr.train(TRAINING, TEST, CONFIG).rmse == run.rmse
    without = Noting()
    assert fr.train(TRAINING, TEST, CONFIG, callbacks=[without]).rmse == run.rmse
    assert [what for what, *_ in without.told[-2:]] == ["round", "end"]


def test_a_training_that_is_ended_early_has_the_model_of_that_round() -> None:
    config = fr.assign(fr.preset("fedrec"), ["server.rounds=6"])  # its steps don't depend on how many are to come
    run = fr.train(TRAINING, TEST, config, callbacks=[Noting(stop_after=3)])
    short = fr.train(TRAINING, TEST, fr.change(config, "server.rounds", 3))
    assert run.result["rounds"] == 3
    assert run.rmse == short.rmse


def test_patience_counts_evaluations_without_gain() -> None:
    watch = fr.EarlyStopping(patience=2, least_gain=0.01)
    stops = []
    for number, rmse in enumerate([1.0, 0.9, 0.895, 0.91, 0.5], 1):
        watch.metrics(number, {"rmse": rmse})
        stops.append(watch.wants_stop())
    assert stops == [False, False, False, True, False]
    assert (watch.best, watch.best_round) == (0.5, 5)


def test_stopping_early_ends_a_training() -> None:
    fit, validation = fr.validation_cut(TRAINING)
    run = fr.train(fit, validation, CONFIG, callbacks=[fr.EarlyStopping(patience=1, least_gain=10.0)])
    assert run.result["rounds"] == 2  # rounds 1 and 2 are evaluated
    assert fr.evaluate(run, fit, TEST).rmse is not None


def test_patience_survives_a_kill(tmp_path: Path) -> None:
    watch = fr.EarlyStopping(patience=3, least_gain=10.0)
    how: dict[str, Any] = {"out": tmp_path, "checkpoint_seconds": 0.0}
    rounds = iter(range(100))
    with pytest.raises(KeyboardInterrupt):
        fr.train(TRAINING, TEST, CONFIG, **how, callbacks=[watch], stop=lambda: next(rounds) >= 3)
    again, noting = fr.EarlyStopping(patience=3, least_gain=10.0), Noting()
    run = fr.train(TRAINING, TEST, CONFIG, **how, resume=True, callbacks=[again, noting])
    assert noting.told[0] == ("start", 4, 3)
    assert again.waited == 3
    assert run.result["rounds"] == 6


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: fr.EarlyStopping(patience=0), "1 or more"),
        (lambda: fr.EarlyStopping(figure="rsme"), "did you mean 'rmse'"),
        (lambda: fr.train(TRAINING, TEST, CONFIG, callbacks=[print]), "is no callback"),  # type: ignore[list-item]
    ],
)
def test_what_cannot_be_is_said(make: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        make()


def test_a_bar_shows_rounds_and_the_error() -> None:
    shown = io.StringIO()
    bar = fr.ProgressBar(Console(file=shown, force_terminal=True, width=100))
    run = fr.train(TRAINING, TEST, CONFIG, callbacks=[bar])
    assert "6/6" in shown.getvalue()
    assert f"RMSE {run.rmse:.4f}" in shown.getvalue()


@pytest.mark.filterwarnings("ignore")  # of the library's own
def test_tensorboard_can_read_what_is_written(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = fr.train(TRAINING, TEST, CONFIG, callbacks=[fr.TensorBoard(tmp_path)])
    events = accumulator.EventAccumulator(str(tmp_path)).Reload()
    points = events.Tensors("rmse")
    assert [point.step for point in points] == [1, 2, 4, 6]
    assert points[-1].tensor_proto.float_val[0] == pytest.approx(run.rmse)


@pytest.mark.filterwarnings("ignore")  # of the library's own
def test_mlflow_keeps_settings_metrics_and_files_but_nobodys_ratings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    run = fr.train(TRAINING, TEST, CONFIG, out=tmp_path / "run", callbacks=[fr.MLflow("trials")])
    client = mlflow.MlflowClient()
    [kept] = client.search_runs([client.get_experiment_by_name("trials").experiment_id])
    assert kept.data.params["server.rounds"] == "6"
    assert kept.data.metrics["rmse"] == pytest.approx(run.rmse)
    assert [point.step for point in client.get_metric_history(kept.info.run_id, "rmse")] == [1, 2, 4, 6]
    names = {file.path for file in client.list_artifacts(kept.info.run_id)}
    assert names == {"config.toml", "metrics.jsonl", "result.json", "model.safetensors"}
    assert kept.info.status == "FINISHED"


@pytest.mark.parametrize(
    ("module", "make"),
    [
        ("wandb", lambda: fr.WandB("project")),
        ("mlflow", lambda: fr.MLflow()),
        ("tensorboard.summary", lambda: fr.TensorBoard("logs")),
    ],
)
def test_a_missing_library_is_said_before_training(module: str, make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match="pip install"):
        make()
