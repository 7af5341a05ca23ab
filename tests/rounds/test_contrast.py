"""Steps that go further where factors differ: how far, to where, and no further."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.config.check import check
from fedrecplus.errors import UserError
from fedrecplus.gradients import (
    StepSizes,
    contrasted,
    floor_share,
    kept_steady,
    server_contrast,
    step_sizes,
    user_step,
)
from fedrecplus.model import prior
from fedrecplus.rounds.server import ServerState, apply

FACTORS = 6


def sizes_of(*changes: str) -> StepSizes:
    return step_sizes(assign(Config(), [f"model.factors={FACTORS}", *changes]), 0)


def a_person(rows: int = 20) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(rows)
    V = random.normal(0.8, 0.15, (rows, FACTORS))
    U_prior, _ = prior(assign(Config(), [f"model.factors={FACTORS}"]).model, 0.0)
    return np.append(random.normal(0.8, 0.1, FACTORS), 0.0), V, random.integers(1, 6, rows).astype(float), U_prior


@pytest.mark.parametrize("factors", [FACTORS, FACTORS - 2])
def test_the_mean_of_a_step_stays_and_the_rest_is_enlarged(factors: int) -> None:
    step = np.random.default_rng(0).normal(size=(5, FACTORS))
    larger = contrasted(step, 3.0, factors)
    common = step[:, :factors].mean(axis=1, keepdims=True)
    assert larger[:, :factors].mean(axis=1, keepdims=True) == pytest.approx(common)
    assert larger[:, :factors] - common == pytest.approx(3.0 * (step[:, :factors] - common))
    assert np.array_equal(larger[:, factors:], step[:, factors:])


def test_steps_lead_to_the_same_place_in_fewer_rounds() -> None:
    U, V, ratings, U_prior = a_person()

    def after(contrast: float, steps: int) -> np.ndarray:
        sizes, at = kept_steady(sizes_of("client.learning_rate=0.2", f"client.contrast={contrast}"), V), U
        for _ in range(steps):
            at = user_step(at, V, ratings, U_prior, sizes)
        return at

    plain, quick = after(1.0, 20_000), after(30.0, 20_000)
    assert quick == pytest.approx(plain, abs=1e-9)
    assert np.linalg.norm(after(30.0, 20) - plain) < 0.5 * np.linalg.norm(after(1.0, 20) - plain)


@pytest.mark.parametrize("rows", [1, 2, 50])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_no_contrast_overshoots(rows: int, scale: float) -> None:
    """However large the setting: the error along which factors differ never grows, whatever the rows."""
    U, V, ratings, U_prior = a_person(rows)
    V = 0.5 + scale * (V - V.mean(axis=1, keepdims=True))  # all rows have the same common part, which is left alone
    sizes = kept_steady(sizes_of("client.learning_rate=0.05", "client.contrast=1e6"), V)
    losses = []
    for _ in range(30):
        e = ratings - V @ U[:-1]
        losses.append(float((e**2).mean() + sizes.decay_U * U @ U))
        U = user_step(U, V, ratings, U_prior, sizes)
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(losses))


@pytest.mark.parametrize("rows", [1, 2, 10, 1000])
@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_the_fewer_ratings_the_smaller_a_part_of_the_way(rows: int, scale: float) -> None:
    """One rating goes an eleventh of the way to the bottom; where rows are very uneven, less than a plain step."""
    _, V, _, _ = a_person(rows)
    V = 0.5 + scale * (V - V.mean(axis=1, keepdims=True))
    sizes = kept_steady(sizes_of("client.learning_rate=0.2", "client.contrast=1e6", "model.regularisation=0"), V)
    way = sizes.rate * sizes.contrast * float(((V - 0.5) ** 2).sum(axis=1).mean())
    assert way == pytest.approx(rows / (rows + 10.0))
    assert (sizes.contrast < 1.0) == (scale == 10.0)


def test_the_servers_contrast_enlarges_the_step_it_tells() -> None:
    config = assign(Config(), [f"model.factors={FACTORS}", "server.learning_rate=1"])
    aggregate = np.random.default_rng(1).normal(size=(3, FACTORS))
    zero = np.zeros((3, FACTORS))
    after = apply(
        ServerState(0, zero, zero, zero, []),
        aggregate,
        zero,
        replace(config, server=replace(config.server, contrast=4.0)),
    )
    expected = contrasted(aggregate, 4.0, FACTORS)
    np.testing.assert_allclose(after.V, expected)
    np.testing.assert_allclose(after.last_step, expected)


def test_rows_that_the_floor_holds_are_thrown_no_further() -> None:
    config = assign(
        Config(), [f"model.factors={FACTORS}", "model.floor=2", "server.contrast=8", "client.local_epochs=3"]
    )
    popularity = np.array([0, 1, 10, 100_000])
    contrast = server_contrast(popularity, config, 0)
    assert isinstance(contrast, np.ndarray)
    share = floor_share(popularity, config, 0)
    assert share[0] == share[1] == 1.0
    assert contrast[:, 0] == pytest.approx(1.0 + 7.0 * (1.0 - share))
    assert contrast[-1, 0] == pytest.approx(8.0, abs=0.01)


def test_covariances_are_refused_beside_it() -> None:
    with pytest.raises(UserError, match="covariances"):
        check(assign(Config(), ["server.contrast=2", "aggregation.covariance=diagonal"]))


def test_with_batches_it_is_refused() -> None:
    with pytest.raises(UserError, match="all of a client's rows"):
        check(assign(Config(), ["client.contrast=2", "client.batch_size=5"]))
