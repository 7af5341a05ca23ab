"""The theory's numbers by plain loops over clients and rows, with constants that no other formula would meet.

And the theorem's conditions, the fit, and what the lemmas say of any numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fedrecplus.config import Config, assign
from fedrecplus.experiments.theory import corollary as corollaries, lemmas
from fedrecplus.experiments.theory.constants import Constants, Look, constants, dissimilarity, look, weights_in_words
from fedrecplus.experiments.theory.gradients import GradientRows
from fedrecplus.experiments.theory.theorem import bound, conditions, constant_c, fit
from fedrecplus.protocol import Upload
from fedrecplus.randomness import keys, normal, subkey

K = Constants(L=1.3, sigma_L=0.7, sigma_G=3.1, A=1.7, rho=2.3, alpha=0.6, chi_wp=0.21, chi_pw=0.37)
STEPS = ["model.learning_rate=0.004", "model.local_epochs=3", "server_optimizer.learning_rate=5"]
SMALL = assign(Config(), [*STEPS, "aggregation.normalise=cohort"])
RATE, EPOCHS, ETA = 0.004, 3, 5.0
Rows = list[tuple[int, int, bool]]
ROWS: Rows = [(0, 0, True), (0, 2, True), (0, 3, False), (1, 0, True), (1, 1, True), (2, 1, True), (2, 2, False)]
"""client, item, rated: client 1 has no pseudo item"""


def gradient_rows(seed: int = 0, rows: Rows = ROWS) -> GradientRows:
    rng = np.random.default_rng(seed)
    client, item, rated = (np.array(column) for column in zip(*rows, strict=True))
    gradient = rng.normal(size=(len(rows), 2)) * np.where(client == 1, 9.0, 1.0)[:, None]
    return GradientRows(int(client.max()) + 1, client, item, rated, gradient, rng.random(len(rows)), 4, 2.5)


def of_rated(rows: GradientRows, u: int) -> Any:
    """∇F̄_u: the rated rows, scaled up to stand for all."""
    own = [n for n in range(len(rows.client)) if rows.client[n] == u]
    table, share = np.zeros((rows.items, 2)), len(own) / sum(rows.rated[n] for n in own)
    for n in own:
        if rows.rated[n]:
            table[rows.item[n]] += share * rows.gradient[n]
    return table


def test_a_look_is_what_loops_over_clients_find() -> None:
    rows, p = gradient_rows(), np.array([0.2, 0.5, 0.3])
    tables = [of_rated(rows, u) for u in range(3)]
    of_w, of_p = sum(tables) / 3, sum(w * table for w, table in zip(p, tables, strict=True))
    found = look(7, rows, p, 0.25, batch_size=1)
    assert (found.round, found.moved, found.smooth) == (7, 0.25, 2.5)
    assert found.gradient == pytest.approx((of_w**2).sum())
    assert found.surrogate == pytest.approx((of_p**2).sum())
    assert found.distance == pytest.approx(((of_w - of_p) ** 2).sum())
    norms = [float((table**2).sum()) for table in tables]
    assert found.dissimilarity == pytest.approx((sum(norms) / 3, float(np.dot(p, norms))))
    assert found.alpha == pytest.approx(5 / 7)
    apart = [(1 / 3 - weight) ** 2 for weight in p]
    assert found.chi_wp == pytest.approx(sum(d / weight for d, weight in zip(apart, p, strict=True)))
    assert found.chi_pw == pytest.approx(3 * sum(apart))
    scale = [3 / 2, 1.0, 2.0]
    losses = sum(scale[u] * loss for u, loss, rated in zip(rows.client, rows.loss, rows.rated, strict=True) if rated)
    assert found.objective == pytest.approx(losses / 3)
    # a batch of one of n rows: n − 1 times the squared norm of the whole gradient
    whole = [sum(float(g @ g) for u, g in zip(rows.client, rows.gradient, strict=True) if u == v) for v in range(3)]
    assert found.variance == pytest.approx(max((n - 1) * norm for n, norm in zip((3, 2, 2), whole, strict=True)))


def test_the_gap_is_that_of_clients_with_pseudo_items() -> None:
    """Client 1, whose gradient is the largest, has none."""
    rows, gaps = gradient_rows(), []
    for u, (alpha, n) in {0: (2 / 3, 3), 2: (1 / 2, 2)}.items():
        own = [(rows.gradient[i], rows.rated[i]) for i in range(7) if rows.client[i] == u]
        assert len(own) == n
        gaps.append(sum(float(g @ g) / (alpha if rated else 1 - alpha) ** 2 for g, rated in own))
    assert look(0, rows, np.full(3, 1 / 3), 0.0, 0).gap == pytest.approx(max(gaps))
    alone = gradient_rows(rows=[row for row in ROWS if row[2]])
    assert look(0, alone, np.full(3, 1 / 3), 0.0, 0).gap == 0.0


def a_look(**measured: Any) -> Look:
    usual = Look(
        round=0, gradient=2.0, surrogate=4.0, distance=1.0, dissimilarity=(1.0, 1.0), objective=1.0, smooth=1.5,
        variance=0.25, gap=9.0, alpha=0.5, chi_wp=0.25, chi_pw=0.5, moved=0.01,
    )  # fmt: skip
    return replace(usual, **measured)


def test_the_constants_are_the_worst_of_all_looks() -> None:
    low = a_look(smooth=1.0, variance=0.04, gap=4.0, alpha=0.7, chi_wp=0.1, chi_pw=0.2)
    found = constants([low, a_look(), low])
    assert (found.L, found.sigma_L, found.rho, found.alpha) == (1.5, 0.5, 3.0, 0.5)
    assert (found.chi_wp, found.chi_pw) == (0.25, 0.5)


@pytest.mark.parametrize(
    ("means", "norms", "slope", "left"),
    [
        ([1.0, 1.2, 1.4, 1.6], [8.0, 8.6, 9.2, 9.8], 3.0, 5.0),  # on a line
        ([1.0, 1.2, 1.4, 1.6], [8.0, 8.1, 8.2, 8.3], 1.0, 7.0),  # a slope below one counts as one
        ([1.0, 1.0, 1.0, 1.0], [8.0, 9.0, 8.5, 8.0], 1.0, 8.0),  # nothing to fit a slope to
        ([10.0, 20.0, 30.0, 40.0], [5.0, 15.0, 25.0, 35.0], 1.0, 0.0),  # less than the mean's own
    ],
)
def test_dissimilarity_is_a_slope_and_what_is_left_over_it(
    means: list[float], norms: list[float], slope: float, left: float
) -> None:
    """σ_G² is the worst of mean ‖∇F_u‖² − (A² + 1)‖mean ∇F_u‖²."""
    pairs = list(zip(means, norms, strict=True))
    looks = [
        a_look(gradient=one[0], surrogate=other[0], dissimilarity=(one[1], other[1]))
        for one, other in zip(pairs[::2], pairs[1::2], strict=True)
    ]
    assert dissimilarity(looks) == pytest.approx(((slope - 1.0) ** 0.5, left**0.5), abs=1e-7)


def test_the_theorem_s_bound_and_its_parts_by_hand() -> None:
    """Paper: Theorem 1, Φ."""
    chi, A2, L2, G2, S2, noise = 0.21, 1.7**2, 1.3**2, 3.1**2, 0.7**2, 0.4**2 * 2.3**2
    c = 0.5 - 10 * L2 * EPOCHS**2 * RATE**2 * (A2 + 1) * (0.37 * A2 + 1)
    assert constant_c(K, SMALL) == pytest.approx(c)
    drift = 5 / 2 * RATE**2 * EPOCHS * L2 * (S2 + 6 * EPOCHS * G2 + 6 * EPOCHS * noise)
    variance = ETA * RATE * L2**0.5 / 2 * (S2 + noise)
    weighing = 20 * L2 * EPOCHS**2 * (A2 + 1) * RATE**2 * chi * G2
    factor = 2 * (chi * A2 + 1)
    found = bound(K, SMALL, 7.0, 50)
    assert found["vanishing"] == pytest.approx(factor * 7.0 / (c * ETA * RATE * EPOCHS * 50))
    assert found["drift"] == pytest.approx(factor * drift / c)
    assert found["variance"] == pytest.approx(factor * variance / c)
    assert found["weighing"] == pytest.approx(factor * weighing / c)
    assert found["floor"] == pytest.approx(2 * chi * G2)
    assert found["bound"] == pytest.approx(sum(found[part] for part in found if part != "bound"))


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


@pytest.mark.parametrize(
    ("what", "change", "at"),
    [
        ("η_L < 1/(8LK)", "model.learning_rate", 1 / (8 * 1.3 * 3)),
        ("η ≤ 1/(η_L L)", "server_optimizer.learning_rate", 1 / (0.004 * 1.3)),
    ],
)
def test_the_conditions_break_where_the_theorem_says(what: str, change: str, at: float) -> None:
    held = [
        next(own for own in conditions(K, assign(SMALL, [f"{change}={factor * at!r}"])) if own.what == what)
        for factor in (0.999, 1.001)
    ]
    assert [condition.holds for condition in held] == [True, False]
    assert held[0].found == f"{0.999 * at:.3g} against {at:.3g}"


def test_a_condition_that_is_met_to_the_last_bit() -> None:
    """η_L = 1/(8LK), c = 0 and η_L = c break it; η = 1/(η_L L) doesn't."""

    def holds(what: str, k: Constants, rate: float, eta: float = 1.0) -> bool:
        sizes = [f"model.learning_rate={rate!r}", f"server_optimizer.learning_rate={eta!r}", "model.local_epochs=1"]
        return next(own for own in conditions(k, assign(SMALL, sizes)) if own.what == what).holds

    even, level = replace(K, L=1.25), replace(K, L=0.5, A=1.0, chi_pw=0.6)
    assert not holds("η_L < 1/(8LK)", even, 0.1)
    assert constant_c(level, assign(SMALL, ["model.learning_rate=0.25", "model.local_epochs=1"])) == 0.0
    assert not holds("c > 0", level, 0.25)
    plain = replace(K, L=4 / 11, A=0.0, chi_pw=0.0)
    assert constant_c(plain, assign(SMALL, ["model.learning_rate=0.34375", "model.local_epochs=1"])) == 0.34375
    assert not holds("η_L < c", plain, 0.34375)
    assert holds("η ≤ 1/(η_L L)", replace(K, L=2.0), 0.5, 1.0)
    decays = ["model.learning_rate_decay=0.5", "server.cooldown=0.125"]
    told = next(own for own in conditions(K, assign(SMALL, decays)) if own.what == "constant step sizes")
    assert told.found == "decay 0.5, cooldown 0.125"


