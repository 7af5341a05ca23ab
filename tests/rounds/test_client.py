"""What a client does in a round: Algorithm 1, lines 3–8."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedrecplus.config import assign
from fedrecplus.config.settings import PseudoItemSettings
from fedrecplus.device import Device
from fedrecplus.gradients import step_sizes, user_step
from fedrecplus.model import prior
from fedrecplus.parts import choices
from fedrecplus.protocol import PeerMessage, Upload
from fedrecplus.rounds import client_round
from fedrecplus.rounds.client import denoise, merge, noise_of
from fedrecplus.rounds.filling import pseudo_count, pseudo_items, size_class
from tests.contracts.one_round import broadcast_of, devices_of, problem_of

MODELS = {"plain": [], "biases": ["model.biases=true", "model.global_mean=true"], "shrink": ["model.shrink_to=start"]}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("epochs", [1, 5])
def test_an_upload_is_minus_the_rate_times_the_sum_of_gradients(model: str, epochs: int) -> None:
    """Δ_ui = −η_L Σ_k g_ui^k, g = λ V_i − e_ui U: the second half of line 8, with gradients written out again."""
    problem = problem_of("virtual_ratings.rule=weighted", f"client.local_epochs={epochs}", *MODELS[model])
    config, message = problem.config, broadcast_of(problem)
    rate, decay = config.client.learning_rate, config.model.regularisation
    U_prior, V_prior = prior(config.model, message.mean)
    for device in devices_of(problem)[:10]:
        rows = merge(device, pseudo_items(message, device, config))
        U, V, gradients = device.U, message.V[rows.items], 0.0
        for _ in range(epochs):
            U = user_step(U, V, rows.ratings - message.mean, U_prior, step_sizes(config, message.round))
            e = rows.ratings - (message.mean + V @ U[:-1] + U[-1])
            g = decay * (V - V_prior) - e[:, None] * U[:-1]
            V = V - rate * g
            gradients = gradients + g
        upload, after = client_round(message, device, config)
        np.testing.assert_allclose(upload.delta, -rate * gradients, rtol=0, atol=1e-12)
        np.testing.assert_allclose(after.U, U, rtol=0, atol=1e-12)


@pytest.mark.parametrize("u_step", ["all", "rated"])
def test_the_user_step_averages_over_the_rows_it_is_told(u_step: str) -> None:
    problem = problem_of(f"client.u_step={u_step}", "client.local_epochs=1")
    config, message = problem.config, broadcast_of(problem)
    rate, decay = config.client.learning_rate, config.model.regularisation
    for device in devices_of(problem)[:10]:
        rows = merge(device, pseudo_items(message, device, config))
        used = rows.rated if u_step == "rated" else np.ones(len(rows.items), bool)
        V, U = message.V[rows.items][used], device.U[:-1]
        e = rows.ratings[used] - V @ U
        expected = U - rate * (decay * U - (e[:, None] * V).mean(axis=0))
        np.testing.assert_allclose(client_round(message, device, config)[1].U[:-1], expected, rtol=0, atol=1e-12)


def test_small_steps_go_down_the_gradient_of_the_objective() -> None:
    """Objective of Eq. (2) with λ/2: V's step against a numerical gradient."""
    problem = problem_of("client.local_epochs=1", "client.learning_rate=1e-6")
    config, message, device = problem.config, broadcast_of(problem), devices_of(problem)[4]
    upload, after = client_round(message, device, config)
    rows = merge(device, pseudo_items(message, device, config))
    V = message.V[rows.items]

    def objective(V: np.ndarray) -> float:
        e = rows.ratings - V @ after.U[:-1]
        return float(0.5 * (e**2).sum() + 0.5 * config.model.regularisation * (V**2).sum())

    for row, column in [(0, 0), (1, 3), (len(V) - 1, 2)]:
        up, down = V.copy(), V.copy()
        up[row, column] += 1e-5
        down[row, column] -= 1e-5
        slope = (objective(up) - objective(down)) / 2e-5
        assert upload.delta[row, column] == pytest.approx(-1e-6 * slope, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("rule", choices("pseudo_items"))
@pytest.mark.parametrize("batch_size", [0, 3])
def test_uploads_are_sorted_by_item_and_mix_rated_with_pseudo(rule: str, batch_size: int) -> None:
    problem = problem_of(f"pseudo_items.rule={rule}", f"client.batch_size={batch_size}")
    message = broadcast_of(problem)
    for device in devices_of(problem):
        upload, after = client_round(message, device, problem.config)
        assert (np.diff(upload.items) > 0).all()
        assert np.isin(device.items, upload.items).all()
        assert after.kept is not None
        assert set(upload.items) == set(device.items) | set(after.kept.items)
        assert upload.delta.shape == (len(upload.items), message.V.shape[1])


def test_nothing_leaves_a_device_but_the_fields_of_an_upload() -> None:
    problem = problem_of("pseudo_items.rule=similar")
    upload, _ = client_round(broadcast_of(problem), devices_of(problem)[0], problem.config)
    assert type(upload) is Upload
    assert {field.name for field in fields(Upload)} == {"client", "items", "delta", "weight", "counts"}
    assert {field.name for field in fields(PeerMessage)} == {"items", "delta"}
    assert not hasattr(upload, "__dict__") or set(vars(upload)) == {field.name for field in fields(Upload)}
    assert upload.weight is None
    assert upload.counts is None
    private = {field.name for field in fields(Device)} - {"client", "items"}
    assert private & {field.name for field in fields(Upload)} == set()


def test_a_pseudo_row_with_the_rating_of_a_rated_row_is_uploaded_as_that_one_would_be() -> None:
    """What the server gets depends on item and rating alone, not on which of the two a row is."""
    problem = problem_of("client.u_step=all", "virtual_ratings.rule=user-average")
    message, device = broadcast_of(problem), devices_of(problem)[3]
    upload, after = client_round(message, device, problem.config)
    assert after.kept is not None
    rows = merge(device, after.kept)
    honest = replace(device, items=rows.items, ratings=rows.ratings)
    really = assign(problem.config, ["pseudo_items.rule=none"])
    np.testing.assert_allclose(client_round(message, honest, really)[0].delta, upload.delta, rtol=0, atol=1e-12)


def test_a_client_that_weighs_itself_sends_the_weight_and_the_weighted_rows() -> None:
    problem = problem_of("aggregation.rule=wasserstein")
    message, device = broadcast_of(problem), devices_of(problem)[1]
    plain, _ = client_round(message, device, problem.config)
    weighed, _ = client_round(message, device, assign(problem.config, ["aggregation.weigh_on=client"]))
    assert weighed.weight is not None
    np.testing.assert_allclose(weighed.delta, weighed.weight * plain.delta, rtol=1e-12)
    assert weighed.bytes == plain.bytes + 4


def test_denoising_takes_out_exactly_the_noise() -> None:
    problem = problem_of("client.u_step=rated")
    message, (first, second, third) = broadcast_of(problem), devices_of(problem)[:3]
    uploads = [client_round(message, device, problem.config)[0] for device in (first, second, third)]
    messages = [noise_of(upload, device) for upload, device in zip(uploads[:2], (first, second), strict=True)]
    assert not np.isin(messages[0].items, first.items).any()
    denoised = denoise(uploads[2], third, messages)
    assert denoised.counts is not None
    total, counts = np.zeros_like(message.V), np.zeros(len(message.V), np.int64)
    for upload in (uploads[0], uploads[1], denoised):
        total[upload.items] += upload.delta
        counts[upload.items] += 1 if upload.counts is None else upload.counts
    expected, raters = np.zeros_like(total), np.zeros_like(counts)
    for upload, device in zip(uploads, (first, second, third), strict=True):
        own = np.isin(upload.items, device.items)
        expected[upload.items[own]] += upload.delta[own]
        raters[device.items] += 1
    np.testing.assert_allclose(total, expected, rtol=0, atol=1e-12)
    assert (counts == raters).all()


@settings(max_examples=100)
@given(st.integers(1, 5000))
def test_a_size_class_holds_its_rows_and_little_more(rows: int) -> None:
    size = size_class(rows)
    assert size >= rows
    assert size <= max(16, np.ceil(rows * 2 ** (1 / 3)))
    assert size_class(size) == size
    assert size_class(rows + 1) >= size


def test_there_are_few_size_classes() -> None:
    classes = sorted({size_class(rows) for rows in range(1, 1025)})
    assert classes == [16, 21, 26, 32, 41, 51, 64, 81, 102, 128, 162, 204, 256, 323, 407, 512, 646, 813, 1024]


@settings(max_examples=100)
@given(st.integers(0, 60), st.floats(0, 5), st.integers(0, 50), st.booleans(), st.sampled_from(["none", "random"]))
def test_pseudo_items_never_outnumber_unrated_ones(rated: int, ratio: float, count: int, pad: bool, rule: str) -> None:
    number = pseudo_count(rated, 60, PseudoItemSettings(rule=rule, ratio=ratio, count=count, pad=pad))
    assert 0 <= number <= 60 - rated
    if rule == "none" or rated == 0:
        assert number == 0
    elif pad and number < 60 - rated:
        assert size_class(rated + number) == rated + number
    elif count > 0 and not pad:
        assert number == min(count, 60 - rated)


def test_padded_uploads_have_the_size_of_a_class() -> None:
    problem = problem_of("pseudo_items.pad=true", "pseudo_items.ratio=0.5")
    message = broadcast_of(problem)
    sizes = {len(client_round(message, device, problem.config)[0].items) for device in devices_of(problem)}
    assert sizes <= {16, 21, 26, 32, 40}
