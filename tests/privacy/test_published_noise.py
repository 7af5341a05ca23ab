"""Nobody who has a model can draw its noise again: neither from what is in it nor from the seed it was trained with."""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import Config, assign, change, preset, with_budget
from fedrecplus.engines import engine_of, prepare
from fedrecplus.protocol import Sums
from fedrecplus.rounds import released
from fedrecplus.testing import small_ratings

RATINGS = small_ratings(clients=60)


def config(noise: str, *changes: str) -> Config:
    budget = with_budget(preset("fedmf"), 1.0, 1e-4, noise, RATINGS.clients)
    return assign(budget, ["server.rounds=2", "model.factors=2", *changes])


def sums_of(total: np.ndarray) -> Sums:
    return Sums(total, np.full(len(total), 7.0), 60.0, RATINGS.clients, statistic=np.zeros(0))


@pytest.mark.parametrize("noise", ["central", "distributed"])
@pytest.mark.parametrize("seeded", [False, True])
def test_the_seed_takes_noise_off_released_sums_only_where_it_was_drawn_from_it(noise: str, seeded: bool) -> None:
    chosen = config(noise, f"seeded_noise={str(seeded).lower()}")
    public, exact = prepare(RATINGS, chosen).public, np.random.default_rng(1).normal(size=(40, 5))
    found = released(sums_of(exact), 0, public, chosen)
    of_the_seed = released(sums_of(np.zeros((40, 5))), 0, public, change(chosen, "seeded_noise", True, "attack")).total
    error = float(np.abs(found.total - of_the_seed - exact).mean())
    assert error < 1e-3 if seeded else error > 0.5 * found.noise


@pytest.mark.parametrize("noise", ["central", "distributed"])
def test_two_trainings_with_one_seed_have_two_noises(noise: str) -> None:
    """What ``config.seed`` told before: the same seed, the same table."""
    chosen = config(noise)
    problem = prepare(RATINGS, chosen)
    engine = engine_of(chosen)
    tables = [engine.round(problem, engine.start(problem))[0].server.V for _ in range(2)]
    assert np.abs(tables[0] - tables[1]).max() > 1e-3
    seeded = prepare(RATINGS, change(chosen, "seeded_noise", True, "test"), problem.public)
    tables = [engine.round(seeded, engine.start(seeded))[0].server.V for _ in range(2)]
    np.testing.assert_array_equal(tables[0], tables[1])


def test_who_was_sampled_does_not_follow_from_the_seed_where_a_claim_counts_on_it() -> None:
    how = ("cohort.fraction=0.5", "cohort.sampling=poisson", "privacy.amplification=true")
    cohorts = [prepare(RATINGS, config("central", *how)).cohort(0).tolist() for _ in range(2)]
    assert cohorts[0] != cohorts[1]
    seeded = [prepare(RATINGS, config("central", *how, "seeded_noise=true")).cohort(0).tolist() for _ in range(2)]
    assert seeded[0] == seeded[1]
