"""The weights are the paper's: p* solves its problem, and the distance is W₂² where the paper's form of it is exact."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings, strategies as st

from fedrecplus.config import check
from fedrecplus.engines import engine_of, prepare, rounds
from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import check_full, update_covariance, update_variance
from fedrecplus.parts.aggregation._covariance import full_trace
from fedrecplus.parts.aggregation.wasserstein import LARGEST, SMALLEST, Settings, Wasserstein, distance, public_scale
from fedrecplus.parts.channel import RingSettings
from fedrecplus.rounds import sums_of
from fedrecplus.testing import example_config
from fedrecplus.testing.aggregation import COLUMNS, ITEMS, some_broadcast, some_uploads
from fedrecplus.testing.example import small_ratings

PAPER = Settings(rows="table", bound=0.0, temperature=1.0)
CELLS = ITEMS * COLUMNS
seeds = st.integers(0, 10**6)
rows_of_distance = st.sampled_from(["table", "own", "mean-own"])


def test_a_weight_is_bounded_by_the_least_distance_and_may_look_at_the_whole_table() -> None:
    assert Wasserstein(changed(temperature=0.5)).largest_weight == pytest.approx(SMALLEST**-0.5)
    assert [Wasserstein(changed(rows=rows)).over_table for rows in ("table", "own", "mean-own")] == [True, False, False]


def changed(**options: object) -> Settings:
    return msgspec.structs.replace(PAPER, **options)


def on_table(items: np.ndarray, rows: np.ndarray) -> np.ndarray:
    table = np.zeros((ITEMS, COLUMNS))
    table[items] = rows
    return table


@settings(max_examples=20)
@given(seeds, st.sampled_from(["none", "diagonal"]))
def test_the_weights_minimise_the_objective_of_the_paper(seed: int, covariance: str) -> None:
    """min Σ p_u² (‖Δ_u − step‖² + tr(M²)) subject to Σ p_u = 1 and p_u ≥ 0, by a solver that knows no closed form."""
    uploads, message = some_uploads(5, seed), some_broadcast(seed, covariance=covariance)
    D = np.array([((on_table(u.items, u.delta) - message.last_step) ** 2).sum() for u in uploads])
    if covariance == "diagonal":
        roots = [np.sqrt(len(u.items) - 1) * np.abs(u.delta) for u in uploads]
        M = [np.sqrt(message.last_covariance) - on_table(u.items, r) for u, r in zip(uploads, roots, strict=True)]
        D += [(m**2).sum() for m in M]
    solved = scipy.optimize.minimize(
        lambda p: (p**2 * D).sum() / D.mean(), np.full(5, 0.2), jac=lambda p: 2.0 * p * D / D.mean(), method="SLSQP",
        bounds=[(0.0, 1.0)] * 5, constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    how = changed(covariance=covariance, batch_size=1)
    weights = np.array([Wasserstein(how).weight(u.items, u.delta, message) for u in uploads])
    np.testing.assert_allclose(weights / weights.sum(), solved.x, rtol=0, atol=1e-5)


@settings(max_examples=25)
@given(seeds, rows_of_distance, st.sampled_from(["none", "diagonal", "full"]))
def test_without_temperature_the_weights_are_uniform_exactly(seed: int, rows: str, covariance: str) -> None:
    uploads, message = some_uploads(6, seed), some_broadcast(seed, covariance=covariance)
    cold = [f"aggregation.rows={rows}", f"aggregation.covariance={covariance}", "aggregation.temperature=0"]
    found = sums_of(uploads, message, example_config("aggregation.rule=wasserstein", *cold))
    np.testing.assert_array_equal(found.total, sums_of(uploads, message, example_config()).total)


@settings(max_examples=25)
@given(seeds, st.floats(0.05, 2.0), st.floats(0.01, 1.0), rows_of_distance)
def test_the_bound_bounds_the_weight_of_a_client(seed: int, temperature: float, bound: float, rows: str) -> None:
    """A copy of the last step earns the most that can be earned, and that is (bound · size of the step)^(−τ)."""
    how, message = changed(temperature=temperature, bound=bound, rows=rows), some_broadcast(seed)
    step = message.last_step
    squares = (step**2).sum(axis=1)
    for upload in some_uploads(6, seed):
        size = {"table": squares.sum(), "own": squares[upload.items].sum(), "mean-own": squares[upload.items].mean()}
        most = (bound * size[rows]) ** -temperature
        assert Wasserstein(how).weight(upload.items, upload.delta, message) <= most * (1 + 1e-9)
        if rows != "table":
            assert Wasserstein(how).weight(upload.items, step[upload.items], message) == pytest.approx(most)


def test_exact_agreement_weighs_the_inverse_of_the_bound_more_than_idling_and_is_finite_without_one() -> None:
    message, items = some_broadcast(), np.array([1, 4, 5])
    bounded = Settings(bound=0.1)
    idle = Wasserstein(bounded).weight(items, np.zeros((3, COLUMNS)), message)
    assert Wasserstein(bounded).weight(items, message.last_step[items], message) / idle == pytest.approx(10.0)
    assert np.isfinite(Wasserstein(PAPER).weight(np.arange(ITEMS), message.last_step, message))


@settings(max_examples=15)
@given(seeds)
def test_the_full_trace_is_that_of_scipys_matrix_roots(seed: int) -> None:
    message, upload = some_broadcast(seed, covariance="full"), some_uploads(1, seed)[0]
    own = update_covariance(upload.items, upload.delta, ITEMS, 1)
    values, vectors = np.linalg.eigh(own)
    assert values.min() > -1e-9, "a covariance has no negative variance"
    # scipy's root of a singular matrix is inexact, so the covariance is lifted a little off zero
    lifted = (vectors * (np.maximum(values, 0.0) + 1e-12)) @ vectors.T
    M = np.real(scipy.linalg.sqrtm(message.last_covariance + 1e-12 * np.eye(CELLS)) - scipy.linalg.sqrtm(lifted))
    trace = full_trace(upload.items, upload.delta, message.last_covariance, 1).sum()
    assert trace == pytest.approx(np.trace(M @ M), rel=1e-3, abs=1e-4)


@settings(max_examples=15)
@given(seeds)
def test_for_commuting_covariances_the_distance_is_the_true_one(seed: int) -> None:
    """W₂² = ‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2 (Σ₁^½ Σ₂ Σ₁^½)^½), with Σ_g that has the client's own directions."""
    step, upload = some_broadcast(seed).last_step, some_uploads(1, seed)[0]
    own = update_covariance(upload.items, upload.delta, ITEMS, 1)
    _, vectors = np.linalg.eigh(own)
    covariance = (vectors * np.random.default_rng(seed).uniform(0.5, 2.0, CELLS)) @ vectors.T
    root = np.real(scipy.linalg.sqrtm(covariance))
    inner = np.real(scipy.linalg.sqrtm(root @ (own + 1e-10 * np.eye(CELLS)) @ root))
    means = ((on_table(upload.items, upload.delta) - step) ** 2).sum()
    true = means + np.trace(covariance + own - 2.0 * inner)
    found = distance(upload.items, upload.delta, step, covariance, changed(covariance="full", batch_size=1))
    assert found == pytest.approx(true, rel=1e-4, abs=1e-3)


