"""The weights are the paper's: p* solves its problem, and the distance is W₂² where the paper's form of it is exact."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrecplus.aggregation._covariance import full_trace, update_covariance, update_variance
from fedrecplus.aggregation.wasserstein import distance, weight
from fedrecplus.config import assign
from fedrecplus.errors import UserError
from tests.contracts.some_uploads import COLUMNS, ITEMS, aggregate, server_state, settings_of, some_uploads

PAPER = settings_of("wasserstein", "aggregation.rows=table", "aggregation.bound=0", "aggregation.temperature=1")
NO_SPREAD = np.zeros((0, COLUMNS))
CELLS = ITEMS * COLUMNS
seeds = st.integers(0, 10**6)


def on_table(items: np.ndarray, rows: np.ndarray) -> np.ndarray:
    table = np.zeros((ITEMS, COLUMNS))
    table[items] = rows
    return table


@settings(max_examples=20)
@given(seeds, st.sampled_from(["none", "diagonal"]))
def test_the_weights_minimise_the_objective_of_the_paper(seed: int, covariance: str) -> None:
    """min Σ p_u² (‖Δ_u − step‖² + tr(M²)) subject to Σ p_u = 1 and p_u ≥ 0, by a solver that knows no closed form."""
    uploads, state = some_uploads(5, seed), server_state(seed, covariance)
    how = assign(PAPER, [f"aggregation.covariance={covariance}"])
    D = np.array([((on_table(u.items, u.delta) - state.last_step) ** 2).sum() for u in uploads])
    if covariance == "diagonal":
        roots = [np.sqrt(len(u.items) - 1) * np.abs(u.delta) / np.sqrt(len(u.items)) for u in uploads]
        M = [np.sqrt(state.last_spread) - on_table(u.items, root) for u, root in zip(uploads, roots, strict=True)]
        D += [(m**2).sum() for m in M]
    solved = scipy.optimize.minimize(
        lambda p: (p**2 * D).sum() / D.mean(), np.full(5, 0.2), jac=lambda p: 2.0 * p * D / D.mean(), method="SLSQP",
        bounds=[(0.0, 1.0)] * 5, constraints={"type": "eq", "fun": lambda p: p.sum() - 1.0},
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    weights = np.array([weight(u.items, u.delta, state.last_step, state.last_spread, how) for u in uploads])
    np.testing.assert_allclose(weights / weights.sum(), solved.x, rtol=0, atol=1e-5)


@settings(max_examples=25)
@given(seeds, st.sampled_from(["table", "own", "mean-own"]), st.sampled_from(["none", "diagonal", "full"]))
def test_without_temperature_the_weights_are_uniform_exactly(seed: int, rows: str, covariance: str) -> None:
    changes = [f"aggregation.rows={rows}", f"aggregation.covariance={covariance}", "aggregation.temperature=0"]
    uploads = some_uploads(6, seed)
    cold = aggregate(uploads, settings_of("wasserstein", *changes), covariance)
    assert (cold == aggregate(uploads, settings_of("uniform", *changes), covariance)).all()


@settings(max_examples=25)
@given(seeds, st.floats(0.05, 2.0), st.floats(0.01, 1.0), st.sampled_from(["table", "own", "mean-own"]))
def test_the_bound_bounds_the_weight_of_a_client(seed: int, temperature: float, bound: float, rows: str) -> None:
    """A copy of the last step earns the most that can be earned, and that is (bound · size of the step)^(−τ)."""
    changes = [f"aggregation.temperature={temperature}", f"aggregation.bound={bound}", f"aggregation.rows={rows}"]
    how, step = settings_of("wasserstein", *changes), server_state(seed).last_step
    squares = (step**2).sum(axis=1)
    for upload in some_uploads(6, seed):
        size = {"table": squares.sum(), "own": squares[upload.items].sum(), "mean-own": squares[upload.items].mean()}
        most = (bound * size[rows]) ** -temperature
        assert weight(upload.items, upload.delta, step, NO_SPREAD, how) <= most * (1 + 1e-9)
        copy = weight(upload.items, step[upload.items], step, NO_SPREAD, how)
        if rows != "table":
            assert copy == pytest.approx(most)


def test_with_a_bound_no_client_outweighs_one_that_did_nothing_by_more_than_its_inverse() -> None:
    how, step = settings_of("wasserstein", "aggregation.bound=0.1"), server_state().last_step
    items = np.array([1, 4, 5])
    idle = weight(items, np.zeros((3, COLUMNS)), step, NO_SPREAD, how)
    copy = weight(items, step[items], step, NO_SPREAD, how)
    assert copy / idle == pytest.approx(10.0)


def test_exact_agreement_has_a_finite_weight_even_without_a_bound() -> None:
    step = server_state().last_step
    assert np.isfinite(weight(np.arange(ITEMS), step, step, NO_SPREAD, PAPER))


@settings(max_examples=15)
@given(seeds)
def test_the_full_trace_is_that_of_scipys_matrix_roots(seed: int) -> None:
    how, state = assign(PAPER, ["aggregation.covariance=full"]), server_state(seed, "full")
    upload = some_uploads(1, seed)[0]
    own = update_covariance(upload.items, upload.delta, ITEMS, how)
    values, vectors = np.linalg.eigh(own)
    assert values.min() > -1e-9, "a covariance has no negative variance"
    # scipy's root of a singular matrix is inexact, so the covariance is lifted a little off zero
    lifted = (vectors * (np.maximum(values, 0.0) + 1e-12)) @ vectors.T
    M = np.real(scipy.linalg.sqrtm(state.last_spread + 1e-12 * np.eye(CELLS)) - scipy.linalg.sqrtm(lifted))
    trace = full_trace(upload.items, upload.delta, state.last_spread, how).sum()
    assert trace == pytest.approx(np.trace(M @ M), rel=1e-3, abs=1e-4)


@settings(max_examples=15)
@given(seeds)
def test_for_commuting_covariances_the_distance_is_the_true_one(seed: int) -> None:
    """W₂² = ‖μ₁ − μ₂‖² + tr(Σ₁ + Σ₂ − 2 (Σ₁^½ Σ₂ Σ₁^½)^½), with Σ_g that has the client's own directions."""
    how, state = assign(PAPER, ["aggregation.covariance=full"]), server_state(seed)
    upload = some_uploads(1, seed)[0]
    own = update_covariance(upload.items, upload.delta, ITEMS, how)
    _, vectors = np.linalg.eigh(own)
    spread = (vectors * np.random.default_rng(seed).uniform(0.5, 2.0, CELLS)) @ vectors.T
    root = np.real(scipy.linalg.sqrtm(spread))
    inner = np.real(scipy.linalg.sqrtm(root @ (own + 1e-10 * np.eye(CELLS)) @ root))
    means = ((on_table(upload.items, upload.delta) - state.last_step) ** 2).sum()
    true = means + np.trace(spread + own - 2.0 * inner)
    assert distance(upload.items, upload.delta, state.last_step, spread, how) == pytest.approx(true, rel=1e-4, abs=1e-3)


