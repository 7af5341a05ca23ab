"""The search for settings: on validation ratings alone, the same each time, and through divergence and kills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.data import Ratings, Scale, Split, split, validation_cut
from fedrecplus.errors import UserError
from fedrecplus.experiments import Moment, Objective, Trial, Tuned, parse_dimensions, tune, tuning_cut, with_values
from fedrecplus.experiments.validation import evaluations
from fedrecplus.files import locked
from fedrecplus.training import train
from tests.small_data import small_ratings

optuna = pytest.importorskip("optuna")

RATINGS = small_ratings(clients=40)
START = assign(
    Config(),
    [
        "server.rounds=8",
        "evaluation.every=2",
        "model.factors=4",
        "model.learning_rate=0.2",
        "server_optimizer.rule=momentum",
    ],
)
DIMENSIONS = parse_dimensions(
    ["model.learning_rate=0.01..0.5:log", "model.factors=2..6", "server_optimizer.rule=sgd,momentum"], START
)


def search(ratings: Ratings = RATINGS, start: Config = START, trials: int = 8, **options: Any) -> Tuned:
    return tune([tuning_cut(ratings, seed=start.seed)], start, DIMENSIONS, trials=trials, **options)


def timeless(trials: list[Trial]) -> list[dict[str, Any]]:
    return [{**asdict(trial), "seconds": 0} for trial in trials]


@pytest.fixture(scope="module")
def tuned() -> Tuned:
    return search()


def test_the_first_trial_is_the_preset(tuned: Tuned) -> None:
    first = tuned.trials[0]
    assert first.settings == {"model.learning_rate": 0.2, "model.factors": 4, "server_optimizer.rule": "momentum"}
    fitted, held_out = validation_cut(split(RATINGS, 0)[0])
    assert first.value == train(fitted, held_out, START).rmse


def test_the_winner_has_the_least_error_and_is_what_was_tried(tuned: Tuned) -> None:
    assert tuned.best.value == min(trial.value for trial in tuned.trials if trial.value is not None)
    assert tuned.leaders(1) == [tuned.best]
    again = list(evaluations(tuning_cut(RATINGS), tuned.config))
    assert again[-1] == (8, tuned.best.value)
    assert min(again, key=lambda point: point[1]) == (tuned.best.best_round, tuned.best.best_round_value)


def test_the_test_fold_is_never_looked_at(tuned: Tuned) -> None:
    in_test = Split().numbers(RATINGS, 5, 0) == 0
    codes = np.where(in_test, RATINGS.scale.levels - 1 - RATINGS.codes, RATINGS.codes).astype(RATINGS.codes.dtype)
    poisoned = replace(RATINGS, codes=codes)
    assert not np.array_equal(poisoned.codes, RATINGS.codes)
    assert timeless(search(poisoned).trials) == timeless(tuned.trials)


def test_a_cut_has_no_rating_of_the_test_fold() -> None:
    found = tuning_cut(RATINGS, fold=2, share=0.25)
    training, test = split(RATINGS, 2)
    assert len(found.fitted) + len(found.held_out) == len(training)
    pairs = [set(zip(part.client_of_rating, part.items, strict=True)) for part in (found.fitted, found.held_out, test)]
    assert not (pairs[0] | pairs[1]) & pairs[2]
    assert not pairs[0] & pairs[1]


def test_more_trials_are_added_to_a_study_and_fewer_run_none(tuned: Tuned, tmp_path: Path) -> None:
    storage = tmp_path / "study.db"
    search(storage=storage, trials=3)
    assert timeless(search(storage=storage).trials) == timeless(tuned.trials)
    ran: list[Moment] = []
    assert len(search(storage=storage, trials=2, progress=ran.append).trials) == 8
    assert ran == []


def test_a_study_with_another_task_is_refused(tmp_path: Path) -> None:
    storage = tmp_path / "study.db"
    search(storage=storage, trials=1)
    with pytest.raises(UserError, match="other data"):
        search(small_ratings(clients=41), storage=storage, trials=1)
    with pytest.raises(UserError, match="other settings"):
        search(start=assign(START, ["model.rule=biased-mf"]), storage=storage, trials=1)
    with pytest.raises(UserError, match="other search"):
        tune([tuning_cut(RATINGS)], START, DIMENSIONS[:1], trials=1, storage=storage)


def test_a_file_that_is_no_study_is_refused_and_kept(tmp_path: Path) -> None:
    storage = tmp_path / "letter.db"
    storage.write_text("Dear all,\n" * 200)
    with pytest.raises(UserError, match="holds no study"):
        search(storage=storage, trials=1)
    assert storage.read_text() == "Dear all,\n" * 200


def test_two_searches_on_one_study_at_once_are_refused(tmp_path: Path) -> None:
    storage = tmp_path / "study.db"
    with locked(tmp_path / ".study.db.lock", "", ""), pytest.raises(UserError, match="another process"):
        search(storage=storage)


def test_a_trial_that_diverges_has_failed_and_the_search_goes_on(tmp_path: Path) -> None:
    dimensions = parse_dimensions(["model.learning_rate=0.1,1e5"], START)
    found = tune([tuning_cut(RATINGS)], START, dimensions, trials=6, storage=tmp_path / "study.db")
    failed = [trial for trial in found.trials if trial.state == "failed"]
    assert failed
    assert all(trial.why is not None and "diverged in round" in trial.why for trial in failed)
    assert found.config.model.settings.learning_rate == 0.1


def test_settings_that_can_t_be_together_have_failed() -> None:
    start = assign(START, ["pseudo_items.rule=random"])
    dimensions = parse_dimensions(["pseudo_items.redraw=true,false", "virtual_ratings.refresh=false,true"], start)
    found = tune([tuning_cut(RATINGS)], start, dimensions, trials=12)
    assert any(trial.why and "drawn anew" in trial.why for trial in found.trials if trial.state == "failed")


def test_a_search_in_which_all_failed_says_why() -> None:
    start = assign(START, ["model.learning_rate=1e5"])
    dimensions = parse_dimensions(["model.learning_rate=1e5..1e6:log"], start)
    with pytest.raises(UserError, match="all 3 trials failed; the last: diverged in round"):
        tune([tuning_cut(RATINGS)], start, dimensions, trials=3)


def test_bad_trials_are_pruned_before_their_last_round() -> None:
    dimensions = parse_dimensions(["model.learning_rate=1e-6..0.5:log"], START)
    rounds: dict[int, int] = {}

    def note(moment: Moment) -> None:
        rounds[moment.trial.number] = max(rounds.get(moment.trial.number, 0), moment.round)

    found = tune([tuning_cut(RATINGS)], START, dimensions, trials=15, progress=note)
    pruned = [trial for trial in found.trials if trial.state == "pruned"]
    assert pruned
    assert all(2 <= rounds[trial.number] < 8 and trial.value is None for trial in pruned)


def test_several_data_sets_count_alike_whatever_their_scale() -> None:
    percent = replace(small_ratings(clients=30, seed=3, scale=Scale(0.0, 100.0, 25.0)), name="percent")
    sets = [tuning_cut(RATINGS), tuning_cut(percent)]
    found = tune(sets, START, DIMENSIONS, trials=2)
    assert set(found.best.by_dataset) == {"small", "percent"}
    assert found.best.value == pytest.approx(np.mean(list(found.best.by_dataset.values())))
    on_own_scale = train(sets[1].fitted, sets[1].held_out, START).rmse
    assert found.trials[0].by_dataset["percent"] == pytest.approx(on_own_scale * 4 / 100)
    with pytest.raises(UserError, match="twice"):
        tune([sets[0], sets[0]], START, DIMENSIONS, trials=1)


def test_cuts_of_one_data_set_are_averaged_before_data_sets_are() -> None:
    percent = replace(small_ratings(clients=30, seed=3, scale=Scale(0.0, 100.0, 25.0)), name="percent")
    cuts = [tuning_cut(RATINGS, cut_seed=1), tuning_cut(RATINGS, cut_seed=2), tuning_cut(percent)]
    found = tune(cuts, START, DIMENSIONS, trials=1)
    small = [list(evaluations(one, START))[-1][1] for one in cuts[:2]]
    assert small[0] != small[1]
    assert found.best.by_dataset["small"] == pytest.approx(np.mean(small))
    assert found.best.value == pytest.approx((np.mean(small) + found.best.by_dataset["percent"]) / 2)


def test_cut_seeds_draw_other_ratings_of_the_same_training_part() -> None:
    one, other = tuning_cut(RATINGS, seed=4, cut_seed=0), tuning_cut(RATINGS, seed=4, cut_seed=1)
    training = split(RATINGS, 0, seed=4)[0]
    held_out = [set(zip(part.client_of_rating, part.items, strict=True)) for part in (one.held_out, other.held_out)]
    assert held_out[0] != held_out[1]
    assert held_out[0] | held_out[1] <= set(zip(training.client_of_rating, training.items, strict=True))


def test_importances_are_shares_of_the_searched_settings() -> None:
    found = search(start=assign(START, ["evaluation.every=8"]), trials=11)  # none is pruned: complete ones count
    assert set(found.importances) == {dimension.name for dimension in DIMENSIONS}
    assert sum(found.importances.values()) == pytest.approx(1)


def test_progress_tells_of_every_evaluation_and_the_best_so_far() -> None:
    told: list[Moment] = []
    found = search(trials=2, progress=told.append)
    first = [moment for moment in told if moment.trial.number == 0]
    assert [moment.round for moment in first] == [0, 2, 4, 6, 8, 0]
    assert first[0].best is None
    assert first[-1].trial == first[-1].best == found.trials[0]


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "optuna", None)
    with pytest.raises(UserError, match=r"fedrecplus\[tune\]"):
        search(trials=1)


def test_trials_side_by_side_have_the_errors_that_they_have_alone(tmp_path: Path) -> None:
    calm = parse_dimensions(["model.learning_rate=0.01..0.2:log", "model.factors=2..6"], START)
    found = tune([tuning_cut(RATINGS)], START, calm, trials=7, workers=2, storage=tmp_path / "study.db")
    assert [trial.number for trial in found.trials] == list(range(7))
    assert with_values(START, found.trials[0].settings) == START
    assert len({tuple(trial.settings.values()) for trial in found.trials}) == 7, "no two processes draw alike"
    for trial in found.trials:
        curve = dict(evaluations(tuning_cut(RATINGS), with_values(START, trial.settings)))
        assert trial.value in (None, curve[8])
        assert trial.best_round is not None
        assert trial.best_round_value == curve[trial.best_round]


def test_what_is_wrong_with_the_program_is_not_taken_for_a_failed_trial() -> None:
    broken = assign(START, ["engine=fast"])
    object.__setattr__(broken, "precision", "no number")  # past the check, as only a mistake in the code could be
    with pytest.raises(TypeError, match="no number"):
        search(start=broken, trials=2)


def after(rounds: int) -> Callable[[], bool]:
    """Wants to stop after so many rounds."""
    left = iter(range(rounds))
    return lambda: next(left, None) is None


def test_a_ranking_measure_is_maximised_and_nothing_of_the_test_fold_is_looked_at(tmp_path: Path) -> None:
    one, storage = tuning_cut(RATINGS), tmp_path / "study.db"
    found = tune([one], START, DIMENSIONS, trials=6, objective="ndcg@5", storage=storage)
    complete = [trial for trial in found.trials if trial.value is not None]
    assert found.best.value == max(trial.value for trial in complete)
    assert [trial.value for trial in found.leaders()] == sorted((t.value for t in complete), reverse=True)[:5]
    curve = dict(evaluations(one, found.config, objective=Objective("ndcg@5")))
    assert curve[8] == found.best.value
    assert found.best.best_round_value == max(curve.values())
    run = train(one.fitted, one.held_out, found.config)
    assert run.ranking["ndcg@5"] == pytest.approx(found.best.value)
    assert found.to_dict()["objective"] == "ndcg@5"
    with pytest.raises(UserError, match="other objective"):
        tune([one], START, DIMENSIONS, trials=7, storage=storage)


def test_objectives_that_mean_nothing_are_refused() -> None:
    with pytest.raises(UserError, match="no objective"):
        tune([tuning_cut(RATINGS)], START, DIMENSIONS, trials=1, objective="ndgc@10")
    likes = replace(RATINGS, codes=np.full_like(RATINGS.codes, 4))
    with pytest.raises(UserError, match="no RMSE to choose by"):
        tune([tuning_cut(likes)], START, DIMENSIONS, trials=1)
    assert tune([tuning_cut(likes)], START, DIMENSIONS, trials=1, objective="recall@10").best.value is not None


@pytest.mark.parametrize("how", ["last:1", "time:0.2", "cold-users", "cold-items"])
def test_a_cut_leaves_out_what_the_split_will_ask_for(how: str) -> None:
    times = np.random.default_rng(0).permutation(len(RATINGS))
    ratings, way = replace(RATINGS, timestamps=times), Split.parse(how)
    training, test = split(ratings, how=way)
    found = tuning_cut(ratings, how=way)
    assert len(found.fitted) + len(found.held_out) == len(training)
    if how == "last:1":
        assert np.diff(found.held_out.indptr).max() == 1
        assert found.held_out.timestamps.min() >= 0
    elif how.startswith("time"):
        assert found.fitted.timestamps.max() < found.held_out.timestamps.min() <= test.timestamps.min()
    else:
        counts = (lambda r: np.diff(r.indptr)) if how == "cold-users" else (lambda r: r.item_counts())
        assert not (counts(found.fitted) * counts(found.held_out)).any()
