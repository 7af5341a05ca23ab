"""What the server does in a round, over rounds, in both engines."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus import simulation
from fedrecplus.config import assign, preset
from fedrecplus.gradients import floor_step
from fedrecplus.parts import choices
from fedrecplus.rounds.server import aggregate_of, apply, server_round
from tests.contracts.one_round import RATINGS, START
from tests.contracts.some_uploads import server_state, settings_of, some_uploads
from tests.rounds.engines import ENGINES, run_rounds

WEIGHED = assign(START, ["aggregation.rule=wasserstein", "pseudo_items.rule=similar", "virtual_ratings.rule=nearest"])


def same(first: np.ndarray, second: np.ndarray) -> None:
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("changes", [[], ["client.fraction=0.6"], ["aggregation.normalise=clients"], ["seed=8"]])
def test_fedrec_plus_plus_is_the_same_as_no_pseudo_items(engine: str, changes: list[str]) -> None:
    """Denoising clients take the noise out again: lossless, as long as U steps over rated items alone."""
    denoised = assign(preset("fedrec++"), ["model.factors=5", "precision=float64", *changes])
    assert denoised.client.u_step == "rated"
    assert denoised.aggregation.rule == "uniform"
    plain = assign(denoised, ["pseudo_items.rule=none", "aggregation.denoising=0"])
    with_noise = assign(denoised, ["aggregation.denoising=0"])
    states = [run_rounds(RATINGS, config, engine, rounds=5) for config in (denoised, plain, with_noise)]
    for one, other in zip(states[0], states[1], strict=True):
        same(one.server.V, other.server.V)
        same(one.U, other.U)
    assert np.abs(states[2][-1].server.V - states[1][-1].server.V).max() > 1e-4


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("changes", [[], ["aggregation.normalise=clients"], ["aggregation.covariance=diagonal"]])
def test_weights_computed_by_clients_give_the_same_rounds(engine: str, changes: list[str]) -> None:
    on_server, on_client = (
        run_rounds(RATINGS, assign(WEIGHED, [*changes, f"aggregation.weigh_on={who}"]), engine, rounds=4)
        for who in ("server", "client")
    )
    for one, other in zip(on_server, on_client, strict=True):
        same(one.server.V, other.server.V)
        same(one.server.last_spread, other.server.last_spread)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_temperature_rounds_are_those_of_uniform_weights(engine: str) -> None:
    cold, uniform = (
        run_rounds(RATINGS, assign(WEIGHED, changes), engine, rounds=3)[-1]
        for changes in (["aggregation.temperature=0"], ["aggregation.rule=uniform"])
    )
    np.testing.assert_array_equal(cold.server.V, uniform.server.V)
    np.testing.assert_array_equal(cold.U, uniform.U)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_last_step_is_how_far_the_table_moved(engine: str) -> None:
    config = assign(WEIGHED, ["server.step=momentum", "server.learning_rate_decay=0.8"])
    states = run_rounds(RATINGS, config, engine, rounds=3)
    for before, after in itertools.pairwise(states):
        same(after.server.last_step, after.server.V - before.server.V)


@pytest.mark.parametrize("engine", ENGINES)
def test_this_rounds_mean_as_the_target_follows_the_decaying_rate(engine: str) -> None:
    """η μ_g has the η of the round: decay to a third in the second round is a rate of a third in a first round."""
    decaying = assign(WEIGHED, ["aggregation.global_step=mean", "server.learning_rate_decay=0.333"])
    problem = simulation.prepare(RATINGS, decaying)
    start, _ = ENGINES[engine](problem, simulation.start(problem))
    slower = assign(WEIGHED, ["aggregation.global_step=mean", "server.learning_rate=0.333"])
    expected, _ = ENGINES[engine](simulation.prepare(RATINGS, slower), start)
    found, _ = ENGINES[engine](problem, start)
    same(found.server.V, expected.server.V)


def test_distances_to_this_rounds_mean_are_to_the_step_that_uniform_weights_would_make() -> None:
    state, uploads = server_state(), some_uploads()
    how = settings_of("wasserstein", "aggregation.global_step=mean", "server.learning_rate=0.5")
    uniform = apply(state, aggregate_of(state, uploads, settings_of("uniform")), state.last_spread, how)
    to_last = settings_of("wasserstein", "aggregation.global_step=last")
    expected = aggregate_of(replace(state, last_step=uniform.last_step), uploads, to_last)
    same(aggregate_of(state, uploads, how), expected)


def test_the_spread_is_the_mean_covariance_times_the_square_of_the_rate() -> None:
    state, uploads = server_state(spread="diagonal"), some_uploads()
    how = settings_of("wasserstein", "aggregation.covariance=diagonal", "server.learning_rate=0.5")
    expected = np.zeros_like(state.V)
    for upload in uploads:
        n = len(upload.items)
        expected[upload.items] += 0.25 * (n - 1) / n * upload.delta**2 / len(uploads)
    same(server_round(state, uploads, how).last_spread, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_round_that_nobody_answers_leaves_the_table(engine: str) -> None:
    for changes in ([], ["aggregation.rule=uniform", "aggregation.denoising=0.5"]):
        config = assign(WEIGHED, ["client.dropout=0.999", *changes])
        problem = simulation.prepare(RATINGS, config)
        assert len(problem.taking_part(0)) == 0
        state = simulation.start(problem)
        after, report = ENGINES[engine](problem, state)
        assert (after.server.V == state.server.V).all()
        assert (after.U == state.U).all()
        assert (report.clients, report.bytes_up, report.bytes_down) == (0, 0, 0)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("rule", choices("aggregation"))
@pytest.mark.parametrize("step", choices("server_steps"))
def test_32_bit_tables_stay_32_bit(engine: str, rule: str, step: str) -> None:
    config = assign(START, [f"aggregation.rule={rule}", f"server.step={step}", "server.learning_rate=0.05"])
    state = run_rounds(RATINGS, config, engine, rounds=2, dtype=np.float32)[-1]
    kinds = {name: table.dtype for name, table in state.arrays().items() if table.dtype.kind == "f"}
    assert set(kinds.values()) == {np.dtype(np.float32)}, kinds


def test_fraction_and_dropout_take_their_share() -> None:
    problem = simulation.prepare(RATINGS, assign(START, ["client.fraction=0.5"]))
    rounds = [problem.taking_part(number) for number in range(40)]
    assert {len(clients) for clients in rounds} == {15}
    assert len({tuple(clients) for clients in rounds}) > 30
    assert set(np.concatenate(rounds)) == set(range(RATINGS.clients))
    dropping = simulation.prepare(RATINGS, assign(START, ["client.dropout=0.4"]))
    answered = np.mean([len(dropping.taking_part(number)) for number in range(200)]) / RATINGS.clients
    assert answered == pytest.approx(0.6, abs=0.03)


def test_full_covariances_run_and_are_not_the_diagonal_ones() -> None:
    small = assign(WEIGHED, ["model.factors=2", "engine=reference", "aggregation.rows=table"])
    full, diagonal = (
        run_rounds(RATINGS, assign(small, [f"aggregation.covariance={kind}"]), "reference", rounds=3)[-1]
        for kind in ("full", "diagonal")
    )
    spread = full.server.last_spread
    assert spread.shape == (80, 80)
    assert np.linalg.eigvalsh(spread).min() > -1e-9
    assert np.isfinite(full.server.V).all()
    assert np.abs(full.server.V - diagonal.server.V).max() > 1e-9


def test_a_round_costs_what_its_messages_weigh() -> None:
    problem = simulation.prepare(RATINGS, START)
    _, report = simulation.simulate_round(problem, simulation.start(problem))
    rows = len(RATINGS) + int(problem.pseudo_indptr[-1])
    assert report.clients == RATINGS.clients
    assert report.bytes_up == 4 * rows * (1 + START.model.factors)
    assert report.bytes_down == 4 * RATINGS.clients * RATINGS.item_count * START.model.factors


def test_a_floor_weighs_as_much_as_so_many_ratings() -> None:
    """Where n clients want one row at a point and the floor wants it at the mean row, it settles in between."""
    config = assign(START, ["pseudo_items.rule=none", "client.learning_rate=0.1", "client.local_epochs=1"])
    config = assign(config, ["model.floor=6", "server.step=plain", "server.learning_rate=1"])
    popularity = np.array([3, 1_000_000])  # the second row is the mean
    state = replace(server_state(), V=np.array([[5.0], [1.0]]), popularity=popularity)
    for _ in range(300):
        wish = 0.1 * (4.0 - state.V[:1])
        state = apply(state, np.vstack([wish, 1e-12 * np.ones((1, 1))]), np.zeros((0, 1)), config)
    assert state.V[0, 0] == pytest.approx((3 * 4.0 + 6 * 1.0) / 9, abs=1e-3)


def test_a_floor_never_pulls_past_the_mean_and_leaves_rows_that_nobody_uploaded() -> None:
    config = assign(START, ["model.floor=1e6", "server.step=plain", "server.learning_rate=1"])
    V, popularity = np.array([[3.0, 1.0], [7.0, 2.0], [0.0, 0.0]]), np.array([1, 1, 2])
    state = replace(server_state(), V=V, popularity=popularity)
    nearly_nothing = np.array([[1e-12, 0.0], [1e-12, 1e-12], [0.0, 0.0]])
    after = apply(state, nearly_nothing, np.zeros((0, 2)), config).V
    np.testing.assert_allclose(after, [[2.5, 0.75], [2.5, 0.75], [0.0, 0.0]])


def test_pseudo_rows_dilute_the_floor_as_they_dilute_ratings() -> None:
    steps = []
    for ratio in (0.0, 3.0):
        changes = ["model.floor=1", f"pseudo_items.ratio={ratio}", "pseudo_items.rule=random"]
        state = replace(server_state(), popularity=np.full(len(server_state().V), 50))
        steps.append(floor_step(state.V, state.popularity, assign(START, changes), 0))
    np.testing.assert_allclose(steps[0], 4 * steps[1])
