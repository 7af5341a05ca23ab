"""The paper's family: members differ in their parts alone, claims come from the numbers, tuning never sees the test."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import preset, to_tables
from fedrecplus.errors import UserError
from fedrecplus.experiments import tuning_cut
from fedrecplus.experiments.family import (
    CLAIMS,
    FEDREC_PLUS,
    MEMBERS,
    STARTS,
    family,
    member_config,
    own_settings,
    shipped_settings,
    start,
    tables,
    verdict_of,
)
from fedrecplus.experiments.family.tuning import RANGES, points, tune_family
from fedrecplus.experiments.statistics import PairedTest, holm, paired_test
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=60, items=50)
SHORT = ["server.rounds=12", "model.factors=4", "evaluation.every=4"]
PARTS = {"algorithm", "pseudo_items", "virtual_ratings", "aggregation", "channel", "encoder"}


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    found = family(RATINGS, settings=SHORT, folds=2, workers=1)
    return json.loads(json.dumps(found.to_dict(), allow_nan=False))


@pytest.mark.parametrize("model", STARTS)
@pytest.mark.parametrize("name", MEMBERS)
def test_members_differ_from_the_start_in_their_parts_alone(name: str, model: str) -> None:
    ours, own = to_tables(start(model)), to_tables(member_config(name, model))
    differing = {section for section in ours if ours[section] != own[section]}
    if name == "FedRec++":  # lossless
        differing -= {"model"}
    assert differing <= PARTS
    assert own["aggregation"]["normalise"] == ours["aggregation"]["normalise"]


def test_fedrec_plus_in_the_paper_s_model_is_the_paper_s_preset() -> None:
    ours, own = to_tables(preset("fedrec+paper")), to_tables(member_config(FEDREC_PLUS, "mf"))
    assert {name for name in ours if ours[name] != own[name]} == {"algorithm"}


def test_fedrec_plus_plus_is_lossless(content: dict[str, Any]) -> None:
    rmse = {member["name"]: member["figures"]["rmse"]["mean"] for member in content["members"]}
    assert rmse["FedRec++"] == pytest.approx(rmse["FedMF"], abs=1e-5)
    assert len({round(value, 5) for value in rmse.values()}) == len(MEMBERS) - 1


def test_claims_are_differences_of_the_means_beside_them(content: dict[str, Any]) -> None:
    rmse = {member["name"]: member["figures"]["rmse"]["mean"] for member in content["members"]}
    assert [claim["says"] for claim in content["claims"]] == [says for says, *_ in CLAIMS]
    for claim in content["claims"]:
        assert claim["difference"] == pytest.approx(rmse[claim["better"]] - rmse[claim["worse"]])
        assert claim["verdict"] == verdict_of(claim["difference"], PairedTest(**claim["test"]))
    text = tables.to_markdown(content)
    assert all(f"{value:.4f}" in text for value in rmse.values())


@pytest.mark.parametrize(
    ("difference", "by_client", "p", "expected"),
    [
        (-0.01, -0.02, 0.01, "holds"),
        (0.01, 0.02, 0.01, "fails"),
        (0.01, -0.02, 0.01, "mixed"),
        (-0.01, 0.02, 0.01, "mixed"),
        (-0.01, -0.02, 0.05, "no difference"),
    ],
)
def test_a_claim_needs_ratings_and_clients(difference: float, by_client: float, p: float, expected: str) -> None:
    assert verdict_of(difference, PairedTest("x", 5, by_client, p)) == expected


def test_a_test_of_ranks_does_not_speak_for_a_mean_that_leans_the_other_way() -> None:
    """Ninety clients gain .01 each, ten lose .2: p is tiny, by ranks for the claim, and the mean is against it."""
    errors = np.concatenate([np.full(90, 0.89), np.full(10, 1.1)]) + 1e-4 * np.arange(100)
    test = paired_test(errors, np.full(100, 0.9), "fedrec")
    assert test.p < 1e-3
    assert test.difference > 0 > test.ranks
    assert verdict_of(test.difference, test) == "mixed"


@pytest.mark.parametrize("dataset", ["ml-100k", "ml-1m"])
def test_the_package_has_tuned_settings_of_every_member_on_both_data_sets(dataset: str) -> None:
    for name in MEMBERS:
        own = own_settings(name, "mf", shipped_settings(), dataset)
        tuned = to_tables(member_config(name, "mf", own))
        assert f"server.rounds={tuned['server']['rounds']}" in own
        assert f"model.learning_rate={tuned['model']['learning_rate']}" in own


def test_holm_corrects_for_every_claim() -> None:
    """By hand: 3·.01, 2·.02, and never less than the one before; no more than 1."""
    tests = [PairedTest("x", 5, 0.0, p) for p in (0.02, 0.01, 0.5)]
    assert [test.p for test in holm(tests)] == [0.04, 0.03, 0.5]
    assert [test.p for test in holm([PairedTest("x", 5, 0.0, p) for p in (0.6, 0.7)])] == [1.0, 1.0]


def test_all_members_are_tuned_at_the_same_points_and_the_best_of_them_is_taken() -> None:
    some, seen = ["FedMF", FEDREC_PLUS], []
    tuned = tune_family(
        [tuning_cut(RATINGS)],
        "mf",
        settings=SHORT,
        members=some,
        count=4,
        workers=1,
        done=lambda *news: seen.append(news),
    )
    assert {point for name, point, *_ in seen if name == "FedMF"} == set(points("mf", 4))
    for member in tuned:
        own = [news for news in seen if news[0] == member.name]
        best = min(own, key=lambda news: news[2])
        assert member.rmse == best[2] <= member.fixed_rmse
        assert member.settings["server.rounds"] == best[3]
        assert set(member.settings) == {*RANGES["mf"], "server.rounds"}


def test_points_cover_the_ranges_and_begin_with_the_fixed_settings() -> None:
    first, *rest = points("mf", 64)
    assert first == ()
    for place, (low, high) in enumerate(RANGES["mf"].values()):
        values = np.array([float(point[place].partition("=")[2]) for point in rest])
        assert low <= values.min() < low * 1.2
        assert high / 1.2 < values.max() <= high


def test_the_commands_write_settings_and_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--dataset", "synthetic:clients=40,items=30,ratings_per_client=8", "--members", "FedMF;FedRec+"]
    short = [word for change in SHORT for word in ("--set", change)]
    file, result = tmp_path / "family.toml", tmp_path / "family.json"
    file.write_text('[other.mf.FedMF]\n"model.factors" = 3\n')
    assert exit_code_of(["family", "tune", *data, *short, "--points", "2", "--workers", "1", "--out", str(file)]) == 0
    found = tomllib.loads(file.read_text())
    assert set(found) == {"other", data[1]}
    assert set(found[data[1]]["mf"]) == {"FedMF", "FedRec+"}
    assert exit_code_of(["family", "run", *data, *short, "--folds", "2", "--workers", "1", "--json", str(result)]) == 0
    shown, content = capsys.readouterr().out, json.loads(result.read_text())
    again = ["family", "run", *data, *short, "--folds", "2", "--workers", "1", "--tuned", "--settings-file", str(file)]
    assert exit_code_of([*again, "--json", str(tmp_path / "tuned.json")]) == 0
    chosen = found[data[1]]["mf"]["FedMF"]
    tuned = json.loads((tmp_path / "tuned.json").read_text())["members"][0]
    assert tuned["rows"][0]["config"]["model"]["learning_rate"] == chosen["model.learning_rate"]
    assert tuned["rows"][0]["rounds"] == chosen["server.rounds"]
    assert content["kind"] == "family"
    assert all(f"{member['figures']['rmse']['mean']:.4f}" in shown for member in content["members"])
    assert set(content["made"]) >= {"command", "version", "commit", "seed", "when", "seconds"}


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(UserError, match="no settings of FedMF were tuned"):
        own_settings("FedMF", "mf", {}, "my-ratings.csv")
    with pytest.raises(UserError, match="member of the family"):
        member_config("FedRac", "mf")
    with pytest.raises(UserError, match="model of the family"):
        member_config("FedMF", "ials")