def test_the_fit_finds_rate_and_floor() -> None:
    t = [1, 2, 4, 8, 16, 32, 64, 128]
    found = fit(t, [5.0 / np.sqrt(n) + 2.0 / n + 0.3 for n in t])
    assert (found.a, found.b, found.c) == pytest.approx((5.0, 2.0, 0.3), rel=1e-6)
    assert found.r_squared == pytest.approx(1.0)
    assert found.at([4]) == pytest.approx([3.3])


def test_a_fit_that_is_no_perfect_one_explains_a_share_of_the_variance() -> None:
    t, y = [1, 2, 4, 8, 16], [0.3, 0.24, 0.15, 0.14, 0.1]
    found = fit(t, y)
    rest = sum((one - other) ** 2 for one, other in zip(found.at(t), y, strict=True))
    assert found.r_squared == pytest.approx(1 - rest / sum((own - 0.186) ** 2 for own in y))
    assert 0.9 < found.r_squared < 0.999
    assert fit(t, [0.5] * 5).r_squared == 1.0


def test_the_largest_c_is_what_the_local_step_is_held_against() -> None:
    """c > 0 and η_L < c break apart: c falls to zero as η_L grows."""
    told = {}
    for rate in (0.0195, 0.02, 0.021):
        own = {condition.what: condition for condition in conditions(K, assign(SMALL, [f"model.learning_rate={rate}"]))}
        c = 0.5 - 10 * (1.3 * 3 * rate) ** 2 * (1.7**2 + 1) * (0.37 * 1.7**2 + 1)
        assert (own["c > 0"].holds, own["η_L < c"].holds) == (c > 0, rate < c)
        assert (own["c > 0"].found, own["η_L < c"].found) == (f"c = {c:.3g}", f"{rate:.3g} against {c:.3g}")
        told[rate] = (c > 0, rate < c)
    assert list(told.values()) == [(True, True), (True, False), (False, False)]


