"""Libraries that our own tests go without, since they are large or want a compiler: W&B, Surprise, LensKit.

    make outside

installs them beside the package into build/outside-venv and runs these checks there. Nothing leaves the machine: W&B
works offline.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import fedrecplus as fr
from examples.baselines import LensKitBiasedMF, SurpriseSVD

RATINGS = fr.load("synthetic:clients=120,items=60,ratings_per_client=20")


def test_wandb_keeps_settings_metrics_and_files_but_nobodys_ratings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    seen: dict[str, Any] = {}

    class Seen(fr.WandB):
        def end(self, result: Any) -> None:
            seen.update(config=dict(self.run.config), summary=dict(self.run.summary), folder=Path(self.run.dir))
            super().end(result)

    training, test = fr.split(RATINGS, 0)
    config = fr.assign(fr.preset("fedmf"), ["server.rounds=6", "evaluation.every=2"])
    run = fr.train(training, test, config, out=tmp_path / "run", callbacks=[Seen("trials")])
    assert seen["config"]["server.rounds"] == 6
    assert seen["summary"]["rmse"] == pytest.approx(run.rmse)
    assert seen["summary"]["_step"] == 6
    names = {path.name for path in seen["folder"].iterdir()}
    assert {"config.toml", "metrics.jsonl", "result.json", "model.safetensors"} <= names
    assert "clients.safetensors" not in names
    [log] = seen["folder"].parent.glob("*.wandb")
    assert log.stat().st_size > 0


@pytest.mark.parametrize("model", [SurpriseSVD, LensKitBiasedMF])
def test_models_of_other_libraries_beat_the_mean_in_a_comparison(model: Any) -> None:
    found = fr.compare(RATINGS, ["fedrec+", model()], folds=2)
    assert found.mean(model.__name__) < found.mean("global-mean")
