"""Single encoders, optimizers and robust rules against their formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedrecplus.device import Device, Rows
from fedrecplus.parts import Encoder, Model, ServerOptimizer
from fedrecplus.parts.channel.denoising import denoise, noise_of
from fedrecplus.parts.model.mf import errors, item_step, user_step
from fedrecplus.parts.similarity import unit_rows
from fedrecplus.randomness import normal, subkey
from fedrecplus.rounds import client_round
from fedrecplus.rounds.server import weighted_sum
from fedrecplus.testing import example_round

A = np.random.default_rng(0).normal(size=(6, 3))


def test_centred_cosines_do_not_change_with_a_common_part() -> None:
    _, message, _ = example_round()
    rows = [unit_rows(Encoder.choose("centred").encode(V, message.public)) for V in (message.V, message.V + 3)]
    np.testing.assert_allclose(rows[0] @ rows[0].T, rows[1] @ rows[1].T, rtol=0, atol=1e-9)


def test_starts_lie_as_their_names_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uniform: within the half-width, around zero. Constant: without noise, every first prediction is the rating."""
    _, message, _ = example_round()
    even = Model.choose("mf", init="uniform", init_scale=0.5, factors=8).start_items(0, 500, message.public)
    assert (np.abs(even) <= 0.5).all()
    np.testing.assert_allclose([even.mean(), even.std()], [0.0, 0.5 / 3**0.5], atol=0.02)
    same = Model.choose("mf", init="constant", init_scale=0.0, factors=8)
    V, U = same.start_items(0, 5, message.public), same.start_users(0, np.arange(4), message.public)
    np.testing.assert_allclose(U[:, :8] @ V.T, 3.5)
    assert (U[:, 8] == 0).all()
    biased = Model.choose("biased-mf", init="constant", init_scale=0.0, factors=8)
    monkeypatch.setattr(type(biased.settings), "init_rating", 4.5)
    V, U = biased.start_items(0, 5, message.public), biased.start_users(0, np.arange(4), message.public)
    np.testing.assert_allclose(U[:, :8] @ V[:, :8].T, 4.5 - message.public.mean)
    assert (U[:, 8] == 1).all()
    monkeypatch.setattr(type(biased.settings), "init_rating", 1.0)
    assert (biased.start_items(0, 5, message.public) == 0).all()  # no first prediction lies below the mean
    drawn = normal(subkey(3, "start-V"), np.arange(10, dtype=np.uint64).reshape(5, 2))
    noisy = Model.choose("mf", init="normal", init_scale=0.2, factors=2).start_items(3, 5, message.public)
    np.testing.assert_allclose(noisy, 0.2 * drawn)


def test_the_local_step_decays_by_round_and_batches_leave_no_row_out() -> None:
    assert Model.choose("mf", learning_rate=0.4, learning_rate_decay=0.5).local_rate(2) == pytest.approx(0.1)
    problem, message, devices = example_round("model.rule=mf", "model.batch_size=2")
    upload = client_round(message, devices[0], problem.config)[0]
    assert (np.abs(upload.delta).sum(axis=1) > 0).all()