@pytest.mark.parametrize(("A", "chi"), [(1.7, 0.37), (0.0, 0.0), (0.3, 5.0)])
def test_the_corollary_s_steps_by_hand(A: float, chi: float) -> None:
    k = replace(K, A=A, chi_pw=chi)
    smooth = 0.9 * min(1 / 8, 1 / (40 * (A**2 + 1) * (chi * A**2 + 1)) ** 0.5)
    rate, eta = corollaries.corollary_steps(90, 10, 3, k)
    assert (rate, eta) == pytest.approx((smooth / (3 * 1.3 * 3), 0.9 * 3 / smooth))
    first, _ = corollaries.corollary_steps(10, 10, 3, k)
    assert constant_c(k, assign(SMALL, [f"model.learning_rate={first}"])) >= 0.25
    assert eta * first * 1.3 == pytest.approx(0.9)


def horizon(rounds: int, **other: Any) -> corollaries.Horizon:
    usual = corollaries.Horizon(rounds, 0.25, 30.0, smallest=8.0 / rounds, floor=0.1, bound=77.0, failed=[])
    return replace(usual, **other)


def test_the_corollary_in_words_names_the_ends_what_fails_and_where_the_floor_limits_nothing() -> None:
    three = [horizon(10), horizon(20, failed=["c > 0", "η_L < c"], bound=None), horizon(40, floor=0.3)]
    rate, failed, floor = corollaries._says(three, -0.251)
    assert rate.startswith("With the corollary's steps, T from 10 to 40: min ‖∇f‖² goes from 0.8 to 0.2, as T to the")
    assert "-0.25. " in rate
    assert failed == "T = 20: c > 0; η_L < c does not hold."
    assert floor.startswith("Its floor, 2χ²σ_G², is 0.3 and more")
    level = [horizon(10, floor=0.8), horizon(40)]  # a floor as high as what was measured says something
    assert len(corollaries._says(level, -0.5)) == 1
    _, rows = corollaries.horizons_table({"horizons": [vars(own) for own in three]})
    assert rows[0] == ["10", "0.25", "30", "0.8", "0.1", "77"]
    assert rows[1][-1] == "–"


