"""What every server step promises. A new file in server_steps/ is enrolled by being there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config.settings import ServerSettings
from fedrecplus.parts import choices, part

STEPS = choices("server_steps")
A = np.random.default_rng(0).normal(size=(6, 3))
A.flags.writeable = False
SETTINGS = ServerSettings(learning_rate=0.7)


def at_rest(name: str) -> list[np.ndarray]:
    return [np.zeros_like(A) for _ in range(part("server_steps", name).MOMENTS)]


@pytest.mark.parametrize("name", STEPS)
def test_nothing_moves_nothing_from_rest(name: str) -> None:
    moments = at_rest(name)
    for number in range(3):
        step, moments = part("server_steps", name).step(np.zeros_like(A), moments, SETTINGS, number)
        assert (step == 0.0).all()
        assert all((moment == 0.0).all() for moment in moments)


@pytest.mark.parametrize("name", STEPS)
def test_it_keeps_as_many_tables_as_it_says(name: str) -> None:
    _, moments = part("server_steps", name).step(A, at_rest(name), SETTINGS, 0)
    assert len(moments) == part("server_steps", name).MOMENTS
    assert all(moment.shape == A.shape for moment in moments)


@pytest.mark.parametrize("name", STEPS)
def test_from_rest_every_number_moves_the_way_of_the_aggregate(name: str) -> None:
    moments = at_rest(name)
    for number in range(4):
        step, moments = part("server_steps", name).step(A, moments, SETTINGS, number)
        assert (np.sign(step) == np.sign(A)).all()


@pytest.mark.parametrize("name", STEPS)
def test_twice_the_rate_is_twice_the_step(name: str) -> None:
    single, _ = part("server_steps", name).step(A, at_rest(name), SETTINGS, 0)
    double, _ = part("server_steps", name).step(A, at_rest(name), replace(SETTINGS, learning_rate=1.4), 0)
    np.testing.assert_allclose(double, 2.0 * single, rtol=1e-12)


@pytest.mark.parametrize("name", STEPS)
def test_what_it_is_given_is_not_changed(name: str) -> None:
    moments = at_rest(name)
    for moment in moments:
        moment.flags.writeable = False
    first = part("server_steps", name).step(A, moments, SETTINGS, 0)
    second = part("server_steps", name).step(A, moments, SETTINGS, 0)
    assert (first[0] == second[0]).all()


@pytest.mark.parametrize("name", STEPS)
def test_32_bit_tables_stay_32_bit(name: str) -> None:
    step, moments = part("server_steps", name).step(
        A.astype(np.float32), [moment.astype(np.float32) for moment in at_rest(name)], SETTINGS, 0
    )
    assert {table.dtype for table in [step, *moments]} == {np.dtype(np.float32)}


def test_plain_is_the_rate_times_the_aggregate() -> None:
    step, _ = part("server_steps", "plain").step(A, [], SETTINGS, 0)
    np.testing.assert_allclose(step, 0.7 * A, rtol=1e-15)


def test_momentum_adds_up_to_the_geometric_sum() -> None:
    moments = at_rest("momentum")
    for number in range(3):
        step, moments = part("server_steps", "momentum").step(A, moments, replace(SETTINGS, momentum=0.5), number)
    np.testing.assert_allclose(step, 0.7 * 1.75 * A, rtol=1e-12)


def test_the_first_step_of_adam_has_the_size_of_the_rate() -> None:
    step, _ = part("server_steps", "adam").step(A, at_rest("adam"), SETTINGS, 0)
    np.testing.assert_allclose(np.abs(step), 0.7, rtol=1e-5)
