"""Trials side by side: the same errors as alone, one study, and nobody left behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

from fedrecplus.config import assign, preset
from fedrecplus.errors import UserError
from fedrecplus.experiments.search_space import apply, parse_dimensions
from fedrecplus.experiments.tuning import Moment, tune
from fedrecplus.experiments.validation import cut, evaluations
from tests.small_data import small_ratings

pytest.importorskip("optuna")

CUT = cut(small_ratings(clients=40))
START = assign(preset("fedmf"), ["server.rounds=8", "evaluation.every=2", "model.factors=4"])
DIMENSIONS = parse_dimensions(["client.learning_rate=0.01..0.2:log", "model.factors=2..6"], START)


def test_trials_side_by_side_have_the_errors_that_they_have_alone(tmp_path: Path) -> None:
    threads = os.environ.get("FEDRECPLUS_THREADS")
    found = tune([CUT], START, DIMENSIONS, trials=7, workers=2, storage=tmp_path / "study.db")
    assert [trial.number for trial in found.trials] == list(range(7))
    assert apply(START, found.trials[0].settings) == START
    for trial in found.trials:
        curve = dict(evaluations(CUT, apply(START, trial.settings)))
        assert trial.rmse in (None, curve[8])
        assert trial.best_round is not None
        assert trial.best_round_rmse == curve[trial.best_round]
    assert multiprocessing.active_children() == []
    assert os.environ.get("FEDRECPLUS_THREADS") == threads


def test_divergence_and_impossible_settings_are_told_across_processes() -> None:
    start = assign(START, ["pseudo_items.rule=random"])
    search = ["client.learning_rate=0.1,1e5", "pseudo_items.redraw=true,false", "virtual_ratings.refresh=false,true"]
    found = tune([CUT], start, parse_dimensions(search, start), trials=16, workers=2)
    told = [trial.why for trial in found.trials if trial.state == "failed" and trial.why]
    assert any("diverged in round" in why for why in told)
    assert any("drawn anew" in why for why in told)
    assert found.config.client.learning_rate == 0.1


def test_a_worker_that_dies_is_said_and_the_study_goes_on(tmp_path: Path) -> None:
    storage, started = tmp_path / "study.db", []

    def kill_one(moment: Moment) -> None:
        started.append(moment.trial.number)
        if moment.ended == 0 and moment.round == 2:
            for child in multiprocessing.active_children():
                assert child.pid
                os.kill(child.pid, signal.SIGKILL)

    with pytest.raises(UserError, match="a worker process has died"):
        tune([CUT], START, DIMENSIONS, trials=4, workers=2, storage=storage, progress=kill_one)
    assert set(started) == {0, 1}
    found = tune([CUT], START, DIMENSIONS, trials=4, workers=2, storage=storage)
    assert [trial.number for trial in found.trials] == [0, 1, 2, 3]
    assert apply(START, found.trials[0].settings) == START


def test_a_wish_to_stop_ends_all_workers_and_keeps_what_is_done(tmp_path: Path) -> None:
    storage, ended = tmp_path / "study.db", [0]

    def count(moment: Moment) -> None:
        ended[0] = moment.ended

    with pytest.raises(KeyboardInterrupt):
        tune(
            [CUT], START, DIMENSIONS, trials=50, workers=2, storage=storage, progress=count, stop=lambda: ended[0] >= 3
        )
    assert multiprocessing.active_children() == []
    kept = tune([CUT], START, DIMENSIONS, trials=1, storage=storage).trials
    assert len(kept) == ended[0] >= 3


def test_what_is_wrong_with_the_program_is_not_taken_for_a_failed_trial() -> None:
    broken = assign(START, ["engine=reference"])
    object.__setattr__(broken, "engine", "no engine")  # past the check, as only a mistake in the code could be
    object.__setattr__(broken, "precision", "no number")
    with pytest.raises(TypeError, match="no number"):
        tune([CUT], broken, DIMENSIONS, trials=2, workers=2)
