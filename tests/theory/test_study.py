"""``fedrecplus theory`` on real runs: it repeats the run, and gives a bound only where the theorem applies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.cli.theory import theory_command
from fedrecplus.config import assign, preset
from fedrecplus.engines import engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.experiments.theory.constants import Constants, constants
from fedrecplus.experiments.theory.corollary import corollary
from fedrecplus.experiments.theory.study import _verdict, look_at_states, looked_at, open_run, theory
from fedrecplus.experiments.theory.theorem import bound, fit
from tests.small_data import small_ratings

DATA = "synthetic:clients=60,items=40,ratings_per_client=10"
SMALL_STEPS = ["model.local_epochs=1", "model.learning_rate=0.002", "server_optimizer.learning_rate=40"]


def trained(folder: Path, name: str, *changes: str, rounds: int = 40) -> Path:
    settings = [word for change in (*changes, "model.factors=4") for word in ("--set", change)]
    rounds_set = ["--set", f"server.rounds={rounds}"]
    command = ["train", "--dataset", DATA, "--algorithm", name, "--out", str(folder), *rounds_set, *settings]
    assert exit_code_of(command) == 0
    return folder


@pytest.fixture(scope="module")
def conforming(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = trained(tmp_path_factory.mktemp("small") / "run", "fedrec+paper", *SMALL_STEPS)
    return json.loads(json.dumps(theory(folder, looks=8), allow_nan=False))


def test_where_the_theorem_applies_its_bound_lies_above_what_was_measured(conforming: dict[str, Any]) -> None:
    assert conforming["applies"], conforming["conditions"]
    bounds = [each["bound"] for each in conforming["bounds"]]
    assert all(small <= limit for small, limit in zip(conforming["smallest"], bounds, strict=True))
    assert bounds == sorted(bounds, reverse=True)


def test_what_is_told_of_the_looks_is_theirs(conforming: dict[str, Any]) -> None:
    """Round t is the state before it; the smallest gradient so far; the bound of every T from the same constants."""
    rounds, k = conforming["rounds"], conforming["estimates"]
    assert rounds == [*(number + 1 for number in looked_at(40, 8)), 41]
    assert conforming["smallest"] == [min(conforming["gradient"][: end + 1]) for end in range(len(rounds))]
    assert (conforming["fold"], conforming["seed"], k["f_star"]) == (0, 0, 0.0)
    vanishing = [own["vanishing"] * t for own, t in zip(conforming["bounds"], rounds, strict=True)]
    assert vanishing == pytest.approx([vanishing[0]] * len(rounds))
    steps = 10 * (k["L"] * 0.002) ** 2 * (k["A"] ** 2 + 1) * (k["chi_pw"] * k["A"] ** 2 + 1)
    factor = 2 * (k["chi_wp"] * k["A"] ** 2 + 1) / ((0.5 - steps) * 40 * 0.002)
    assert vanishing[0] == pytest.approx(factor * k["f_0"])
    curve = fit(rounds, conforming["smallest"])
    assert conforming["fit"]["curve"] == pytest.approx(curve.at(rounds))
    assert conforming["fit"]["theorem_floor"] == pytest.approx(2 * k["chi_wp"] * k["sigma_G"] ** 2)


def test_a_client_that_weighs_itself_is_looked_at_as_it_trained() -> None:
    """It sends w·Δ; weights and moves are those of the server's weighing."""
    looks = []
    for who in ("server", "client"):
        own = ["precision=float64", "model.factors=4", "server.rounds=4", f"aggregation.weigh_on={who}"]
        config = assign(preset("fedrec+paper"), own)
        seen, transport, last = look_at_states(engine_of(config), prepare(small_ratings(), config), 4)
        assert len(seen) == len(transport) == len(looked_at(4, 4)) + 1
        assert last.server.round == 4
        looks.append(([own.moved for own in seen], [own.chi_wp for own in seen], [own["bound"] for own in transport]))
    for one, other in zip(*looks, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    assert min(looks[0][0]) > 0


def test_the_run_is_repeated_exactly(conforming: dict[str, Any]) -> None:
    assert conforming["rerun_differs_by"] == 0.0


def test_the_lemmas_hold_where_they_apply(conforming: dict[str, Any]) -> None:
    lemmas = conforming["lemmas"]
    assert lemmas["local_updates"]["applies"]
    assert lemmas["local_updates"]["ratio"] <= 1.0
    assert lemmas["gradient_distance"]["ratio"] <= 1.0
    assert lemmas["wasserstein"]["ratio"] <= 1.0
    assert any("bound is shown" in sentence for sentence in conforming["says"])


def test_where_a_condition_fails_there_is_no_bound_and_it_is_said(tmp_path: Path) -> None:
    found = theory(trained(tmp_path / "run", "fedrec+paper", rounds=12), looks=6)
    assert not found["applies"]
    assert found["bounds"] is None
    assert "No bound is shown" in found["says"][-1]


def test_one_condition_that_fails_is_told_as_one() -> None:
    assert "this condition does not hold: c > 0. No" in _verdict(["c > 0"])
    assert "these conditions do not hold: c > 0; η_L < c. No" in _verdict(["c > 0", "η_L < c"])


def test_rules_without_weights_leave_their_lemmas_out(tmp_path: Path) -> None:
    found = theory(trained(tmp_path / "run", "fedrec", "aggregation.rule=coordinate-median", rounds=6), looks=4)
    assert found["lemmas"]["wasserstein"] is None
    assert found["lemmas"]["gradient_distance"] is None


def test_the_first_and_the_last_objective_are_those_of_the_first_and_the_last_state(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "fedrec", rounds=6)
    found, case = theory(run, looks=4), open_run(run)
    seen, *_ = look_at_states(engine_of(case.config), prepare(case.training, case.config), 4)
    assert len({own.objective for own in seen}) == len(seen) > 2
    assert (found["estimates"]["f_0"], found["estimates"]["f_last"]) == (seen[0].objective, seen[-1].objective)


def test_the_corollary_s_steps_meet_the_theorem_s_conditions_and_the_gradient_falls(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "fedrec+paper", "model.local_epochs=2", rounds=20)
    file = tmp_path / "theory.json"
    assert exit_code_of(["theory", str(run), "--looks", "5", "--corollary", "160,40,10", "--json", str(file)]) == 0
    found = json.loads(file.read_text())["corollary"]
    first, *_, last = found["horizons"]
    assert [each["rounds"] for each in found["horizons"]] == [10, 40, 160]
    assert first["learning_rate"] / last["learning_rate"] == pytest.approx(4.0)
    assert first["server_rate"] == last["server_rate"]
    assert not first["failed"], first
    assert first["bound"] >= first["smallest"]
    assert last["smallest"] < first["smallest"]
    points = [(each["rounds"], each["smallest"]) for each in found["horizons"]]
    assert found["slope"] == pytest.approx(np.polyfit(*np.log(points).T, 1)[0])
    assert f"{found['slope']:.2f}" in found["says"][0]


def test_a_horizon_s_floor_and_bound_are_those_of_its_own_constants(tmp_path: Path) -> None:
    """Three rounds are enough; at each T the estimates are of the training of T rounds."""
    run = trained(tmp_path / "run", "fedrec+paper", *SMALL_STEPS, rounds=3)
    case, k = open_run(run), Constants(9.0, 0.0, 1.0, 3.0, 1.0, 0.5, 0.1, 2.0)
    found = corollary(run, [5, 3, 4], k, looks=4)["horizons"]
    assert [own["rounds"] for own in found] == [3, 4, 5]
    for own in found:
        rates = (f"model.learning_rate={own['learning_rate']}", f"server_optimizer.learning_rate={own['server_rate']}")
        config = assign(case.config, [*rates, f"server.rounds={own['rounds']}"])
        seen, *_ = look_at_states(engine_of(config), prepare(case.training, config), 4)
        estimates = constants(seen)
        assert own["smallest"] == min(each.gradient for each in seen)
        assert own["floor"] == pytest.approx(2 * estimates.chi_wp * estimates.sigma_G**2)
        assert own["floor"] > 0
        if not own["failed"]:
            assert own["bound"] == bound(estimates, config, seen[0].objective, own["rounds"])["bound"]
    assert not all(own["failed"] for own in found)


@pytest.mark.parametrize(("given", "said"), [("10,100", "several T"), ("ten,20,30", "not all whole numbers")])
def test_too_few_numbers_of_rounds_are_refused(given: str, said: str, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "fedrec+paper", rounds=3)
    with pytest.raises(UserError, match=said):
        theory_command(run, corollary=given, looks=4)


def test_rounds_that_are_looked_at_begin_with_the_first() -> None:
    assert looked_at(1) == [0]
    assert looked_at(12, 6) == [0, 1, 2, 3, 4, 7]
    assert looked_at(2, 24) == [0, 1]
    for rounds in (3, 10, 200):
        stops = looked_at(rounds)
        assert stops[0] == 0
        assert stops == sorted(set(stops))
        assert stops[-1] < rounds


def test_two_rounds_are_too_few_and_three_are_enough(tmp_path: Path) -> None:
    assert open_run(trained(tmp_path / "three", "fedrec", rounds=3)).config.server.rounds == 3
    with pytest.raises(UserError, match="fewer than three rounds"):
        open_run(trained(tmp_path / "two", "fedrec", rounds=2))


@pytest.mark.parametrize(("name", "said"), [("pmf", "without rounds"), ("fedmf", "about gradient steps")])
def test_runs_that_the_theorem_is_not_about_are_refused(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        open_run(trained(tmp_path / "run", name, rounds=3))


def test_other_data_is_refused(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", "fedrec", rounds=3)
    with pytest.raises(UserError, match="not what"):
        open_run(run, dataset=DATA.replace("60", "50"))


def test_the_command_shows_and_writes_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path / "run", "fedrec", rounds=5)
    capsys.readouterr()
    assert exit_code_of(["theory", str(run), "--looks", "4", "--json", str(tmp_path / "t.json")]) == 0
    found, out = json.loads((tmp_path / "t.json").read_text()), capsys.readouterr().out
    assert all(condition["what"] in out for condition in found["conditions"])
    assert f"{found['estimates']['L']:.4g}" in out
    assert set(found["made"]) >= {"command", "version", "commit", "seed", "when", "seconds"}
