"""What the server does in a round, over rounds, in both engines."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import assign, preset
from fedrecplus.engines import engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts.aggregation import update_variance
from fedrecplus.parts.tree import Leaf
from fedrecplus.protocol import Sums, Upload
from fedrecplus.rounds import ServerState, add_up, server_round, sums_of, weights_of
from fedrecplus.rounds.client import weigh
from fedrecplus.rounds.server import cooldown, divide, encode_items, weighted_sum
from fedrecplus.testing import example_config, small_ratings
from fedrecplus.testing.aggregation import COLUMNS, ITEMS, some_broadcast, some_uploads
from tests.rounds.engines import ENGINES, run_rounds

RATINGS = small_ratings()
SMALL_BATCHES = ["model.batch_size=2", "aggregation.batch_size=2"]
WEIGHED = example_config("aggregation.rule=wasserstein")


def same(first: np.ndarray, second: np.ndarray) -> None:
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-9)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("changes", [[], ["cohort.fraction=0.6", "aggregation.normalise=cohort", "seed=8"]])
def test_fedrec_plus_plus_is_the_same_as_no_pseudo_items(engine: str, changes: list[str]) -> None:
    """Denoising clients take the noise out again: lossless, as long as U steps over rated items alone."""
    denoised = assign(preset("fedrec++"), ["model.factors=5", "precision=float64", *changes])
    plain = assign(denoised, ["pseudo_items.rule=none", "channel.rule=clear"])
    with_noise = assign(denoised, ["channel.rule=clear"])
    states = [run_rounds(RATINGS, config, engine, rounds=5) for config in (denoised, plain, with_noise)]
    for one, other in zip(states[0], states[1], strict=True):
        same(one.server.V, other.server.V)
        same(one.private.U, other.private.U)
    assert np.abs(states[2][-1].server.V - states[1][-1].server.V).max() > 1e-4


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "changes", [[], ["aggregation.normalise=cohort", "aggregation.covariance=diagonal", *SMALL_BATCHES]]
)
def test_weights_computed_by_clients_give_the_same_rounds(engine: str, changes: list[str]) -> None:
    on_server, on_client = (
        run_rounds(RATINGS, assign(WEIGHED, [*changes, f"aggregation.weigh_on={who}"]), engine, rounds=4)
        for who in ("server", "client")
    )
    for one, other in zip(on_server, on_client, strict=True):
        same(one.server.V, other.server.V)
        same(one.server.last_covariance, other.server.last_covariance)


@pytest.mark.parametrize("engine", ENGINES)
def test_without_temperature_rounds_are_those_of_uniform_weights(engine: str) -> None:
    cold, uniform = (
        run_rounds(RATINGS, assign(WEIGHED, changes), engine, rounds=3)[-1]
        for changes in (["aggregation.temperature=0"], ["aggregation.rule=uniform"])
    )
    same(cold.server.V, uniform.server.V)
    same(cold.private.U, uniform.private.U)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_last_step_is_how_far_the_table_moved(engine: str) -> None:
    config = assign(WEIGHED, ["server_optimizer.rule=momentum", "server.cooldown=1"])
    for before, after in itertools.pairwise(run_rounds(RATINGS, config, engine, rounds=3)):
        same(after.server.last_step, after.server.V - before.server.V)


def test_distances_to_this_rounds_mean_are_to_the_step_that_uniform_weights_would_make() -> None:
    message, uploads = some_broadcast(), some_uploads()
    how = assign(WEIGHED, ["aggregation.global_step=mean", "server_optimizer.learning_rate=0.5"])
    uniform = divide(sums_of(uploads, message, example_config()), "item")
    expected = weights_of(uploads, replace(message, last_step=0.5 * uniform), WEIGHED)
    np.testing.assert_allclose(weights_of(uploads, message, how), expected, rtol=1e-12)


def test_the_covariance_is_the_clients_mean_times_the_square_of_the_rate() -> None:
    message, uploads = some_broadcast(covariance="diagonal"), some_uploads()
    how = assign(
        WEIGHED, ["aggregation.covariance=diagonal", "aggregation.batch_size=1", "server_optimizer.learning_rate=0.5"]
    )
    state = ServerState(3, message.V, message.last_step, message.last_covariance, [])
    expected = np.zeros_like(message.V)
    for upload in uploads:
        n = len(upload.items)
        expected[upload.items] += 0.25 * (n - 1) * upload.delta**2 / len(uploads)
    same(server_round(state, sums_of(uploads, message, how), message.public, how).last_covariance, expected)


def test_what_a_weighted_sum_is_divided_by() -> None:
    """Per item: the weights of those who uploaded it; over the cohort: all weights, so that p sums to one."""
    uploads, weights = some_uploads(), [1.0, 2.0, 0.5, 4.0, 1.0, 3.0, 0.25]
    sums = weighted_sum(uploads, weights, (ITEMS, COLUMNS))
    over_all = np.zeros((ITEMS, COLUMNS))
    for upload, weight in zip(uploads, weights, strict=True):
        over_all[upload.items] += weight / sum(weights) * upload.delta
    same(divide(sums, "cohort"), over_all)
    same(divide(sums, "none"), over_all * sum(weights))
    noisy = Upload(0, np.array([0, 1]), np.array([[3.0], [5.0]]))
    denoiser = Upload(1, np.array([0, 1]), np.array([[1.0], [-5.0]]), counts=np.array([1, -1]))
    assert divide(weighted_sum([noisy, denoiser], [1.0, 1.0], (3, 1)), "item").tolist() == [[2.0], [0.0], [0.0]]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "changes", [[], ["aggregation.rule=uniform", "channel.rule=denoising"], ["model.rule=reconstruction"]]
)
def test_a_round_that_nobody_answers_leaves_the_table(engine: str, changes: list[str]) -> None:
    config = assign(WEIGHED, ["cohort.dropout=0.999", f"engine={engine}", *changes])
    problem, runs = prepare(RATINGS, config), engine_of(config)
    assert len(problem.cohort(0)) == 0
    state = runs.start(problem)
    after, report = runs.round(problem, state)
    np.testing.assert_array_equal(after.server.V, state.server.V)
    np.testing.assert_array_equal(after.private.U, state.private.U)
    assert (report.clients, report.bytes_up, report.bytes_down) == (0, 0, 0)


def test_fraction_and_dropout_take_their_share() -> None:
    problem = prepare(RATINGS, example_config("cohort.fraction=0.5"))
    rounds = [problem.cohort(number) for number in range(40)]
    assert {len(clients) for clients in rounds} == {15}
    assert len({tuple(clients) for clients in rounds}) > 30
    assert set(np.concatenate(rounds)) == set(range(RATINGS.clients))
    dropping = prepare(RATINGS, example_config("cohort.dropout=0.4"))
    answered = np.mean([len(dropping.cohort(number)) for number in range(200)]) / RATINGS.clients
    assert answered == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_round_costs_what_its_messages_weigh(engine: str) -> None:
    config = example_config(f"engine={engine}")
    problem, runs = prepare(RATINGS, config), engine_of(config)
    _, report = runs.round(problem, runs.start(problem))
    rows = len(RATINGS) + int(problem.pseudo_indptr[-1])
    assert report.clients == RATINGS.clients
    assert report.bytes_up == 4 * rows * (1 + 4)
    assert report.bytes_down == 4 * RATINGS.clients * RATINGS.item_count * 4


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_cool_down_to_nothing_at_the_end(engine: str) -> None:
    whole, cooled = (
        run_rounds(RATINGS, example_config("server.rounds=4", f"server.cooldown={share}"), engine, rounds=4)
        for share in ("0", "0.5")
    )
    for number, factor in enumerate([1.0, 1.0, 1.0, 0.5]):
        if number < 3:
            same(cooled[number].server.V, whole[number].server.V)
        else:
            same(cooled[number].server.last_step, factor * whole[number].server.last_step)


def test_a_client_that_sent_no_weight_of_its_own_is_named() -> None:
    on_client = assign(WEIGHED, ["aggregation.weigh_on=client"])
    with pytest.raises(UserError, match="client 0 sent no weight"):
        weights_of(some_uploads(), some_broadcast(), on_client)


def test_sums_are_divided_by_weights_however_small() -> None:
    sums = Sums(np.full((3, 2), 3.0), np.array([0.5, 0.0, 2.0]), 0.25, 3)
    same(divide(sums, "item"), np.array([[6.0, 6.0], [0.0, 0.0], [1.5, 1.5]]))
    same(divide(sums, "cohort"), np.full((3, 2), 12.0))
    same(divide(sums, "none"), sums.total)


def test_the_step_cools_down_to_nothing_over_the_last_rounds() -> None:
    config = example_config("server.rounds=10", "server.cooldown=0.5")
    assert [cooldown(config, number) for number in (0, 5, 8)] == pytest.approx([1.0, 1.0, 0.4])
    assert cooldown(assign(config, ["server.cooldown=0"]), 9) == 1.0


@pytest.mark.parametrize("clients", [1, 4])
def test_the_global_covariance_is_that_of_the_applied_step(clients: int) -> None:
    """η² times the mean of the clients' covariances."""
    config = example_config("server_optimizer.rule=sgd", "server_optimizer.learning_rate=3", "server.cooldown=0")
    problem = prepare(RATINGS, config)
    state = engine_of(config).start(problem).server
    table = np.ones(state.V.shape)
    sums = Sums(table, np.ones(len(table)), float(clients), clients, covariance=2.0 * table)
    same(server_round(state, sums, problem.public, config).last_covariance, 9.0 * 2.0 * table / clients)


