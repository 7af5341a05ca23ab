"""What one person can change of a release is bounded, whatever the person's data are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import arrays

from fedrecplus.config import Config, assign
from fedrecplus.parts.channel import encode, encoding_for, layout_of, secure
from fedrecplus.parts.privacy import Mechanism, _budget, central, contribution, distributed, local, sensitivity
from fedrecplus.protocol import PublicItems, Sums, Upload
from fedrecplus.rounds import client_round, local_update, pseudo_items
from fedrecplus.rounds.release import rounding_norm
from fedrecplus.testing import example_round

numbers = st.floats(-1e6, 1e6)


@given(
    delta=arrays(float, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=numbers),
    statistic=arrays(float, st.integers(0, 5), elements=numbers),
    clip=st.floats(1e-3, 100),
    cap=st.integers(1, 60),
)
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("rule", ["central", "distributed"])
def test_an_update_is_no_larger_than_the_clip(
    rule: str, delta: np.ndarray, statistic: np.ndarray, clip: float, cap: int
) -> None:
    upload = Upload(0, np.arange(len(delta)), delta, statistic=statistic)
    sent = Mechanism.choose(rule, clip=clip, cap=cap).protect(upload, 0, None)  # type: ignore[arg-type]
    assert np.sqrt(np.sum(sent.delta**2) + np.sum(sent.statistic**2)) <= clip


@given(
    ratings=arrays(float, st.integers(1, 50), elements=st.floats(1, 5)), cap=st.integers(1, 80), more=st.integers(0, 10)
)
@settings(max_examples=100, deadline=None)
def test_a_contribution_to_the_statistics_is_no_larger_than_said(ratings: np.ndarray, cap: int, more: int) -> None:
    vector = contribution(np.arange(len(ratings)), ratings, len(ratings) + more, cap)
    assert np.linalg.norm(vector) <= sensitivity(cap)


@given(scales=arrays(float, 6, elements=st.floats(1, 1e4)), delta=arrays(float, (6, 2), elements=st.floats(-1, 1)))
@settings(max_examples=100, deadline=None)
def test_rounding_to_the_ring_is_part_of_the_sensitivity(scales: np.ndarray, delta: np.ndarray) -> None:
    rounded = np.rint(delta * scales[:, None]) / scales[:, None]
    assert np.linalg.norm(rounded) <= distributed.ring_sensitivity(float(np.linalg.norm(delta)), scales, 2) + 1e-9


BUDGET = (
    "pseudo_items.rule=none", "statistics.source=secure-sum", "channel.rule=sums", "model.rule=reconstruction",
    "model.factors=2",
)  # fmt: skip


@pytest.mark.parametrize("rule", ["central", "distributed"])
def test_every_upload_of_a_round_is_bounded_and_says_nothing_of_weights(rule: str) -> None:
    problem, message, devices = example_round(f"privacy.rule={rule}", "privacy.clip=0.01", *BUDGET)
    for device in devices:
        upload, _ = client_round(message, device, problem.config)
        assert np.linalg.norm(upload.delta) <= 0.01
        assert upload.weight in (None, 0.0)


def test_people_with_more_ratings_weigh_less_each_and_as_much_together() -> None:
    assert _budget.person_weight(10, 50) == 1.0
    assert 200 * _budget.person_weight(200, 50) ** 2 == pytest.approx(50)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_local_noise_is_that_of_the_claim(noise: str) -> None:
    options = local.Settings(noise=noise, clip=0.5, epsilon=2.0)
    found = local.with_noise(np.zeros(40_000), options, 5)
    scale = np.sqrt(2) * local.laplace_scale(options) if noise == "laplace" else found.std()
    assert found.std() == pytest.approx(scale, rel=0.03)
    assert found.std() > 0.5
    far = local.with_noise(np.full(40_000, 9.0), options, 5) - found
    assert np.abs(far).max() <= 0.5 + 1e-9


def test_the_chain_clips_what_local_training_gave() -> None:
    problem, message, devices = example_round("privacy.rule=central", "privacy.clip=1e-3", *BUDGET)
    raw, _ = local_update(message, devices[0], problem.config, pseudo_items(message, devices[0], problem.config))
    sent, _ = client_round(message, devices[0], problem.config)
    assert np.linalg.norm(raw.delta) > 1e-3
    np.testing.assert_allclose(sent.delta / np.linalg.norm(sent.delta), raw.delta / np.linalg.norm(raw.delta))


def test_rounding_in_a_ring_lifts_no_update_over_what_noise_is_calibrated_to() -> None:
    rng, clients, settings = np.random.default_rng(0), 50, secure.Settings(bound=2.0, least_cohort=2)
    layout = layout_of((200, 4), 0, settings)
    encoding = encoding_for(layout, PublicItems(np.zeros((200, 0)), np.full(200, 9)), clients, settings)
    allowed = 2.0 + secure.Secure(settings).rounding_norm(800, 0, clients)
    assert 2.0 < allowed < 2.001
    for client in range(5):
        upload = Upload(client, np.arange(200), rng.normal(size=(200, 4)))
        sent = central.Central(central.Settings(clip=2.0)).protect(upload, 0, None)  # type: ignore[arg-type]
        steps = encode(replace(sent, weight=1.0), encoding).updates.view("<i4")
        assert np.linalg.norm(steps / encoding.scales[:, None]) <= allowed


def test_a_channel_that_rounds_nothing_adds_nothing_to_a_client_s_norm() -> None:
    sums = Sums(np.zeros((20, 3)), np.zeros(20), 5.0, 5)
    assert rounding_norm(sums, Config()) == 0.0
    secured = assign(Config(), ["channel.rule=secure"])
    assert rounding_norm(sums, secured) == secured.channel.rounding_norm(60, 1, 5) > 0.0
