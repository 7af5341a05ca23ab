"""A training that begins with an earlier one's table: known items keep their rows, new items enter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.data import added
from fedrecplus.engines import SimulationState, engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.training import Fallback, RunFolder, SharedModel, continued, errors_of, predictor_of
from fedrecplus.training.heads import HeldBack
from fedrecplus.training.warm_start import Earlier

RATINGS, TEST = fr.split(fr.load("synthetic:clients=300,items=40,ratings_per_client=20,noise=0.2,factors=2"), 0)
NEW = RATINGS.item_ids[[0, 3, 11]]
MODELS = ["fedmf", "fedrec+secure"]


def short(name: str, rounds: int = 6) -> fr.Config:
    return fr.assign(fr.preset(name), [f"server.rounds={rounds}", "server.cooldown=0"])


def without_new() -> fr.Ratings:
    """As a file from before the new items: it knows nothing of them, and numbers the others on."""
    frame = RATINGS.to_frame()
    return fr.from_frame(frame.filter(~frame["item"].is_in(NEW.tolist())), scale=RATINGS.scale)


@pytest.fixture(scope="module", params=MODELS)
def earlier(request: pytest.FixtureRequest) -> fr.Run:
    return fr.train(without_new(), None, short(request.param, 20))


def test_known_items_begin_with_their_rows_and_new_ones_with_what_features_predict(earlier: fr.Run) -> None:
    model = earlier.recommender.model
    problem = prepare(RATINGS, earlier.config)
    state = Earlier.of(model, earlier.config).begin(problem, engine_of(earlier.config).start(problem))
    rows = dict(zip(model.item_ids.tolist(), model.V, strict=True))
    for item, row in zip(RATINGS.item_ids.tolist(), state.server.V, strict=True):
        if item in rows:
            np.testing.assert_array_equal(row, rows[item])
    new = state.server.V[np.isin(RATINGS.item_ids, NEW)]
    assert np.isfinite(new).all()
    assert (np.abs(new).max(axis=1) > 0).all()
    assert np.abs(new).max() <= 2 * np.abs(model.V).max()


def test_few_rounds_are_enough_where_many_went_before(earlier: fr.Run) -> None:
    few = fr.change(earlier.config, "server.rounds", 1)
    warm, cold = (fr.train(RATINGS, TEST, few, start=start) for start in (earlier, None))
    assert warm.rmse < cold.rmse
    counts = {"known_items": without_new().item_count, "new_items": len(NEW)}
    assert warm.result["began_with"] == {"folder": None, **counts}
    assert cold.result["began_with"] is None


def test_the_command_line_goes_on_from_a_run_and_resumes_there(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "old.csv").write_text(without_new().to_frame().write_csv())
    (tmp_path / "new.csv").write_text(RATINGS.to_frame().write_csv())
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    scale = ["--scale", str(RATINGS.scale)]
    train = ["train", "--dataset", str(tmp_path / "old.csv"), *scale, "--algorithm", "fedmf", "--out", first]
    assert exit_code_of([*train, "--set", "server.rounds=3"]) == 0
    later = ["train", "--from", first, "--dataset", str(tmp_path / "new.csv"), *scale, "--out", second]
    assert exit_code_of(later) == 0
    assert f"began with {without_new().item_count} known items" in capsys.readouterr().out
    model, result = SharedModel.read(Path(second)), (Path(second) / "result.json").read_text()
    assert len(model.item_ids) == RATINGS.item_count
    (Path(second) / "result.json").unlink()  # as if it had been killed before its first checkpoint
    assert exit_code_of(["train", "--resume", "--out", second]) == 0
    np.testing.assert_array_equal(SharedModel.read(Path(second)).V, model.V)
    assert '"new_items": 3' in result


def test_what_came_since_is_added_and_who_left_is_taken_out(tmp_path: Path, capsys: Any) -> None:
    frame = without_new().to_frame()
    people = frame["user"].unique(maintain_order=True).to_list()
    later = RATINGS.to_frame().filter(~RATINGS.to_frame()["user"].is_in(people[20:]))
    (tmp_path / "old.csv").write_text(frame.filter(~frame["user"].is_in(people[:10])).write_csv())
    (tmp_path / "later.csv").write_text(later.write_csv())
    runs = [tmp_path / name for name in ("first", "second", "third", "fourth")]
    own = ["--dataset", str(tmp_path / "old.csv"), "--scale", str(RATINGS.scale), "--set", "channel.least_cohort=100"]
    assert exit_code_of(["train", "--algorithm", "fedrec+secure", *own, "--out", str(runs[0])]) == 0
    goes_on = ["train", "--from", str(runs[0]), "--add", str(tmp_path / "later.csv"), "--out", str(runs[1])]
    assert exit_code_of(goes_on) == 0
    assert f"began with {without_new().item_count} known items" in capsys.readouterr().out
    first, second = (fr.Recommender.load(run) for run in runs[:2])
    assert set(people[:10]) <= set(second.clients.client_ids.tolist()) - set(first.clients.client_ids.tolist())
    assert set(NEW.tolist()) <= set(second.model.item_ids.tolist()) - set(first.model.item_ids.tolist())
    assert RunFolder(runs[0]).result()["rounds"] == 17
    assert RunFolder(runs[1]).result()["rounds"] == 3
    leaves = str(people[3])
    capsys.readouterr()
    assert exit_code_of(["train", "--from", str(runs[1]), "--without", leaves, "--out", str(runs[2])]) == 0
    assert "from the difference what one person who left had rated" in capsys.readouterr().err
    counts = [fr.Recommender.load(run).model.public.popularity for run in runs[1:3]]
    tested_too = second.client(people[3]).items
    np.testing.assert_array_equal(np.flatnonzero(counts[0] - counts[1]), np.sort(tested_too), "and so it is")
    assert exit_code_of(["train", "--from", str(runs[2]), "--out", str(runs[3])]) == 0
    for run in runs[2:]:
        assert leaves not in fr.Recommender.load(run).clients.client_ids.astype(str).tolist()
        assert RunFolder(run).result()["rounds"] == 3
    third, fourth = (fr.Recommender.load(run) for run in runs[2:])
    assert second.model.config.model == third.model.config.model == fourth.model.config.model, "nothing says otherwise"
    tested = [RunFolder(run).result()["test_ratings"] for run in runs[:2]]
    assert tested[0] == tested[1], "what was tested on is trained on by none"


def test_what_came_since_is_what_no_table_was_trained_on(earlier: fr.Run) -> None:
    begun = Earlier.of(earlier.recommender, earlier.config)
    np.testing.assert_array_equal(begun.came_since(RATINGS), np.isin(RATINGS.item_ids[RATINGS.items], NEW))
    own = without_new()
    assert not begun.came_since(own).any()
    strangers = replace(own, client_ids=own.client_ids + 10**6)
    assert begun.came_since(strangers).all()


def test_what_came_since_chooses_the_head() -> None:
    before, later = fr.split(fr.load("synthetic:clients=300,items=40,ratings_per_client=20,noise=2.5,factors=2"), 1)
    config = fr.assign(short("fedrec+secure", 10), ["channel.rule=sums"])
    first, both = fr.train(before, None, config), added(before, later)
    model = first.recommender.model
    odd = replace(model, config=replace(config, model=config.model.with_settings(user_mean=0.0, public_scale=0.05)))
    begun = Earlier.of(replace(first.recommender, model=odd), config)
    problem, engine = prepare(both, config), engine_of(config)
    state, held = begun.begin(problem, engine.start(problem)), HeldBack.since(problem, begun.came_since(both))
    assert held is not None
    assert (held.until, len(held.ratings), len(held.problem.ratings)) == (0, len(later), len(before))

    def error(now: SimulationState) -> float:
        fallback, predict = Fallback.of(held.problem.ratings, config), predictor_of(engine, held.problem, now).predict
        return errors_of(held.ratings, predict, fallback).total.rmse

    chosen, sent = held.chosen(engine, state)
    assert config.model.with_head(state.server.head).settings.user_mean == 0.0, "until validation says otherwise"
    assert error(chosen) < error(state)
    assert sent > 0
    few = np.isin(both.client_of_rating, np.arange(30)) & begun.came_since(both)
    assert HeldBack.since(problem, few) is None, "too few to go by: the earlier head stays"
    run = fr.train(both, None, continued(odd, config), start=begun.model)
    assert run.result["rounds"] == 3


def test_a_run_that_goes_on_keeps_the_seed_that_cut_its_test_fold(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "old.csv").write_text(without_new().to_frame().write_csv())
    own = ["--dataset", str(tmp_path / "old.csv"), "--scale", str(RATINGS.scale)]
    first = str(tmp_path / "first")
    assert exit_code_of(["train", "--algorithm", "fedmf", *own, "--out", first, "--set", "server.rounds=2"]) == 0
    assert exit_code_of(["train", "--from", first, "--seed", "3", "--out", str(tmp_path / "second")]) == 2
    assert "leave --seed out" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (fr.preset("fedrec"), "keeps factors on devices"),
        (fr.preset("fedrec+secure"), "the settings ask for another"),
        (fr.assign(fr.preset("fedmf"), ["model.factors=7"]), "the settings ask for another"),
    ],
)
def test_what_cannot_go_on_is_refused(config: fr.Config, said: str) -> None:
    first = fr.train(without_new(), None, short("fedmf", 2))
    with pytest.raises(UserError, match=said):
        fr.train(RATINGS, None, config, start=first)


def test_other_items_are_refused_with_some_of_both() -> None:
    first = fr.train(without_new(), None, short("fedmf", 2))
    frame = RATINGS.to_frame()
    other = frame.with_columns(item=frame["item"].cast(str) + "x")
    with pytest.raises(UserError, match=r"none of these items: it has .*, the ratings .*x"):
        fr.train(other, None, short("fedmf", 2), start=first)


def test_a_training_that_cannot_begin_writes_and_overwrites_nothing(tmp_path: Path) -> None:
    config = fr.assign(short("fedmf"), ["server.rounds=2"])
    finished = fr.train(RATINGS, TEST, config, out=tmp_path / "run")
    others = RATINGS.to_frame().with_columns(item="other-" + RATINGS.to_frame()["item"].cast(str))
    for refused in (
        {"config": fr.assign(config, ["engine=cuda"])},
        {"start": tmp_path / "run", "ratings": fr.from_frame(others, scale=RATINGS.scale)},
        {"start": 5},
    ):
        how: dict[str, Any] = {"ratings": RATINGS, "test": None, "config": config, **refused}
        for out in ("run", "new"):
            with pytest.raises(UserError):
                fr.train(**how, out=tmp_path / out, overwrite=True)
        assert not (tmp_path / "new").exists()
    kept = fr.Recommender.load(tmp_path / "run").model.V
    np.testing.assert_array_equal(kept, finished.recommender.model.V)


def test_what_is_no_run_to_begin_with_is_called_that(tmp_path: Path, capsys: Any) -> None:
    assert exit_code_of(["train", "--from", str(tmp_path / "nowhere"), "--dataset", "ml-100k"]) == 2
    assert "is not the folder of a finished run" in capsys.readouterr().err


def test_a_deployed_run_is_gone_on_with_on_named_ratings_alone(tmp_path: Path, capsys: Any) -> None:
    run, data = tmp_path / "run", "synthetic:clients=40,items=30,ratings_per_client=8"
    train = ["train", "--algorithm", "fedmf", "--set", "server.rounds=3"]
    assert exit_code_of([*train, "--dataset", data, "--out", str(run)]) == 0
    (run / "data.json").write_text('{"dataset": "items.safetensors"}')  # what a deployed run notes
    on = ["train", "--from", str(run), "--out", str(tmp_path / "next")]
    for more in ([], ["--fold", "1"], ["--add", "more.csv"]):
        capsys.readouterr()
        assert exit_code_of([*on, *more]) == 2
        assert "--dataset" in capsys.readouterr().err
    assert exit_code_of([*on, "--dataset", data]) == 0


def test_a_run_s_test_ratings_stay_those_that_no_table_was_trained_on(tmp_path: Path, capsys: Any) -> None:
    data, run = "synthetic:clients=40,items=30,ratings_per_client=8", str(tmp_path / "run")
    train = ["train", "--dataset", data, "--algorithm", "fedmf", "--set", "server.rounds=3", "--fold", "1"]
    assert exit_code_of([*train, "--out", run]) == 0
    on = [["--from", run, "--out", str(tmp_path / "next")], ["--resume", "--out", run]]
    for option in (["--fold", "2"], ["--split", "user"], ["--test", data], ["--separator", ";"]):
        for how in on:
            capsys.readouterr()
            assert exit_code_of(["train", *how, *option]) == 2
            assert "stay as they were" in capsys.readouterr().err
    for option in (["--add", "more.csv"], ["--without", "3"]):
        assert exit_code_of(["train", *on[1], *option]) == 2
    assert not (tmp_path / "next").exists()
    same = ["--fold", "1", "--split", "random"]
    assert [exit_code_of(["train", *how, *same]) for how in on] == [0, 0]
