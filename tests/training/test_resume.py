"""A run that was stopped goes on to the very same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrecplus.config import Config, assign, preset
from fedrecplus.data import split
from fedrecplus.errors import UserError
from fedrecplus.training import RunFolder, train
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=40)
TRAINING, TEST = split(RATINGS, 0)
SHORT = ["server.rounds=9", "evaluation.every=2"]


class StopAfter:
    """Asks a training to stop after some rounds."""

    def __init__(self, rounds: int) -> None:
        self.left = rounds

    def __call__(self) -> bool:
        self.left -= 1
        return self.left == 0


def stopped_after(rounds: int, config: Config, out: Path, resume: bool = False) -> None:
    """Begin a training, or go on with it, and stop it."""
    with pytest.raises(KeyboardInterrupt):
        train(TRAINING, TEST, config, out=out, resume=resume, stop=StopAfter(rounds))


def lines_without_time(folder: Path) -> list[dict]:
    return [{name: value for name, value in line.items() if name != "seconds"} for line in RunFolder(folder).metrics()]


@pytest.mark.parametrize("name", ["pmf", "fedrec++", "fedrec+private"])
@pytest.mark.parametrize(
    "more", [[], ["server_optimizer.rule=adam", "server_optimizer.learning_rate=0.01", "cohort.fraction=0.5"]]
)
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path: Path, name: str, more: list[str]) -> None:
    config = assign(preset(name), [*SHORT, *more])
    whole = train(TRAINING, TEST, config, out=tmp_path / "whole")
    for rounds in (3, 2):
        stopped_after(rounds, config, tmp_path / "parts", resume=True)
    parts = train(TRAINING, TEST, config, out=tmp_path / "parts", resume=True)
    apart = {"seconds": 0, "made": None}
    assert {**parts.result, **apart} == {**whole.result, **apart}
    assert "resumed" not in whole.result["made"]
    assert parts.result["made"]["when"] <= parts.result["made"]["resumed"]["when"]
    for file in ("model.safetensors", "clients.safetensors"):
        assert (tmp_path / "parts" / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    assert lines_without_time(tmp_path / "parts") == lines_without_time(tmp_path / "whole")


def test_metrics_after_the_checkpoint_and_a_line_cut_short_come_again(tmp_path: Path) -> None:
    config = assign(preset("fedmf"), SHORT)
    train(TRAINING, TEST, config, out=tmp_path / "whole")
    stopped_after(3, config, tmp_path / "parts")
    with (tmp_path / "parts" / "metrics.jsonl").open("a") as file:
        file.write('{"round": 4, "rmse": 9.9}\n{"round": 6, "rm')
    train(TRAINING, TEST, config, out=tmp_path / "parts", resume=True)
    assert lines_without_time(tmp_path / "parts") == lines_without_time(tmp_path / "whole")


def test_a_finished_run_resumes_to_itself(tmp_path: Path) -> None:
    config = assign(preset("fedmf"), SHORT)
    run = train(TRAINING, TEST, config, out=tmp_path)
    again = train(TRAINING, TEST, config, out=tmp_path, resume=True)
    assert again.result == run.result
    assert again.recommender.top_items(1, 4) == run.recommender.top_items(1, 4)


def test_an_unfinished_run_is_not_begun_anew_by_accident_nor_with_other_settings_or_ratings(tmp_path: Path) -> None:
    config = assign(preset("fedmf"), SHORT)
    stopped_after(2, config, tmp_path)
    with pytest.raises(UserError, match="unfinished run") as error:
        train(TRAINING, TEST, config, out=tmp_path)
    assert "--resume" in error.value.remedy
    with pytest.raises(UserError, match=r"model.factors: \d+ then, 8 now"):
        train(TRAINING, TEST, assign(config, ["model.factors=8"]), out=tmp_path, resume=True)
    with pytest.raises(UserError, match="other ratings"):
        train(*split(RATINGS, 1), config, out=tmp_path, resume=True)
