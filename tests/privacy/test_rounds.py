"""What the server's step gets to see under a budget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign, preset, with_budget
from fedrecplus.engines import engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.privacy import seeded_words
from fedrecplus.protocol import Sums
from fedrecplus.rounds import neighbouring, plan_of, released
from fedrecplus.testing import small_ratings

RATINGS = small_ratings(clients=60)


def config(*changes: str, noise: str = "central") -> Config:
    budget = with_budget(preset("fedmf"), 10.0, 1e-5, noise, RATINGS.clients)
    return assign(budget, ["server.rounds=3", "model.factors=2", *changes])


def sums(clients: int = 60) -> Sums:
    return Sums(np.zeros((40, 50)), np.full(40, 7.0), 60.0, clients, statistic=np.zeros(100))


@pytest.mark.parametrize("noise", ["central", "distributed"])
@pytest.mark.parametrize("words", [None, seeded_words(1)])
def test_sums_have_as_much_noise_as_the_plan_says(noise: str, words: object) -> None:
    chosen = config(noise=noise)
    public, plan = prepare(RATINGS, chosen).public, plan_of(chosen)
    assert plan is not None
    for number, multiplier in enumerate(plan.rounds):
        found = released(sums(), number, public, chosen, words)  # type: ignore[arg-type]
        least = multiplier * chosen.privacy.settings.clip
        assert found.noise >= least
        numbers = np.concatenate([found.total.ravel(), found.statistic])
        assert numbers.std() == pytest.approx(found.noise, rel=0.08)


def test_a_server_that_draws_for_itself_draws_anew() -> None:
    chosen = config()
    public, words = prepare(RATINGS, chosen).public, seeded_words(2)
    first, second = (released(sums(), 0, public, chosen, words) for _ in range(2))
    assert not np.array_equal(first.total, second.total)
    again = [released(sums(), 0, public, chosen).total for _ in range(2)]
    assert not np.array_equal(*again), "the operating system's"
    seeded = [released(sums(), 0, public, replace(chosen, seeded_noise=True)).total for _ in range(2)]
    np.testing.assert_array_equal(*seeded)


def test_exact_weights_and_numbers_of_clients_are_not_released() -> None:
    chosen = config()
    public = prepare(RATINGS, chosen).public
    found = [
        released(replace(sums(clients), weights=np.full(40, w)), 0, public, chosen)
        for clients, w in ((60, 7.0), (59, 6.0))
    ]
    np.testing.assert_array_equal(found[0].weights, found[1].weights)
    assert (found[0].overall, found[0].clients) == (found[1].overall, found[1].clients)


def test_an_empty_cohort_is_a_round_of_noise() -> None:
    chosen = config("cohort.fraction=1e-9", "cohort.sampling=poisson")
    problem, engine = prepare(RATINGS, chosen), engine_of(chosen)
    state = engine.start(problem)
    after, report = engine.round(problem, state)
    assert report.clients == 0
    assert np.isfinite(after.server.V).all()
    assert not np.array_equal(after.server.V, state.server.V)


@pytest.mark.parametrize("noise", ["central", "distributed"])
def test_secure_sums_carry_a_budget_too(noise: str) -> None:
    plain, secure = (config(f"channel.rule={rule}", "seeded_noise=true", noise=noise) for rule in ("sums", "secure"))
    tables = []
    for chosen in (plain, secure):
        problem, engine = prepare(RATINGS, chosen), engine_of(chosen)
        after, _ = engine.round(problem, engine.start(problem))
        tables.append(after.server.V)
    common = np.isclose(tables[0], tables[1], atol=1e-3).all(axis=1)
    assert common.mean() > 0.5  # rare rows are left out of secure sums


def test_a_ring_s_claim_is_about_those_who_take_part() -> None:
    found = {rule: neighbouring(config(f"channel.rule={rule}")) for rule in ("sums", "secure")}
    assert found == {"sums": "add-or-remove-one", "secure": "zero-out-one"}


@pytest.mark.parametrize(
    "dropout", [["cohort.dropout=0.1"], ["channel.rule=secure", "channel.bound=100", "channel.dropout=0.13"]]
)
def test_a_round_fails_where_fewer_devices_answer_than_the_noise_is_calibrated_to(dropout: list[str]) -> None:
    reasons, few = [], 0
    for seed in range(8):
        chosen = config(*dropout, f"seed={seed}", "privacy.honest=0.9", noise="distributed")
        problem, engine = prepare(RATINGS, chosen), engine_of(chosen)
        few += len(problem.cohort(0)) < 54
        try:
            engine.round(problem, engine.start(problem))
        except UserError as reason:
            reasons.append(str(reason))
    assert 0 < len(reasons) < 8, "a share of 0.9 is near what is left"
    assert all("of 60 devices answered" in reason for reason in reasons)
    assert len(dropout) > 1 or len(reasons) == few


def test_shares_of_noise_are_as_large_as_the_number_asked_wants() -> None:
    chosen = config(noise="distributed")
    public = prepare(RATINGS, chosen).public
    all_answer, some_answer = (released(sums(clients), 0, public, chosen, asked=60) for clients in (60, 48))
    assert some_answer.noise == pytest.approx(all_answer.noise * np.sqrt(48 / 60))
    with pytest.raises(UserError, match="41 of 60 devices answered"):
        released(sums(41), 0, public, chosen, asked=60)
