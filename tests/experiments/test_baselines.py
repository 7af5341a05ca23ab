"""Models from outside in a comparison: objects, functions and import paths, and what they may get wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.errors import UserError
from fedrecplus.experiments.comparison import to_json
from tests.outside.my_models import ItemMean, NoNumbers, everybodys_mean
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=40)
PATH = "tests.outside.my_models"


def comparison(*algorithms: Any, workers: int = 1) -> fr.Comparison:
    return fr.compare(RATINGS, algorithms, folds=2, workers=workers)


def test_an_estimator_is_fitted_and_tested_on_every_fold() -> None:
    found = comparison(ItemMean())
    for fold, row in enumerate(found.rows):
        training, test = fr.split(RATINGS, fold, 2)
        pairs = [np.column_stack([part.client_of_rating, part.items]) for part in (training, test)]
        predicted = np.array(ItemMean().fit(pairs[0], training.values).predict(pairs[1]))
        assert row["rmse"] == pytest.approx(float(np.sqrt(np.mean((predicted - test.values) ** 2))))
        assert row["algorithm"] == "ItemMean"
        assert 0 < row["ranking"]["ndcg@10"] < 1


def test_a_function_is_one_too() -> None:
    found = comparison(everybodys_mean)
    assert found.mean("everybodys_mean") == pytest.approx(found.mean("global-mean"))
    summary = next(one for one in found.summaries if one.algorithm == "global-mean")
    assert summary.test is not None
    assert summary.test.baseline == "everybodys_mean"


def test_an_import_path_a_name_of_ones_own_and_another_process_change_nothing() -> None:
    names = (f"{PATH}.ItemMean", f"{PATH}:everybodys_mean", ("mine", ItemMean()), "bias-only")
    found = comparison(*names, workers=2)
    alone = comparison(ItemMean(), everybodys_mean)
    assert found.mean("ItemMean") == found.mean("mine") == alone.mean("ItemMean")
    assert [row["algorithm"] for row in found.rows[::2]] == ["ItemMean", "everybodys_mean", "mine", "bias-only"]


def test_ids_are_those_of_the_data() -> None:
    frame = RATINGS.to_frame().with_columns(user=RATINGS.to_frame()["user"].cast(str) + "u")
    seen: list[Any] = []

    class Noting(ItemMean):
        def fit(self, X: Any, y: Any) -> ItemMean:
            seen.append(X[0].tolist())
            return super().fit(X, y)

    fr.compare(frame, [Noting()], folds=2, workers=1)
    assert isinstance(seen[0][0], str)
    assert isinstance(seen[0][1], int)


def test_our_own_estimator_is_an_estimator() -> None:
    config = fr.change(fr.preset("fedmf"), "server.rounds", 2)
    plain = fr.Ratings(**{**vars(RATINGS), "catalogue": None})
    found = fr.compare(plain, [config, ("estimator", fr.FedRec(config, scale="1:5:1"))], folds=2, workers=1)
    assert found.mean("estimator") == pytest.approx(found.mean("fedmf"), abs=0.01)


class Ends(ItemMean):
    def predict(self, X: Any) -> Any:
        raise ZeroDivisionError("nobody rated this")


@pytest.mark.parametrize(("model", "failure"), [(Ends(), "DivisionError: nobody rated"), (NoNumbers(), "not finite")])
def test_a_model_that_fails_leaves_the_others_their_figures(model: Any, failure: str) -> None:
    found = fr.compare(RATINGS, [("theirs", model), ("mean", ItemMean())], folds=2, workers=1)
    assert found.mean("mean") > 0
    summary = next(one for one in found.summaries if one.algorithm == "theirs")
    assert failure in str(summary.failure)
    assert summary.figures["rmse"] is None
    assert "failed" in repr(found)
    assert summary.test is None
    assert found.to_frame().filter(algorithm="theirs")["rmse"].to_list() == [None, None]
    json.dumps(to_json([found], {}))


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        (f"{PATH}.Nobody", "has no attribute 'Nobody'"),
        ("no_such_package.Model", "can't be imported: ModuleNotFoundError"),
        (f"{PATH}.nothing", "no fit and predict"),
        (("fedmf", ItemMean()), "give yours another"),
    ],
)
def test_what_it_may_get_wrong_is_said(algorithm: Any, said: str) -> None:
    with pytest.raises(UserError, match=said):
        comparison(algorithm)


def test_the_command_line_takes_import_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parents[2])])
    RATINGS.to_frame().write_csv("ratings.csv")
    command = ["compare", "--dataset", "ratings.csv", "--folds", "2", "--workers", "1", "--json", "c.json"]
    assert exit_code_of([*command, "--algorithm", f"bias-only,{PATH}.ItemMean"]) == 0
    rows = json.loads(Path("c.json").read_text())["rows"]
    assert [row["algorithm"] for row in rows] == ["bias-only", "bias-only", "ItemMean", "ItemMean"]


@pytest.mark.filterwarnings("ignore:OpenBLAS is configured")
def test_implicit_ranks_in_a_comparison() -> None:
    """The example of the documentation, against the real library."""
    pytest.importorskip("implicit")
    from examples.baselines import ImplicitALS

    found = comparison(ImplicitALS())
    assert 0 < found.mean("ImplicitALS", "ndcg@10") < 1