@settings(max_examples=20)
@given(seeds, rows_of_distance)
def test_diagonal_and_full_agree_where_the_covariance_is_diagonal(seed: int, rows: str) -> None:
    """An update with one number other than zero has no covariance between numbers."""
    message, upload = some_broadcast(seed, covariance="diagonal"), some_uploads(1, seed)[0]
    delta = np.zeros_like(upload.delta)
    delta[seed % len(delta), seed % COLUMNS] = 1.7
    narrow, wide = message.last_covariance, np.diag(message.last_covariance.ravel())
    expected, found = (
        distance(upload.items, delta, message.last_step, given, changed(covariance=kind, rows=rows, batch_size=1))
        for kind, given in (("diagonal", narrow), ("full", wide))
    )
    assert found == pytest.approx(expected)


def test_the_variance_is_that_of_drawing_one_row_at_a_time_and_the_diagonal_of_the_covariance() -> None:
    """Row i is drawn with probability 1/n and then stands for all: n·g_i in row i, zero elsewhere."""
    delta = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, 1.0], [0.0, 1.0, 2.0]])
    draws = np.stack([on_table(np.array([i]), 3.0 * delta[[i]])[:3].ravel() for i in range(3)])
    covariance = update_covariance(np.arange(3), delta, 3, 1)
    np.testing.assert_allclose(covariance, np.cov(draws.T, bias=True), rtol=0, atol=1e-12)
    for batch_size in (0, 2, 100):
        for upload in some_uploads():
            full = np.diag(update_covariance(upload.items, upload.delta, ITEMS, batch_size)).reshape(ITEMS, COLUMNS)
            variance = on_table(upload.items, update_variance(upload.delta, batch_size))
            np.testing.assert_allclose(full, variance, rtol=0, atol=1e-12)


