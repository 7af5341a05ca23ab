"""The theorem's formulas by hand, its conditions, the fit and the lemmas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.experiments.theory.constants import Constants, Look, look
from fedrecplus.experiments.theory.gradients import GradientRows
from fedrecplus.experiments.theory.lemmas import (
    BATCHES,
    gaussian,
    gradient_distance,
    local_updates,
    wasserstein_bound,
)
from fedrecplus.experiments.theory.theorem import bound, conditions, constant_c, fit
from fedrecplus.protocol import Upload

K = Constants(L=2.0, sigma_L=0.5, sigma_G=3.0, A=1.0, rho=2.0, alpha=0.5, chi_wp=0.25, chi_pw=0.5)
STEPS = ["model.learning_rate=0.01", "model.local_epochs=2", "server_optimizer.learning_rate=3"]
SMALL = assign(Config(), [*STEPS, "aggregation.normalise=cohort"])


def test_the_bound_is_the_theorem_s() -> None:
    c = 0.5 - 10 * 4 * 4 * 1e-4 * 2 * (0.5 + 1)
    assert constant_c(K, SMALL) == pytest.approx(c)
    phi = 2.5 * 1e-4 * 2 * 4 * (0.25 + 12 * 9 + 12 * 0.25 * 4) + 0.5 * 3 * 0.01 * 2 * (0.25 + 0.25 * 4)
    phi = (phi + 20 * 4 * 4 * 2 * 1e-4 * 0.25 * 9) / c
    expected = 2 * (0.25 + 1) * (7.0 / (c * 3 * 0.01 * 2 * 50) + phi) + 2 * 0.25 * 9
    found = bound(K, SMALL, 7.0, 50)
    assert found["bound"] == pytest.approx(expected)
    assert found["floor"] == pytest.approx(4.5)


def test_more_rounds_leave_everything_but_what_vanishes() -> None:
    early, late = bound(K, SMALL, 7.0, 10), bound(K, SMALL, 7.0, 1000)
    assert late["vanishing"] == pytest.approx(early["vanishing"] / 100)
    assert all(early[name] == late[name] for name in ("drift", "variance", "weighing", "floor"))


def test_small_plain_steps_meet_every_condition() -> None:
    assert all(condition.holds for condition in conditions(K, SMALL))


@pytest.mark.parametrize(
    ("change", "broken"),
    [
        ("model.learning_rate=0.2", "η_L < 1/(8LK)"),
        ("server_optimizer.learning_rate=1000", "η ≤ 1/(η_L L)"),
        ("server_optimizer.rule=momentum", "a plain server step"),
        ("model.learning_rate_decay=0.9", "constant step sizes"),
        ("server.cooldown=0.5", "constant step sizes"),
        ("aggregation.rule=krum", "one weight per client"),
        ("aggregation.normalise=item", "Σ p_u = 1 over all"),
        ("cohort.fraction=0.5", "everybody takes part"),
    ],
)
def test_each_condition_is_looked_at(change: str, broken: str) -> None:
    failed = [condition.what for condition in conditions(K, assign(SMALL, [change])) if not condition.holds]
    assert broken in failed


def test_the_fit_finds_rate_and_floor() -> None:
    t = [1, 2, 4, 8, 16, 32, 64, 128]
    found = fit(t, [5.0 / np.sqrt(n) + 2.0 / n + 0.3 for n in t])
    assert (found.a, found.b, found.c) == pytest.approx((5.0, 2.0, 0.3), rel=1e-6)
    assert found.r_squared == pytest.approx(1.0)
    assert found.at([4]) == pytest.approx([3.3])


def test_batches_become_gaussian_at_the_square_root_s_rate() -> None:
    rng = np.random.default_rng(0)
    gradient = rng.exponential(size=(600, 2)) ** 2
    client = np.repeat([0, 1, 2], 200)
    rows = GradientRows(3, client, np.arange(600), np.ones(600, bool), gradient, np.zeros(600), 600, 1.0)
    found = gaussian(rows, seed=0)
    assert found["batch"] == list(BATCHES)
    assert found["distance"][0] > 4 * found["distance"][-1]
    assert found["slope"] == pytest.approx(-0.5, abs=0.15)


def uploads(deviation: float) -> list[Upload]:
    rng = np.random.default_rng(4)
    common = rng.normal(size=(6, 2))
    return [Upload(n, np.arange(6), common + deviation * rng.normal(size=(6, 2))) for n in range(8)]


@pytest.mark.parametrize("deviation", [0.1, 1.0, 5.0])
def test_the_best_weights_make_the_wasserstein_bound_smallest(deviation: float) -> None:
    found = wasserstein_bound(uploads(deviation), np.random.default_rng(5).dirichlet(np.ones(8)), (6, 2), batch_size=1)
    assert found["best"] <= min(found["bound"], found["uniform"]) + 1e-12


def test_the_wasserstein_bound_holds_where_clients_differ_much_and_fails_where_they_agree() -> None:
    """Independent clients that all have the global distribution are at no distance from it, but their mean has less
    variance than any of them, so it is."""
    p = np.full(8, 1 / 8)
    assert wasserstein_bound(uploads(5.0), p, (6, 2), batch_size=1)["ratio"] <= 1.0
    assert wasserstein_bound(uploads(0.01), p, (6, 2), batch_size=1)["ratio"] > 1.0


def a_look(**measured: float) -> Look:
    usual = Look(
        round=0, gradient=2.0, surrogate=4.0, distance=1.0, dissimilarity=(1.0, 1.0), objective=1.0, smooth=1.0,
        variance=0.0, gap=0.0, alpha=0.5, chi_wp=0.25, chi_pw=0.5, moved=0.01,
    )  # fmt: skip
    return replace(usual, **measured)


def test_the_bound_of_lemma_2_is_the_paper_s() -> None:
    """χ²_{w‖p}(A²‖∇f̃‖² + σ_G²), at the look that comes nearest to it."""
    tight = a_look(distance=2.0)
    found = gradient_distance([a_look(), tight, a_look(surrogate=400.0)], K)
    assert found["measured"] == 2.0
    assert found["bound"] == pytest.approx(0.25 * (1.0 * 4.0 + 9.0))
    assert found["ratio"] == pytest.approx(2.0 / 3.25)


def test_the_bound_of_lemma_3_is_the_paper_s() -> None:
    """5K(η_L²σ_L² + 6Kη_L²(1 − α)²ρ² + 6Kη_L²σ_G²) + 30K²(A² + 1)η_L²‖∇f‖², η_L = .01 and K = 2."""
    found = local_updates([a_look(moved=0.001), a_look(moved=0.02)], K, SMALL)
    noise = 5 * 2 * (1e-4 * 0.25 + 12 * 1e-4 * 0.25 * 4.0 + 12 * 1e-4 * 9.0)
    assert found["bound"] == pytest.approx(noise + 30 * 4 * 2 * 1e-4 * 2.0)
    assert (found["measured"], found["applies"]) == (0.02, True)
    assert found["ratio"] == pytest.approx(0.02 / found["bound"])
    assert not local_updates([a_look()], K, assign(SMALL, ["model.learning_rate=0.04"]))["applies"]


def test_rho_is_the_gap_between_the_gradients_on_rated_and_on_pseudo_rows() -> None:
    """Client 0 has one rated and one pseudo row: α = ½, so both gradients are doubled; client 1 has α = ⅔."""
    client, rated = np.array([0, 0, 1, 1, 1]), np.array([True, False, True, True, False])
    gradient = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.0]])
    rows = GradientRows(2, client, np.array([0, 1, 0, 1, 2]), rated, gradient, np.zeros(5), 3, 1.0)
    gaps = [4 * 1.0 + 4 * 4.0, 9 / 4 * 3.0 + 9 * 0.25]
    found = look(0, rows, np.array([0.25, 0.75]), 0.0, batch_size=0)
    assert found.gap == pytest.approx(max(gaps))
    assert found.alpha == pytest.approx(0.6)
    assert found.chi_wp == pytest.approx(0.0625 / 0.25 + 0.0625 / 0.75)
    assert found.chi_pw == pytest.approx(0.0625 / 0.5 * 2)