def test_batches_along_a_direction_by_plain_draws() -> None:
    """Paper: Lemma 1. The half of the clients with the most rows, and twelve of them at most."""
    rng, seed = np.random.default_rng(3), 5
    client = np.repeat(np.arange(40), np.arange(3, 43))
    gradient = rng.exponential(size=(len(client), 2))
    rows = GradientRows(40, client, np.arange(len(client)), np.ones(len(client), bool), gradient, client, 900, 1.0)
    found = lemmas.gaussian(rows, seed)
    chosen = [39 - int(place) for place in np.linspace(0, 19, 12)]
    assert (found["clients"], found["draws"], found["batch"]) == (12, 2000, [1, 2, 4, 8, 16, 32, 64, 128])

    def far(values: Any) -> float:
        return float(stats.kstest((values - values.mean()) / values.std(), "norm").statistic)

    for place, size in enumerate(found["batch"][:3]):
        distances = []
        for u in chosen:
            own = gradient[client == u]
            direction = normal(subkey(seed, "direction", u), np.arange(own.size)).reshape(own.shape)
            drawn = keys(subkey(seed, "batch", u, size), np.arange(2000 * size)) % np.uint64(len(own))
            along = [len(own) * float(own[row] @ direction[row]) for row in drawn.tolist()]
            distances.append(far(np.array(along).reshape(2000, size).mean(axis=1)))
        assert found["distance"][place] == pytest.approx(np.mean(distances))
    best = [far(normal(subkey(seed, "at-best", n), np.arange(2000))) for n in range(20)]
    assert found["at_best"] == pytest.approx(np.mean(best))
    above = [(b, d) for b, d in zip(found["batch"], found["distance"], strict=True) if d > 1.5 * found["at_best"]]
    assert found["slope"] == pytest.approx(np.polyfit(*np.log(above).T, 1)[0])
    assert len(above) > 2


def test_batches_become_gaussian_at_the_square_root_s_rate() -> None:
    rng = np.random.default_rng(0)
    gradient = rng.exponential(size=(600, 2)) ** 2
    client = np.repeat([0, 1, 2], 200)
    rows = GradientRows(3, client, np.arange(600), np.ones(600, bool), gradient, np.zeros(600), 600, 1.0)
    found = lemmas.gaussian(rows, seed=0)
    assert found["distance"][0] > 4 * found["distance"][-1]
    assert found["slope"] == pytest.approx(-0.5, abs=0.15)