def test_a_batch_of_several_rows_has_the_covariance_of_every_batch_there_is() -> None:
    """Drawn without replacement, as a local epoch draws them: a batch of all rows is the gradient itself."""
    delta = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, 1.0], [0.0, 1.0, 2.0], [-1.0, 0.5, 1.5]])
    for size in (1, 2, 3, 4):
        batches = [np.array(batch) for batch in itertools.combinations(range(4), size)]
        draws = np.stack([on_table(batch, 4 / size * delta[batch])[:4].ravel() for batch in batches])
        covariance = update_covariance(np.arange(4), delta, 4, size)
        np.testing.assert_allclose(covariance, np.cov(draws.T, bias=True), rtol=0, atol=1e-12)


@pytest.mark.parametrize("covariance", ["diagonal", "full"])
def test_large_batches_leave_the_distance_between_the_means(covariance: str) -> None:
    """Eq. (23) is the limit of Eq. (19): tr(M²) shrinks with B, and with all rows in a batch nothing is left of it."""
    step, uploads = some_broadcast().last_step, [upload for upload in some_uploads() if len(upload.items) > 2]
    cells = (CELLS, CELLS) if covariance == "full" else step.shape
    for upload in uploads:
        sizes = [
            distance(upload.items, upload.delta, step, np.zeros(cells), changed(covariance=covariance, batch_size=size))
            for size in (1, 2, len(upload.items), 10**9, 0)
        ]
        of_means = distance(upload.items, upload.delta, step, np.zeros((0, COLUMNS)), PAPER)
        assert sizes[0] > sizes[1] > sizes[2]
        assert sizes[2:] == pytest.approx([of_means] * 3)


def test_a_full_covariance_of_a_large_table_is_refused() -> None:
    check_full(2_000)
    with pytest.raises(UserError, match="full"):
        update_covariance(np.array([0]), np.ones((1, 20)), 1682, 0)


@settings(max_examples=30)
@given(seeds, st.floats(0.05, 2.0), rows_of_distance, st.sampled_from([1e-9, 1e-3, 1.0, 1e3, 1e9]))
def test_clients_that_weigh_themselves_have_the_same_mean_and_a_bounded_weight(
    seed: int, temperature: float, rows: str, size: float
) -> None:
    """The factor cancels, whatever the size of steps; it is that of the step, so weights don't depend on the unit."""
    message = some_broadcast(seed)
    uploads = [replace(upload, delta=size * upload.delta) for upload in some_uploads(6, seed)]
    message = replace(message, last_step=size * message.last_step)
    of_server = changed(temperature=temperature, rows=rows, bound=0.1)
    of_client = msgspec.structs.replace(of_server, weigh_on="client")
    plain, scaled = (
        np.array([Wasserstein(how).weight(upload.items, upload.delta, message) for upload in uploads])
        for how in (of_server, of_client)
    )
    assert (scaled <= LARGEST).all()
    if (plain ** -(1.0 / temperature) > 2.0 * SMALLEST).all() and (scaled * max(size, 1.0) < 0.99 * LARGEST).all():
        np.testing.assert_allclose(scaled / scaled.sum(), plain / plain.sum(), rtol=1e-9)