@settings(max_examples=20)
@given(seeds, st.sampled_from(["table", "own", "mean-own"]))
def test_diagonal_and_full_agree_where_the_covariance_is_diagonal(seed: int, rows: str) -> None:
    """An update with one number other than zero has no covariance between numbers."""
    state, upload = server_state(seed, "diagonal"), some_uploads(1, seed)[0]
    delta = np.zeros_like(upload.delta)
    delta[seed % len(delta), seed % COLUMNS] = 1.7
    diagonal = assign(PAPER, ["aggregation.covariance=diagonal", f"aggregation.rows={rows}"])
    full = assign(PAPER, ["aggregation.covariance=full", f"aggregation.rows={rows}"])
    wide = np.diag(state.last_spread.ravel())
    expected = distance(upload.items, delta, state.last_step, state.last_spread, diagonal)
    assert distance(upload.items, delta, state.last_step, wide, full) == pytest.approx(expected)


@pytest.mark.parametrize("batch_size", [0, 2, 100])
def test_the_diagonal_of_the_full_covariance_is_the_variance(batch_size: int) -> None:
    how = assign(PAPER, [f"client.batch_size={batch_size}"])
    for upload in some_uploads():
        full = np.diag(update_covariance(upload.items, upload.delta, ITEMS, how)).reshape(ITEMS, COLUMNS)
        variance = on_table(upload.items, update_variance(upload.delta, how))
        np.testing.assert_allclose(full, variance, rtol=0, atol=1e-12)


def test_the_variance_is_that_of_drawing_one_row_at_a_time() -> None:
    """Row i is drawn with probability 1/n and then stands for all: n·g_i in row i, zero elsewhere."""
    delta = np.array([[1.0, -2.0, 0.5], [3.0, 0.0, 1.0], [0.0, 1.0, 2.0]])
    draws = np.stack([on_table(np.array([i]), 3.0 * delta[[i]])[:3].ravel() for i in range(3)])
    how = assign(PAPER, ["client.batch_size=1"])
    expected = np.cov(draws.T, bias=True)
    np.testing.assert_allclose(update_covariance(np.arange(3), delta, 3, how), expected, rtol=0, atol=1e-12)


def test_large_batches_leave_the_distance_between_the_means() -> None:
    """Eq. (23) is the limit of Eq. (19): with B as large as the client, tr(M²) shrinks against B = 1."""
    state, upload = server_state(spread="diagonal"), some_uploads()[0]
    spread = np.zeros_like(state.last_spread)
    sizes = [
        distance(
            upload.items, upload.delta, state.last_step, spread,
            assign(PAPER, ["aggregation.covariance=diagonal", f"client.batch_size={batch}"]),
        )
        for batch in (1, 2, len(upload.items))
    ]  # fmt: skip
    plain = distance(upload.items, upload.delta, state.last_step, NO_SPREAD, PAPER)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] > plain


def test_a_full_covariance_of_a_large_table_is_refused() -> None:
    with pytest.raises(UserError, match="full"):
        update_covariance(np.array([0]), np.ones((1, 20)), 1682, PAPER)
