"""A release is noted before it is made; a kill hides none, and what comes again with other noise is paid for again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import Config, assign, preset, with_budget
from fedrecplus.data import split
from fedrecplus.engines import Engine, Problem, RoundReport, SimulationState
from fedrecplus.errors import UserError
from fedrecplus.training import train
from fedrecplus.training.privacy import LEDGER, budget_spent, privacy_lines
from tests.small_data import small_ratings
from tests.training.test_resume import StopAfter

TRAINING, TEST = split(small_ratings(clients=40), 0)


def config(*changes: str, noise: str = "central") -> Config:
    budget = with_budget(preset("fedmf"), 10.0, 1e-5, noise, TRAINING.clients)
    return assign(budget, ["server.rounds=4", "model.factors=2", *changes])


def releases(folder: Path) -> list[str]:
    return [line["release"] for line in privacy_lines(folder / LEDGER)]


@pytest.mark.parametrize("noise", ["central", "distributed"])
def test_the_ledger_adds_up_to_the_result(tmp_path: Path, noise: str) -> None:
    run = train(TRAINING, TEST, config(noise=noise), out=tmp_path)
    privacy = run.result["privacy"]
    assert releases(tmp_path) == ["statistics", *(f"round {number}" for number in range(1, 5))]
    assert budget_spent(privacy_lines(tmp_path / LEDGER), 1e-5) == pytest.approx(privacy["epsilon"])
    assert 9.9 < privacy["epsilon"] <= 10.0
    neighbouring = {"central": "add-or-remove-one", "distributed": "zero-out-one"}[noise]
    assert (privacy["unit"], privacy["neighbouring"], privacy["delta"]) == ("user", neighbouring, 1e-5)
    assert privacy["seeded_noise"] is False
    assert len(privacy["noise_multiplier"]) == 4
    assert run.result["statistics"]["source"] == "secure-sum"
    assert 0.0 < run.result["statistics"]["epsilon"] < 10.0
    assert json.loads((tmp_path / "result.json").read_text())["privacy"] == privacy


def test_a_run_without_noise_claims_nothing(tmp_path: Path) -> None:
    run = train(TRAINING, TEST, assign(preset("fedmf"), ["server.rounds=2"]), out=tmp_path)
    assert run.result["privacy"] is None
    assert run.result["statistics"] == {"source": "participants", "epsilon": None}
    assert not (tmp_path / LEDGER).exists()


@pytest.fixture
def averages(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """What each round knew of the items; the third one that is begun is killed."""
    real, begun = Engine.round, []

    def killed(self: Engine, problem: Problem, state: SimulationState) -> tuple[SimulationState, RoundReport]:
        begun.append(problem.public.average)
        if len(begun) == 3:
            raise RuntimeError("killed")
        return real(self, problem, state)

    monkeypatch.setattr(Engine, "round", killed)
    return begun


@pytest.mark.usefixtures("averages")
def test_a_kill_before_a_release_finds_it_noted(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="killed"):
        train(TRAINING, TEST, config(), out=tmp_path)
    assert releases(tmp_path) == ["statistics", "round 1", "round 2", "round 3"]


def test_a_run_that_goes_on_repeats_no_release(tmp_path: Path, averages: list[np.ndarray]) -> None:
    with pytest.raises(RuntimeError, match="killed"):
        train(TRAINING, TEST, config(), out=tmp_path)
    parts = train(TRAINING, TEST, config(), out=tmp_path, resume=True)
    names = [f"round {number}" for number in (1, 2, 3, 3, 4)]
    assert releases(tmp_path) == ["statistics", *names], "every round has a checkpoint, so one comes again"
    np.testing.assert_array_equal(averages[-1], averages[0], err_msg="statistics are released once")
    assert parts.result["privacy"]["epsilon"] > 10.0, "and is paid for again"
    assert parts.result["privacy"]["epsilon"] == pytest.approx(budget_spent(privacy_lines(tmp_path / LEDGER), 1e-5))


def test_ratings_that_are_kept_back_for_validation_cost_no_second_release_of_statistics(
    tmp_path: Path, averages: list[np.ndarray]
) -> None:
    """Where the statistics alone have a budget, a part of the ratings is kept back, of which others could be made."""
    settings = ["server.rounds=4", "model.factors=2", "model.interaction_factors=2", "channel.least_cohort=5"]
    own = assign(
        preset("fedrec+secure"),
        [*settings, "server.held_back=0.3", "statistics.source=secure-sum", "statistics.epsilon=5"],
    )
    with pytest.raises(RuntimeError, match="killed"):
        train(TRAINING, TEST, own, out=tmp_path, checkpoint_seconds=0.0)
    train(TRAINING, TEST, own, out=tmp_path, resume=True)
    assert releases(tmp_path) == ["statistics"]
    for later in averages[1:]:
        np.testing.assert_array_equal(later, averages[0], err_msg="statistics are released once")


def test_what_was_released_before_the_first_checkpoint_counts_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        train(TRAINING, TEST, config(), out=tmp_path, stop=StopAfter(2))
    (tmp_path / "checkpoint.safetensors").unlink()
    train(TRAINING, TEST, config(), out=tmp_path, resume=True)
    assert releases(tmp_path).count("statistics") == 2
    assert releases(tmp_path).count("round 1") == 2


def test_statistics_with_a_budget_of_their_own_have_a_line(tmp_path: Path) -> None:
    own = assign(preset("fedmf"), ["server.rounds=2", "statistics.source=secure-sum", "statistics.epsilon=1"])
    for number in range(2):
        train(TRAINING, TEST, own, out=tmp_path, overwrite=number > 0)
    assert releases(tmp_path) == ["statistics", "statistics"], "the second is other noise over the same people"
    assert budget_spent(privacy_lines(tmp_path / LEDGER), 1e-5) > 1.3


def test_a_resumed_run_with_seeded_noise_repeats_its_releases_and_pays_once(tmp_path: Path) -> None:
    seeded = config("seeded_noise=true")
    whole = train(TRAINING, TEST, seeded, out=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(TRAINING, TEST, seeded, out=tmp_path / "parts", stop=StopAfter(2))
    (tmp_path / "parts" / "checkpoint.safetensors").unlink()  # killed before it was written: all rounds come again
    halfway = releases(tmp_path / "parts")
    parts = train(TRAINING, TEST, seeded, out=tmp_path / "parts", resume=True)
    assert halfway == ["statistics", "round 1", "round 2"]
    assert parts.rmse == whole.rmse
    assert (tmp_path / "parts" / LEDGER).read_text() == (tmp_path / "whole" / LEDGER).read_text()
    models = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("parts", "whole")]
    assert models[0] == models[1]


def test_overwriting_a_run_does_not_take_back_what_was_published(tmp_path: Path) -> None:
    train(TRAINING, TEST, config(), out=tmp_path)
    train(TRAINING, TEST, config(), out=tmp_path, overwrite=True)
    lines = privacy_lines(tmp_path / LEDGER)
    assert len({line["run"] for line in lines}) == 2
    assert budget_spent(lines, 1e-5) > 13.0


def test_a_line_that_a_kill_cut_short_does_not_swallow_the_next(tmp_path: Path) -> None:
    train(TRAINING, TEST, config(), out=tmp_path)
    text = (tmp_path / LEDGER).read_text()
    (tmp_path / LEDGER).write_text(text[:-30])
    (tmp_path / "result.json").unlink()
    train(TRAINING, TEST, config(), out=tmp_path, resume=True)
    assert releases(tmp_path)[-1] == "round 4"


def test_a_training_that_diverges_is_not_tried_again(tmp_path: Path) -> None:
    wild = config("server_optimizer.learning_rate=100", "model.curvature=0.01", "model.item_prior=1e-6")
    with pytest.raises(UserError, match="spend the privacy budget again"):
        train(TRAINING, TEST, wild, out=tmp_path)
    assert "round 1" in releases(tmp_path)


def test_a_training_that_goes_on_adds_to_what_was_spent(tmp_path: Path) -> None:
    first = train(TRAINING, None, config(), out=tmp_path / "first")
    second = train(TRAINING, None, config(), out=tmp_path / "second", start=first)
    third = train(TRAINING, None, config(), out=tmp_path / "third", start=tmp_path / "second")
    one, two, three = (run.result["privacy"]["epsilon"] for run in (first, second, third))
    assert 9.9 < one <= 10.0 < two < three < 30.0
    for run, times in ((second, 2), (third, 3)):
        assert run.folder is not None
        lines, privacy = privacy_lines(run.folder / LEDGER), run.result["privacy"]
        assert len(lines) == times * 5
        assert budget_spent(lines, 1e-5) == pytest.approx(privacy["epsilon"])
        assert privacy["epsilon_of_this_training"] == one
    assert third.result["privacy"]["epsilon_before"] == pytest.approx(two)


def test_a_training_with_a_budget_goes_on_from_none_that_spent_who_knows_what(tmp_path: Path) -> None:
    plain = train(TRAINING, None, assign(preset("fedmf"), ["server.rounds=2", "model.factors=2"]), out=tmp_path / "a")
    noisy = train(TRAINING, None, config(), out=tmp_path / "b")
    for start in (plain, noisy.recommender):
        with pytest.raises(UserError, match="no ledger tells what it has spent"):
            train(TRAINING, None, config(), start=start)
    other = config(noise="distributed")
    with pytest.raises(UserError, match="add-or-remove-one"):
        train(TRAINING, None, other, start=tmp_path / "b")


def test_a_training_that_goes_on_and_is_killed_notes_what_was_spent_before_once(tmp_path: Path) -> None:
    train(TRAINING, None, config(), out=tmp_path / "first")
    stop = StopAfter(2)
    with pytest.raises(KeyboardInterrupt):
        train(TRAINING, None, config(), out=tmp_path / "second", start=tmp_path / "first", stop=stop)
    train(TRAINING, None, config(), out=tmp_path / "second", start=tmp_path / "first", resume=True)
    assert len(releases(tmp_path / "second")) == 10