def test_before_the_first_round_nothing_is_known_that_no_part_asks_for() -> None:
    config = example_config("aggregation.rule=uniform", "pseudo_items.rule=none", "virtual_ratings.rule=user-average")
    problem = prepare(RATINGS, config)
    state = engine_of(config).start(problem).server
    assert (state.round, state.last_covariance.shape) == (0, (0, state.V.shape[1]))
    assert encode_items(state.V, problem.public, config).shape == (0, 0)


def test_a_model_whose_tables_are_not_its_columns_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    config = example_config("model.rule=mf", "model.factors=3")
    monkeypatch.setattr(type(config.model), "tree", lambda self: {"V": Leaf.table(9)})
    with pytest.raises(UserError, match="starts with 3 columns"):
        prepare(RATINGS, config)


def test_clear_uploads_cost_their_own_bytes_and_nothing_down() -> None:
    uploads, config = some_uploads(), example_config("aggregation.rule=coordinate-median", "pseudo_items.rule=none")
    sums, traffic = add_up(uploads, some_broadcast(), config)
    assert (traffic.bytes_up, traffic.bytes_down) == (sum(upload.bytes for upload in uploads), 0)
    same(divide(sums, "item"), config.aggregation.aggregate(uploads, some_broadcast()))
    assert sums.weights.tolist() == np.bincount(np.concatenate([u.items for u in uploads]), minlength=ITEMS).tolist()


def test_one_upload_and_none_have_their_own_statistic() -> None:
    upload = replace(some_uploads()[0], statistic=np.array([2.0, 3.0]))
    same(weighted_sum([upload], [0.5], (ITEMS, COLUMNS)).statistic, np.array([1.0, 1.5]))
    assert weighted_sum([], [], (ITEMS, COLUMNS)).statistic.shape == (0,)


@pytest.mark.parametrize("who", ["server", "client"])
def test_covariances_are_summed_over_clients_as_they_trained(who: str) -> None:
    changes = ("aggregation.covariance=diagonal", *SMALL_BATCHES, f"aggregation.weigh_on={who}")
    config = example_config("aggregation.rule=wasserstein", *changes)
    message = replace(some_broadcast(), last_covariance=np.zeros((ITEMS, COLUMNS)))
    expected = np.zeros((ITEMS, COLUMNS))
    for upload in some_uploads():
        expected[upload.items] += update_variance(upload.delta, 2)
    same(sums_of([weigh(upload, message, config) for upload in some_uploads()], message, config).covariance, expected)