@pytest.mark.parametrize("temperature", [0.33, 1.0, 3.0])
def test_a_client_that_agrees_with_the_last_step_exactly_is_within_the_bound(temperature: float) -> None:
    message, how = some_broadcast(1), changed(temperature=temperature, rows="mean-own", weigh_on="client")
    for size in (1e-12, 1.0, 1e12):
        step = size * message.last_step
        found = Wasserstein(how).weight(np.arange(ITEMS), step, replace(message, last_step=step))
        assert found == pytest.approx(LARGEST / max(1.0, np.abs(step).max()))


@pytest.mark.parametrize("rate", [1e-6, 1e-2, 1.0])
def test_no_weight_is_clipped_however_small_the_steps(rate: float, caplog: pytest.LogCaptureFixture) -> None:
    """With weights in no public unit, τ = 1 and steps of a millionth, everybody's weight exceeded the ring's bound."""
    chosen = ("aggregation.rule=wasserstein", "aggregation.weigh_on=client", "channel.rule=secure")
    small = ("channel.least_cohort=5", "server.rounds=4", f"server_optimizer.learning_rate={rate}", "engine=fast")
    for engine in ("fast", "reference"):
        config = example_config("model.rule=reconstruction", *chosen, *small[:-1], f"engine={engine}")
        problem = prepare(small_ratings(), config)
        reports = [report for _, report in rounds(engine_of(config), problem)]
        assert len(reports) == 4
    assert "clipped" not in caplog.text


def test_a_ring_has_room_for_the_largest_weight() -> None:
    assert RingSettings().largest_weight >= LARGEST


@pytest.mark.parametrize(
    ("largest", "rows", "size", "over"), [(0.5, "table", 0.5, 1.0), (0.5, "own", 0.25, 1.0), (3.0, "own", 4.625, 3.0)]
)
def test_the_factor_on_own_weights_and_the_least_distance_are_their_formulas(
    largest: float, rows: str, size: float, over: float
) -> None:
    """(Σ or mean ‖step_i‖²)^τ over the greatest number where that exceeds 1; the greatest weight is 32."""
    step = np.array([[0.5, 0.0], [0.0, largest]])
    unit, nearest = public_scale(step, Settings(rows=rows, temperature=0.5, weigh_on="client"))
    assert (unit, nearest) == pytest.approx((size**0.5 / over, size * 32.0**-2))
    for settings_without in (Settings(weigh_on="server"), Settings(weigh_on="client", temperature=0.0)):
        assert public_scale(step, settings_without) == (1.0, SMALLEST)
    assert public_scale(0.0 * step, Settings(weigh_on="client")) == (1.0, SMALLEST)


def test_no_honest_weight_exceeds_the_power_of_the_least_distance() -> None:
    assert Wasserstein(Settings(temperature=0.5)).largest_weight == pytest.approx(1e6)


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        (("aggregation.weigh_on=client", "aggregation.global_step=mean"), "this round's mean"),
        (("aggregation.weigh_on=server", "aggregation.global_step=mean"), None),
        (("aggregation.weigh_on=client", "aggregation.global_step=last"), None),
        (("aggregation.covariance=diagonal", "aggregation.batch_size=2"), "is not the model's"),
        (("aggregation.covariance=diagonal", "aggregation.batch_size=2", "model.batch_size=2"), None),
        (("aggregation.covariance=none", "aggregation.batch_size=2"), None),
    ],
)
def test_options_that_can_t_be_together_are_refused(changes: tuple[str, ...], refused: str | None) -> None:
    config = example_config("aggregation.rule=wasserstein", *changes)
    if refused is None:
        check(config)
        return
    with pytest.raises(UserError, match=refused):
        check(config)
