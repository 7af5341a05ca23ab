"""The noise has the distribution that the accountant assumes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from fedrecplus.errors import UserError
from fedrecplus.parts.channel._ring import RingLayout, add_all, encode, encoding_of
from fedrecplus.parts.privacy import Calibration, Mechanism, _noise, central, distributed
from fedrecplus.parts.privacy._noise import discrete_gaussian, seeded_gaussian, seeded_words
from fedrecplus.protocol import Upload


def expected(scale: float, values: np.ndarray) -> np.ndarray:
    reach = np.arange(-400, 401)
    return np.exp(-(values**2) / (2 * scale**2)) / np.exp(-(reach**2) / (2 * scale**2)).sum()


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7, 20.0])
def test_the_discrete_gaussian_is_one(scale: float) -> None:
    drawn = discrete_gaussian(np.full(60_000, scale), seeded_words(3))
    edge = max(1, int(2.5 * scale))
    values = np.arange(-edge, edge + 1)
    counts = np.array([(drawn == value).sum() for value in values] + [(np.abs(drawn) > edge).sum()], dtype=float)
    shares = expected(scale, values)
    assert chisquare(counts, 60_000 * np.append(shares, 1.0 - shares.sum())).pvalue > 1e-3


def test_large_scales_have_their_variance_and_no_bias() -> None:
    drawn = discrete_gaussian(np.full(40_000, 1e6), seeded_words(4)).astype(float)
    assert drawn.std() == pytest.approx(1e6, rel=0.015)
    assert abs(drawn.mean()) < 4 * 1e6 / np.sqrt(40_000)


def test_each_number_has_its_own_scale_and_none_gets_none() -> None:
    drawn = discrete_gaussian(np.tile([0.0, 2.0, 200.0], (10_000, 1)), seeded_words(5))
    assert (drawn[:, 0] == 0).all()
    np.testing.assert_allclose(drawn[:, 1:].std(axis=0), [2.0, 200.0], rtol=0.05)


def test_a_sum_of_shares_has_the_law_of_one_discrete_gaussian() -> None:
    words = seeded_words(6)
    total = sum(distributed.ring_noise((40_000,), 1.0, 5.0, words) for _ in range(4))
    values = np.arange(-25, 26)
    counts = np.array([(total == value).sum() for value in values] + [(np.abs(total) > 25).sum()], dtype=float)
    shares = expected(10.0, values)
    assert chisquare(counts, 40_000 * np.append(shares, 1.0 - shares.sum())).pvalue > 1e-3


def test_devices_draw_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = _noise.os.urandom
    monkeypatch.setattr(_noise.os, "urandom", lambda size: asked.append(size) or real(size))
    first, second = (distributed.ring_noise((200,), 1.0, 8.0) for _ in range(2))
    assert asked
    assert not np.array_equal(first, second)


def test_a_key_gives_the_same_noise_again() -> None:
    np.testing.assert_array_equal(seeded_gaussian(3, (5, 2)), seeded_gaussian(3, (5, 2)))
    assert not np.array_equal(seeded_gaussian(3, (5, 2)), seeded_gaussian(4, (5, 2)))
    assert seeded_gaussian(5, (40_000,)).std() == pytest.approx(1.0, rel=0.02)


def test_a_server_s_noise_is_on_a_grid_and_as_large_as_said() -> None:
    found, sd = central.Central().noisy(np.zeros(20_000), Calibration(2.0, 3.0, 10, 10, 0), seeded_words(1))
    steps = found * central._STEPS / 3.0
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)
    assert found.std() == pytest.approx(sd, rel=0.03)
    assert sd >= 6.0


@pytest.mark.parametrize("draw", ["sum", "shares"])
def test_the_fewest_honest_devices_bring_enough_noise(draw: str) -> None:
    options = distributed.Settings(honest=0.5, draw=draw)
    found, sd = distributed.Distributed(options).noisy(np.zeros(4_000), Calibration(2.0, 3.0, 20, 10, 7))
    assert sd >= 6.0
    assert found.std() == pytest.approx(sd, rel=0.05)


def test_shares_added_in_the_ring_come_out_as_noise_on_the_sum() -> None:
    devices, layout = 30, RingLayout(items=40, columns=3, bits=32)
    options = distributed.Settings(honest=0.5, clip=2.0)
    room = distributed.headroom(1.5, 2.1, 2.0, devices, options)
    encoding = encoding_of(layout, np.full(40, devices + room), devices, bound=2.0, largest_weight=1.0)
    sensitivity = distributed.ring_sensitivity(2.0, encoding.scales, 3)
    scale = distributed.share_scale(1.5, sensitivity, devices, options)
    rng, vectors, exact = np.random.default_rng(0), [], np.zeros((40, 3))
    for device in range(devices):
        upload = Upload(device, np.arange(0, 40, 2), rng.normal(size=(20, 3)))
        sent = distributed.Distributed(options).protect(upload, 0, None)  # type: ignore[arg-type]
        exact[sent.items] += sent.delta
        vector = encode(sent, encoding)
        noise = distributed.ring_noise(vector.updates.shape, scale, encoding.scales[:, None], seeded_words(device))
        vector.updates += noise.astype(vector.updates.dtype)
        vectors.append(vector)
    total = add_all(vectors, layout).updates.view("<i4") / encoding.scales[:, None]
    sd = scale * np.sqrt(devices)
    assert sd >= 1.5 * 2.0
    assert (total - exact).std() == pytest.approx(sd, rel=0.25)
    assert np.abs(total - exact).max() < 6 * sd


def test_too_few_answers_fail_closed() -> None:
    with pytest.raises(UserError, match="9 of 20 devices answered"):
        Mechanism.choose("distributed", honest=0.5).noisy(np.zeros(4), Calibration(2.0, 3.0, 20, 9, 7))


def test_a_ring_too_coarse_for_a_share_is_refused() -> None:
    with pytest.raises(UserError, match="steps of the ring"):
        distributed.ring_noise((3,), 1.0, 0.5)