def test_few_clients_few_points_and_gradients_without_spread_are_no_fault() -> None:
    """Two clients: one of them; a gradient that is the same in every row is at distance one, whatever the batch."""
    even = GradientRows(2, np.array([0, 1, 1]), np.arange(3), np.ones(3, bool), np.zeros((3, 2)), np.zeros(3), 3, 1.0)
    found = lemmas.gaussian(even, 0)
    assert (found["clients"], found["distance"]) == (1, [1.0] * 8)
    assert found["slope"] == pytest.approx(0.0)
    at_once = normal(subkey(0, "other"), np.arange(4000)) / normal(subkey(0, "direction", 0), np.arange(4000))
    every = np.ones(4000, bool)
    smooth = GradientRows(1, 0 * every, np.arange(4000), every, at_once[:, None], at_once, 4000, 1.0)
    assert lemmas.gaussian(smooth, 0)["slope"] is None


@pytest.mark.parametrize(("shape", "seed", "above"), [(16, 0, 3), (40, 3, 2)])
def test_three_points_are_enough_for_a_slope(shape: int, seed: int, above: int) -> None:
    drawn, every = np.random.default_rng(seed).gamma(shape, size=4000), np.ones(4000, bool)
    at_once = drawn / normal(subkey(0, "direction", 0), np.arange(4000))
    rows = GradientRows(1, 0 * every, np.arange(4000), every, at_once[:, None], at_once, 4000, 1.0)
    found = lemmas.gaussian(rows, 0)
    assert [own > 1.5 * found["at_best"] for own in found["distance"]] == [True] * above + [False] * (8 - above)
    slope = np.polyfit(np.log([1, 2, 4]), np.log(found["distance"][:3]), 1)[0]
    assert found["slope"] == (pytest.approx(slope) if above == 3 else None)


def test_the_wasserstein_bound_by_dense_tables() -> None:
    """D ≤ m Σ p_u² W_u, with every client's update as a whole table. Paper: Eq. (14)."""
    rng = np.random.default_rng(2)
    places = [np.array([0, 2]), np.array([1, 2, 4]), np.array([0, 1, 3, 4])]
    sent = [Upload(u, items, rng.normal(size=(len(items), 2))) for u, items in enumerate(places)]
    p, m = np.array([0.2, 0.3, 0.5]), 3
    mean, variance = np.zeros((m, 5, 2)), np.zeros((m, 5, 2))
    for u, upload in enumerate(sent):
        for row, item in enumerate(upload.items):
            mean[u, item] = upload.delta[row]
            variance[u, item] = (len(upload.items) - 1) * upload.delta[row] ** 2
    mu, spread = mean.sum(0) / m, variance.sum(0) / m
    W = [((mean[u] - mu) ** 2).sum() + ((variance[u] ** 0.5 - spread**0.5) ** 2).sum() for u in range(m)]
    of_p, joint = sum(p[u] * mean[u] for u in range(m)), sum(p[u] ** 2 * variance[u] for u in range(m))
    left = ((of_p - mu) ** 2).sum() + ((joint**0.5 - spread**0.5) ** 2).sum()
    found = lemmas.wasserstein_bound(sent, p, (5, 2), batch_size=1)
    right = m * sum(p[u] ** 2 * W[u] for u in range(m))
    assert found == pytest.approx(
        {
            "distance": left,
            "bound": right,
            "ratio": left / right,
            "best": m / sum(1 / w for w in W),
            "uniform": sum(W) / m,
        }
    )


def uploads(deviation: float) -> list[Upload]:
    rng = np.random.default_rng(4)
    common = rng.normal(size=(6, 2))
    return [Upload(n, np.arange(6), common + deviation * rng.normal(size=(6, 2))) for n in range(8)]


@pytest.mark.parametrize("deviation", [0.1, 1.0, 5.0])
def test_the_best_weights_make_the_wasserstein_bound_smallest(deviation: float) -> None:
    p = np.random.default_rng(5).dirichlet(np.ones(8))
    found = lemmas.wasserstein_bound(uploads(deviation), p, (6, 2), batch_size=1)
    assert found["best"] <= min(found["bound"], found["uniform"]) + 1e-12


def test_the_wasserstein_bound_holds_where_clients_differ_much_and_fails_where_they_agree() -> None:
    """Independent clients that all have the global distribution are at no distance from it, but their mean has less
    variance than any of them, so it is."""
    p = np.full(8, 1 / 8)
    assert lemmas.wasserstein_bound(uploads(5.0), p, (6, 2), batch_size=1)["ratio"] <= 1.0
    assert lemmas.wasserstein_bound(uploads(0.01), p, (6, 2), batch_size=1)["ratio"] > 1.0


