"""The estimator, by itself and in scikit-learn's hands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

import fedrecplus as fr
from fedrecplus.errors import UserError
from tests.small_data import small_ratings

RATINGS = replace(small_ratings(clients=40), catalogue=None)  # a frame of ratings has none
FRAME: pl.DataFrame = RATINGS.to_frame()
X, Y = FRAME.select("user", "item").to_numpy(), FRAME["rating"].to_numpy()


def short(algorithm: str = "fedmf", **settings: Any) -> fr.FedRec:
    return fr.FedRec(algorithm, **{"server__rounds": 3, **settings})


@pytest.fixture(scope="module")
def fitted() -> fr.FedRec:
    return short().fit(FRAME)


def test_it_is_the_training_that_train_runs(fitted: fr.FedRec) -> None:
    run = fr.train(RATINGS, None, fr.change(fr.preset("fedmf"), "server.rounds", 3))
    pairs = [(3, 1), (3, 2), (7, 5)]
    expected = [run.recommender.predict(user, [item])[0] for user, item in pairs]
    assert fitted.predict(pairs).tolist() == pytest.approx(expected)


def test_an_unfitted_estimator_says_so_as_scikit_learn_does() -> None:
    model = short()
    with pytest.raises(fr.NotFittedError, match="fit") as refusal:
        model.predict([(1, 2)])
    assert isinstance(refusal.value, ValueError)
    assert isinstance(refusal.value, AttributeError)
    assert not hasattr(model, "item_factors_")


def test_factors_are_public_and_predict(fitted: fr.FedRec) -> None:
    pairs = [(fitted.user_ids_[0], item) for item in fitted.item_ids_]
    scale = fitted.recommender_.model.scale
    ours = scale.restore(fitted.user_factors_[0] @ fitted.item_factors_.T)
    assert ours == pytest.approx(fitted.predict(pairs))


def test_sparse_matrices_and_rows_without_names_are_ratings() -> None:
    rows = FRAME.select("user", "item", "rating").to_numpy().astype(np.float64)
    matrix = csr_array((rows[:, 2], (rows[:, 0].astype(int), rows[:, 1].astype(int))))
    timed = [(int(user), int(item), rating, 1_700_000_000 + place) for place, (user, item, rating) in enumerate(rows)]
    by_frame, *others = (short(scale="1:5:1").fit(source) for source in (FRAME, rows, matrix, timed, np.array(timed)))
    for other in others:
        assert other.user_ids_.tolist() == by_frame.user_ids_.tolist()
        assert (other.item_factors_ == by_frame.item_factors_).all()
    assert by_frame.score(rows) == by_frame.score(FRAME)
    assert fr.load(rows).timestamps is None
    assert (fr.load(timed).timestamps == fr.load(np.array(timed)).timestamps).all()
    for none in (rows[:, :2], [], [(1, 2, 3), (1, 3)], [1, 2, 3]):
        with pytest.raises(fr.UserError, match="rows of user"):
            fr.load(none)


def test_errors_name_what_python_has() -> None:
    with pytest.raises(fr.UserError, match=r"duplicates='last' or duplicates='mean'") as refusal:
        short().fit(pl.concat([FRAME, FRAME]))
    assert "--" not in str(refusal.value)
    assert "--duplicates=last" in refusal.value.for_shell


def test_an_evaluation_is_a_line_and_a_frame(fitted: fr.FedRec) -> None:
    judged = fr.evaluate(fitted, FRAME, FRAME)
    assert len(repr(judged)) < 160
    frame = judged.to_frame()
    assert frame.columns == ["group", "figure", "value"]
    assert frame.filter(group="all", figure="rmse")["value"].item() == judged.rmse
    assert set(judged.groups) < set(frame["group"])
    assert "RMSE" in judged._repr_html_()


@pytest.mark.parametrize("given", ["frame", "pandas", "pairs", "ratings", "strings"])
def test_however_ratings_are_given_the_model_is_the_same(given: str, fitted: fr.FedRec) -> None:
    if given == "pairs":
        model, pairs = short().fit(X, Y), X
    elif given == "strings":
        model, pairs = short().fit(X.astype(str), Y), X.astype(str)
    elif given == "pandas":
        frame = RATINGS.to_frame("pandas")
        model, pairs = short().fit(frame), frame[["user", "item"]]
    else:
        source = {"frame": FRAME, "ratings": RATINGS}[given]
        model, pairs = short().fit(source), source
    assert model.predict(pairs) == pytest.approx(fitted.predict(X))


def test_columns_may_have_names_of_their_own() -> None:
    frame = FRAME.rename({"user": "who", "item": "what", "rating": "how well"})
    model = short(user="who", item="what", rating="how well").fit(frame)
    assert model.predict(frame.select("what", "who")) == pytest.approx(short().fit(FRAME).predict(X))


@pytest.mark.parametrize("algorithm", ["fedrec", "fedmf"])
def test_cold_users_get_the_items_means_and_cold_items_the_users(algorithm: str) -> None:
    config = fr.assign(fr.preset(algorithm), ["server.rounds=2"])
    model = fr.FedRec(config).fit(FRAME)
    own, public = FRAME.filter(pl.col("user") == 3), model.recommender_.model.public
    met = public.averages()[np.searchsorted(model.item_ids_, own["item"].to_numpy())]
    bias = (own["rating"].to_numpy() - met).sum() / (len(own) + 5)
    found = model.predict([("nobody", 1), (3, "nothing"), ("nobody", "nothing")])
    of_user = Y.mean() + bias + (met - Y.mean()).sum() / (len(own) + 20)
    assert found == pytest.approx([*model.fold_in({}).predict([1]), of_user, Y.mean()])
    assert found[0] != pytest.approx(Y.mean())


def test_lists_of_many_users_are_those_of_each(fitted: fr.FedRec) -> None:
    frame = fitted.recommend([3, 7], n=4)
    for user in (3, 7):
        alone = fitted.recommender_.top_items(user, 4)
        part = frame.filter(pl.col("user") == user)
        assert part["item"].to_list() == [one.item for one in alone]
        assert part["rating"].to_list() == pytest.approx([one.rating for one in alone])
        assert part["rank"].to_list() == [1, 2, 3, 4]
    assert fitted.recommend(3, n=1).equals(frame.head(1))
    assert len(fitted.recommend(3, n=RATINGS.item_count, include_seen=True)) == RATINGS.item_count


def test_lists_have_scores_reasons_and_may_explore() -> None:
    model = short("fedrec+secure").fit(FRAME)
    lists = model.recommend(3, n=5, why=True)
    assert lists.columns == ["user", "rank", "item", "score", "rating", "title", "because"]
    assert lists["score"].is_sorted(descending=True)
    own = set(FRAME.filter(pl.col("user") == 3)["item"].to_list())
    assert all(1 <= len(reasons) <= 3 and set(reasons) <= own for reasons in lists["because"].to_list())
    by_rating = model.recommend(3, n=5, by="rating")
    assert by_rating["rating"].is_sorted(descending=True)
    assert by_rating["item"].to_list() != lists["item"].to_list()
    assert model.recommend(3, n=5, explore=1.0)["item"].to_list() != lists["item"].to_list()
    with pytest.raises(UserError, match="way to rank"):
        model.recommend(3, by="ratings")


def test_a_channel_and_a_budget_are_parameters() -> None:
    secure = short("fedmf", channel="secure")
    assert secure.config.channel.rule == "secure"
    assert secure.config.aggregation.settings.weigh_on == "client"
    assert secure.fit(FRAME).run_.result["channel"] == "secure"
    pytest.importorskip("dp_accounting")
    with pytest.raises(UserError, match="no ε covers a list of items"):
        fr.FedRec("fedrec+secure", epsilon=20, server__rounds=2).fit(FRAME)
    films = pl.DataFrame({"item": range(RATINGS.item_count), "title": "a film"})
    known = {"items": films, "listed": True, "scale": "1:5:1"}
    noisy = fr.FedRec("fedrec+secure", epsilon=20, server__rounds=2, **known).fit(FRAME)
    assert noisy.run_.result["privacy"]["epsilon"] <= 20
    assert noisy.run_.result["privacy"]["unit"] == "user"
    assert noisy.run_.config.server.rounds == 2  # what is given one by one comes last
    with pytest.raises(UserError, match="without a budget"):
        fr.FedRec("fedmf", noise="central").fit(FRAME)
    assert noisy.get_params()["epsilon"] == 20
    assert "epsilon=20" in repr(noisy)


def test_frames_that_come_out_are_of_the_library_that_went_in() -> None:
    pandas = pytest.importorskip("pandas")
    model = short().fit(RATINGS.to_frame("pandas"))
    pairs = pandas.DataFrame({"user": [3, 7], "item": [1, 2]})
    assert list(model.predict_frame(pairs).columns) == ["user", "item", "prediction"]
    found = [model.recommend([3], n=2), model.similar_items(1, n=2), model.predict_frame(pairs)]
    assert all(isinstance(frame, pandas.DataFrame) for frame in found)
    assert model.predict_frame(FRAME.head(2)).shape == (2, 3)


def test_an_item_is_like_one_with_the_same_row(fitted: fr.FedRec) -> None:
    similar = fitted.similar_items(1, n=5)
    V = fitted.recommender_.model.V
    place = {item: number for number, item in enumerate(RATINGS.item_ids.tolist())}
    rows = V / np.linalg.norm(V, axis=1, keepdims=True)
    expected = [float(rows[place[1]] @ rows[place[item]]) for item in similar["item"].to_list()]
    assert similar["similarity"].to_list() == pytest.approx(expected)
    assert similar["similarity"].is_sorted(descending=True)
    assert 1 not in similar["item"].to_list()


def test_a_newcomer_is_folded_in(fitted: fr.FedRec) -> None:
    newcomer = fitted.fold_in({1: 5.0, 2: 1.0})
    assert fitted.fold_in([(1, 5.0), (2, 1.0)]).predict([3]) == newcomer.predict([3])
    assert len(newcomer.recommend(3)) == 3
    assert set(newcomer.recommend(RATINGS.item_count)["item"]) & {1, 2} == set()


def test_lists_of_a_newcomer_are_frames_of_the_library_that_fit_was_given() -> None:
    pandas = pytest.importorskip("pandas")
    model = short().fit(RATINGS.to_frame("pandas"))
    assert isinstance(model.fold_in({1: 5.0}).recommend(2), pandas.DataFrame)
    assert isinstance(model.fold_in({1: 5.0}).recommend(2, backend="polars"), pl.DataFrame)


@pytest.mark.parametrize("pairs", [[], FRAME.head(0)], ids=["list", "frame"])
def test_of_no_pairs_there_are_no_predictions(fitted: fr.FedRec, pairs: Any) -> None:
    assert fitted.predict(pairs).shape == (0,)


def test_what_is_saved_is_loaded_in_a_line_each(fitted: fr.FedRec, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    loaded = fr.FedRec.load(tmp_path / "model")
    assert loaded.predict(X) == pytest.approx(fitted.predict(X))
    assert loaded.config == fitted.config


def test_the_score_is_minus_the_rmse(fitted: fr.FedRec) -> None:
    by_hand = -np.sqrt(np.mean((fitted.predict(X) - Y) ** 2))
    assert fitted.score(X, Y) == pytest.approx(by_hand)
    assert fitted.score(FRAME) == pytest.approx(by_hand)


def test_parameters_are_settings() -> None:
    model = fr.FedRec("fedrec+", model__factors=3, server__rounds=2, seed=5)
    assert (model.config.model.settings.factors, model.config.server.rounds, model.config.seed) == (3, 2, 5)
    assert repr(model) == "FedRec('fedrec+', seed=5, model__factors=3, server__rounds=2)"
    assert model.set_params(model__factors=4).get_params()["model__factors"] == 4
    assert fr.FedRec(**model.get_params()).config == model.config
    for wrong in ({"modle__factors": 3}, {"model__factor": 3}, {"factors": 3}):
        with pytest.raises(UserError, match="unknown"):
            fr.FedRec().set_params(**wrong)


def test_parameters_of_other_libraries_are_told_what_they_are_called_here() -> None:
    with pytest.raises(UserError, match="here it is called seed"):
        fr.FedRec("fedmf", random_state=3)
    with pytest.raises(UserError, match="here it is called model__factors"):
        fr.FedRec("fedmf").set_params(n_factors=3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: fr.FedRec().predict(X), "isn't fitted"),
        (lambda: short().fit(X, Y[:-1]), "a rating for each pair"),
        (lambda: short().fit([1, 2, 3], [1, 2, 3]), "a row of user and item"),
        (lambda: short().fit(X, ["good", *Y[1:]]), "row 1: rating 'good' is not a number"),
        (lambda: short().fit(FRAME.rename({"user": "a", "item": "b"}), Y), "name them user and item"),
        (lambda: short().fit(FRAME).recommend(["nobody"]), "unknown client 'nobody'"),
        (lambda: short().fit(FRAME).recommend([3], n=0), "at least one"),
        (lambda: short().fit(FRAME).recommend([3], n=2.5), "a list of 2.5 items is none"),
        (lambda: short().fit(FRAME).fold_in([7, 8]), "no ratings of items"),
        (lambda: short().fit(FRAME).save(__file__), "is a file"),
        (lambda: short().fit(FRAME).similar_items("nothing"), "unknown item 'nothing'"),
    ],
)
def test_what_cannot_be_is_said(call: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        call()


def test_scikit_learn_validates_it() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    folds = selection.KFold(3, shuffle=True, random_state=0)
    scores = selection.cross_val_score(short(scale="1:5:1"), X, Y, cv=folds)
    by_hand = []
    for train, test in folds.split(X):
        by_hand.append(short(scale="1:5:1").fit(X[train], Y[train]).score(X[test], Y[test]))
    assert scores.tolist() == by_hand
    named = selection.cross_val_score(short(scale="1:5:1"), X, Y, cv=folds, scoring="neg_root_mean_squared_error")
    assert named == pytest.approx(scores)


def test_scikit_learn_searches_its_settings() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    grid = {"model__factors": [2, 4], "server__rounds": [1, 3]}
    search = selection.GridSearchCV(short(scale="1:5:1"), grid, cv=2).fit(X, Y)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.config.model.settings.factors == search.best_params_["model__factors"]
    assert search.predict(X[:3]).shape == (3,)


def test_scikit_learn_clones_it_without_its_model(fitted: fr.FedRec) -> None:
    base = pytest.importorskip("sklearn.base")
    copy = base.clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "recommender_")
    assert base.is_regressor(copy)
    of_config = base.clone(fr.FedRec(fr.preset("fedrec")))
    assert of_config.config == fr.preset("fedrec")
