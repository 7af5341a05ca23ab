"""A hostile deployment: what a server that lies reads from devices that follow the protocol."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.deploy.in_process import prepared
from tests.deploy.summing import message, secure_config
from tests.hostile.lying_server import LyingServer, rated, willing
from tests.small_data import small_ratings

NODES = 6
EVERYBODY = list(range(1, NODES + 1))
RATINGS = small_ratings(clients=NODES, items=30)


@pytest.fixture
def server(tmp_path: Path) -> LyingServer:
    return LyingServer(prepared(tmp_path, RATINGS, secure_config(), NODES), RATINGS)


def test_an_honest_question_is_answered_to_the_end(server: LyingServer) -> None:
    """Else nothing below would mean anything."""
    outcome = server.sum(secure_config(), EVERYBODY)
    assert outcome.total is not None
    assert outcome.silent == set()


@pytest.mark.parametrize("bound", [1e-3, 1.0])
def test_refusals_say_nothing_of_who_rated_what(server: LyingServer, bound: float) -> None:
    """V is zero but for one item's row, and the bound so small that whoever has rated it exceeds it."""
    right, config = 0, secure_config(channel__bound=bound)
    for item in range(6):
        V = np.zeros_like(server.state(config).V)
        V[item] = 500.0
        silent = server.sum(config, EVERYBODY, V).silent
        have = {node for node in EVERYBODY if item in rated(RATINGS, node, NODES)}
        assert silent in (set(), set(EVERYBODY)), (item, silent, have)
        right += bool(have) and silent == have
    assert right == 0


def test_the_same_round_over_another_cohort_is_not_unmasked(server: LyingServer) -> None:
    """Else the difference of two sums would be the upload of whoever is missing in one."""
    config = secure_config()
    first = server.sum(config, EVERYBODY)
    second = server.sum(config, EVERYBODY[:-1])
    assert first.total is not None
    assert second.total is None, "another model's name is no other V"


def test_a_device_that_was_left_out_is_no_help_for_a_second_sum(server: LyingServer) -> None:
    """One that has given nothing yet may be asked; those whose sum was unmasked don't join it again."""
    config = secure_config()
    assert server.sum(config, EVERYBODY[:-1]).total is not None
    replies = server.ask(config, EVERYBODY)
    assert willing(replies) <= {EVERYBODY[-1]}
    assert all(message(replies[node]) for node in willing(replies))