def test_batches_hold_every_row_once_however_many_rows_others_have() -> None:
    """Padded rows are in none, and change nothing of a client's own batches."""
    model = Model.choose("mf", batch_size=2)
    _, message, _ = example_round()
    long, short = np.array([0, 3, 4, 7, 9]), np.array([0, 2, 5, -1, -1])
    together = Rows(np.stack([long, short]), np.zeros((2, 5)), np.stack([long, short]) >= 0)
    keys: Any = np.array([11, 12], np.uint64)
    batches = np.stack(model.batches(Device(0, long, long, 1.0, A, keys), together, message))
    np.testing.assert_array_equal(batches.sum(axis=0), [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    assert batches.sum(axis=2).T.tolist() == [[2, 2, 1], [2, 1, 0]]
    alone = Rows(short[:3], np.zeros(3), short[:3] >= 0)
    own = np.stack(model.batches(Device(0, short, short, 1.0, A, 12), alone, message))
    np.testing.assert_array_equal(own, batches[:2, 1, :3])


@pytest.mark.parametrize("rule", ["mf", "biased-mf"])
def test_folding_in_is_where_the_user_s_steps_come_to_rest(rule: str) -> None:
    problem, message, devices = example_round(f"model.rule={rule}", "model.factors=3", "model.regularisation=0.01")
    model, public, V = problem.config.model, message.public, message.V.astype(np.float64)
    device = next(device for device in devices if device.items[0] == 0)
    X = model.item_columns(V, public)
    U = model.fold_in(X, device.items, device.ratings, public)
    used, mean = np.ones(len(device.items), dtype=bool), model.global_mean(public)
    stepped = user_step(U, V[device.items], device.ratings - mean, used, 0.5, 0.01, model.trained_columns())
    np.testing.assert_allclose(stepped, U, rtol=0, atol=1e-12)
    np.testing.assert_allclose(X @ U, mean + V @ U[:-1] + U[-1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("rule", ["mf", "biased-mf"])
def test_every_rating_s_share_of_the_weights_is_its_part_of_their_solution(rule: str) -> None:
    """U is linear in what ratings are above the mean and the item's bias; λ counts as often as there are ratings."""
    problem, message, devices = example_round(f"model.rule={rule}", "model.factors=3", "model.regularisation=0.01")
    model, public = problem.config.model, message.public
    device = next(device for device in devices if device.items[0] == 0)
    X, items, ratings = model.item_columns(message.V.astype(np.float64), public), device.items, device.ratings
    shares = model.weight_shares(X, items, ratings, public)
    assert shares.shape == (len(items), X.shape[1])
    whole = model.fold_in(X, items, ratings, public)
    free = np.flatnonzero(model.trained_columns())
    np.testing.assert_allclose(shares.sum(axis=0)[free], whole[free], rtol=0, atol=1e-10)
    for row in range(len(items)):
        raised = ratings + 0.5 * (np.arange(len(items)) == row)
        above = ratings[row] - (X[items[row], 3] if rule == "biased-mf" else 0.0)
        moved = model.fold_in(X, items, raised, public) - whole
        np.testing.assert_allclose(shares[row], moved * above / 0.5, rtol=0, atol=1e-9)


def test_predictions_are_the_mean_the_biases_and_the_factors_after_more_steps_of_the_user() -> None:
    problem, message, devices = example_round("model.rule=biased-mf", "model.factors=3", "model.learning_rate=0.2")
    model, V, U = problem.config.model, message.V, (device := next(d for d in devices if d.items[0] == 0)).U
    mean, used = message.public.mean, np.ones(len(device.items), dtype=bool)
    for steps in range(3):
        predicted = model.predict(np.arange(len(V)), device, message, steps)
        np.testing.assert_allclose(predicted, mean + V @ U[:-1] + U[-1], rtol=0, atol=1e-12)
        own = (V[device.items], device.ratings - mean, used, 0.2, model.settings.regularisation)
        U = user_step(U, *own, model.trained_columns())


def test_a_single_row_moves_the_user_by_its_whole_error() -> None:
    U, V, every = np.array([1.0, 2.0, 0.0]), np.array([[3.0, 1.0]]), np.ones(3)
    moved = user_step(U, V, np.array([6.0]), np.array([True]), 0.1, 0.5, every)
    np.testing.assert_allclose(moved, U - 0.1 * (0.5 * U - 1.0 * np.array([3.0, 1.0, 1.0])))
    np.testing.assert_array_equal(user_step(U, V, np.array([6.0]), np.array([False]), 0.1, 0.5, every), U)


def test_an_attacker_knows_the_weight_of_an_item_bias_and_none_of_the_factors() -> None:
    known = Model.choose("biased-mf", factors=4).attacker()
    assert (known.shown, known.known) == (slice(0, 5), {4: 1.0})


def test_the_gradient_s_rows_are_an_epoch_s_errors_times_the_user() -> None:
    """Paper: Eq. (6)."""
    _, message, devices = example_round()
    device, model = devices[0], Model.choose("mf", regularisation=0.3, learning_rate=0.25, factors=message.V.shape[1])
    V, U = message.V[device.items].astype(np.float64), np.append(A.ravel(), A.ravel())[: message.V.shape[1] + 1]
    delta = item_step(U, V, device.ratings, 0.25, 0.3) - V
    rows = model.gradient_rows(delta, device.items, np.ones(len(device.items)), message)
    np.testing.assert_allclose(rows, np.outer(errors(U, V, device.ratings), U[:-1]), rtol=0, atol=1e-12)


def test_optimizers_step_as_their_formulas_say() -> None:
    plain, _ = ServerOptimizer.choose("sgd", learning_rate=0.7).step(A, [], 2)
    np.testing.assert_allclose(plain, 0.7 * A, rtol=1e-15)
    moments = [np.zeros_like(A)]
    for number in range(3):
        heavy, moments = ServerOptimizer.choose("momentum", learning_rate=0.7, momentum=0.5).step(A, moments, number)
    np.testing.assert_allclose(heavy, 0.7 * 1.75 * A, rtol=1e-12)
    first, _ = ServerOptimizer.choose("adam", learning_rate=0.7).step(A, [np.zeros_like(A)] * 2, 0)
    np.testing.assert_allclose(first, 0.7 * np.sign(A), rtol=1e-5)


def test_denoising_takes_out_exactly_the_noise() -> None:
    problem, message, (first, second, third, *_) = example_round("model.user_step=rated")
    uploads = [client_round(message, device, problem.config)[0] for device in (first, second, third)]
    messages = [noise_of(upload, device) for upload, device in zip(uploads[:2], (first, second), strict=True)]
    assert not np.isin(messages[0].items, first.items).any()
    denoised = denoise(uploads[2], third, messages)
    found = weighted_sum([*uploads[:2], denoised], [1.0] * 3, message.V.shape)
    own = [
        replace(upload, items=upload.items[rated], delta=upload.delta[rated])
        for upload, device in zip(uploads, (first, second, third), strict=True)
        for rated in [np.isin(upload.items, device.items)]
    ]
    expected = weighted_sum(own, [1.0] * 3, message.V.shape)
    np.testing.assert_allclose(found.total, expected.total, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found.weights, expected.weights)