def test_lemma_2_and_3_at_the_look_that_comes_nearest() -> None:
    """χ²(A²‖∇f̃‖² + σ_G²), and 5K(…) + 30K²(A² + 1)η_L²‖∇f‖²."""
    looks = [a_look(), a_look(distance=1.5, chi_wp=0.11), a_look(surrogate=9.0, moved=0.2, gradient=3.0)]
    bounds = [own.chi_wp * (1.7**2 * own.surrogate + 3.1**2) for own in looks]
    found = lemmas.gradient_distance(looks, K)
    assert (found["measured"], found["bound"], found["ratio"]) == pytest.approx((1.5, bounds[1], 1.5 / bounds[1]))
    even = lemmas.gradient_distance([a_look(chi_wp=0.0, distance=0.0)], K)
    assert even == {"measured": 0.0, "bound": 0.0, "ratio": 0.0}
    small = replace(K, A=0.0, sigma_G=1.0)  # a bound below one, beside one of nothing
    found = lemmas.gradient_distance([a_look(chi_wp=0.0, distance=0.0), a_look(distance=0.05)], small)
    assert found == pytest.approx({"measured": 0.05, "bound": 0.25, "ratio": 0.2})
    noise = 0.7**2 + 6 * EPOCHS * (1 - 0.6) ** 2 * 2.3**2 + 6 * EPOCHS * 3.1**2
    bounds = [5 * EPOCHS * RATE**2 * noise + 30 * EPOCHS**2 * (1.7**2 + 1) * RATE**2 * own.gradient for own in looks]
    found = lemmas.local_updates(looks, K, SMALL)
    assert (found["measured"], found["bound"], found["ratio"]) == pytest.approx((0.2, bounds[2], 0.2 / bounds[2]))
    alike = replace(K, sigma_L=0.0, sigma_G=0.0, rho=0.0)  # the bound follows ‖∇f‖², and the nearer look moved less
    assert lemmas.local_updates([a_look(moved=0.2, gradient=3.0), a_look(moved=0.1, gradient=1.0)], alike, SMALL)[
        "measured"
    ] == pytest.approx(0.1)
    even = replace(K, L=1.25)
    for rate, applies in ((0.0333, True), (1.0 / 30.0, True), (0.0334, False)):
        config = assign(SMALL, [f"model.learning_rate={rate!r}"])
        assert lemmas.local_updates(looks, even, config)["applies"] == applies


@pytest.mark.parametrize(
    ("chi", "said"),
    [
        ([0.3, 0.001, 0.004, 0.002, 0.7], "even in rounds 2 to 7, most uneven in round 9 (0.70)."),
        (
            [0.01, 0.3, 0.2, 0.02, 0.1],
            "even in no round that was looked at, most uneven in round 2 (0.30), 0.10 in round 9.",
        ),
        ([0.3, 0.2, 0.009, 0.2, 0.1], "even in round 4, most uneven in round 1 (0.30), 0.10 in round 9."),
    ],
)
def test_how_uneven_weights_were_in_words(chi: list[float], said: str) -> None:
    assert weights_in_words({"rounds": [1, 2, 4, 7, 9], "chi_wp": chi}).endswith(f"uniform ones: {said}")


def test_rows_of_the_lemmas_say_what_does_not_hold() -> None:
    gauss = {"distance": [0.5, 0.25, 0.125], "batch": [1, 2, 4], "slope": -0.5, "at_best": 0.0625}
    held = {"measured": 1.0, "bound": 2.0, "ratio": 0.5}
    found = {"gaussian": gauss, "wasserstein": {"distance": 3.0, "bound": 2.0, "ratio": 1.5}, "gradient_distance": None}
    _, rows = lemmas.lemmas_table({**found, "local_updates": {**held, "applies": False}})
    assert rows[0][1:] == ["3", "2", "1.5, does not hold"]
    assert rows[1][1:] == ["", "", "no weights, so nothing to bound"]
    assert rows[2][1:] == ["1", "2", "0.5 (its step-size condition does not hold)"]
    assert rows[3][1:] == ["0.500 (B=1) to 0.125 (B=4)", "0.062 for normal draws", "slope -0.50 in log B"]
    gauss["slope"] = None
    level = {**held, "ratio": 1.0}  # a bound that is met exactly holds
    _, rows = lemmas.lemmas_table({**found, "wasserstein": level, "local_updates": {**held, "applies": True}})
    assert (rows[0][3], rows[2][3], rows[3][3]) == ("1", "0.5", "too few points for a slope")
