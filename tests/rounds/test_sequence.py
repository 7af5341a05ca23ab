"""What is chosen soon after what: each device's part, what the sums come to, whose turn it is, and lists made of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedrecplus.config import Config, assign, preset
from fedrecplus.data import Ratings
from fedrecplus.deploy.wire.request import check_deployable
from fedrecplus.device import Rows
from fedrecplus.engines import engine_of, item_columns, prepare
from fedrecplus.engines.state import device_of, message_of
from fedrecplus.errors import UserError
from fedrecplus.parts.model._transitions import row_scale, size_of_rows
from fedrecplus.parts.model.sequence import Sequence
from fedrecplus.parts.recency import recency_weights
from fedrecplus.testing.example import state_after
from tests.small_data import small_ratings

SMALL = (
    "model.factors=3",
    "model.interaction_factors=4",
    "channel.rule=sums",
    "precision=float64",
    "server.held_back=0",
)
K, ROUNDS = 7, 8
"""columns of T, and rounds, of which the last two are T's"""


def in_order(clients: int = 30) -> Ratings:
    """Ratings of items at random times, some of them the same."""
    ratings = small_ratings(clients=clients)
    return replace(ratings, timestamps=np.random.default_rng(4).integers(0, 60, len(ratings)))


def config_of(*changes: str) -> Config:
    return assign(preset("fedrec+secure"), ["model.rule=sequence", *SMALL, f"server.rounds={ROUNDS}", *changes])


def closeness(ratings: Ratings, items: int) -> np.ndarray:
    """C, by loops over everybody's pairs of choices."""
    C, ages = np.zeros((items, items)), ratings.ages()
    assert ages is not None
    for client in range(ratings.clients):
        own = range(int(ratings.indptr[client]), int(ratings.indptr[client + 1]))
        for s in own:
            for t in own:
                if s != t:
                    C[ratings.items[s], ratings.items[t]] += 0.5 * np.exp(-(abs(int(ages[s]) - int(ages[t])) - 1) / 2)
    return C


def test_a_device_sends_its_own_part_of_the_product_with_t() -> None:
    ratings = in_order()
    problem = prepare(ratings, config_of())
    model = problem.config.model
    assert isinstance(model, Sequence)
    state = engine_of(problem.config).start(problem)
    T = state.server.V[:, model.width :]
    message = replace(message_of(problem, state), V=T)
    scale = row_scale(model.settings, problem.public)
    alone = ratings.where(ratings.client_of_rating == 7)
    expected = closeness(alone, ratings.item_count) @ (scale[:, None] * T) / size_of_rows(T, scale)
    device = device_of(problem, state.private, 7)
    rows = Rows(device.items, device.ratings, np.ones(len(device.items), np.bool_))
    sent = model.transitions.local_training(device, rows, message).delta
    np.testing.assert_allclose(sent, expected[device.items], atol=1e-12)
    assert not model.transitions.local_training(replace(device, ages=None), rows, message).delta.any()


@pytest.mark.parametrize("engine", ["fast", "reference"])
def test_rounds_come_to_the_strongest_directions_of_the_scaled_closeness(engine: str) -> None:
    ratings = in_order()
    problem = prepare(ratings, config_of("server.rounds=160", f"engine={engine}"))
    model, state = problem.config.model, state_after(problem, 160, engine)
    assert isinstance(model, Sequence)
    scale = row_scale(model.settings, problem.public)
    strengths, directions = np.linalg.eigh(scale[:, None] * closeness(ratings, ratings.item_count) * scale)
    top = directions[:, ::-1][:, :3] * np.sqrt(strengths[::-1][:3] / strengths[-1]) ** 0.5
    T = state.server.V[:, model.width :]
    found = np.linalg.svd(T)[1][:3]
    np.testing.assert_allclose(found, np.linalg.svd(top)[1], rtol=0.03)
    left = top - T @ np.linalg.lstsq(T, top, rcond=None)[0]
    assert np.linalg.norm(left) < 0.1 * np.linalg.norm(top)


def test_a_round_is_of_v_and_w_or_of_t_and_no_wider_than_the_wider() -> None:
    problem = prepare(in_order(), config_of("channel.rule=secure", "channel.least_cohort=3"))
    runner, width = engine_of(problem.config), K
    before, cost = runner.start(problem), []
    for number in range(ROUNDS):
        after, report = runner.round(problem, before)
        moved = np.abs(after.server.V - before.server.V).sum(axis=0) > 0
        assert moved.tolist() == ([False] * width + [True] * K if number >= 6 else [True] * width + [False] * K)
        cost.append(report.bytes_up)
        before = after
    assert cost[6] == cost[7] < min(cost[:6])


def test_lists_without_an_order_are_those_of_joint_and_with_one_add_what_is_chosen_nearby() -> None:
    ratings = in_order()
    problem = prepare(ratings, config_of())
    model, state = problem.config.model, state_after(problem, ROUNDS, problem.config.engine)
    assert isinstance(model, Sequence)
    V, public = state.server.V, problem.public
    X, plain = item_columns(problem, V), model.joint.item_columns(V[:, : model.width], public)
    items, given = ratings.of(3)
    w, others = (part.fold_in(columns, items, given, public) for part, columns in ((model, X), (model.joint, plain)))
    np.testing.assert_allclose(X @ w, plain @ others)
    for recency in (None, recency_weights(np.arange(len(items)), 3.0)):
        listed = X @ model.list_weights(w, X, items, given, public, recency)
        expected = plain @ model.joint.list_weights(others, plain, items, given, public, recency)
        if recency is not None:
            scale, T = row_scale(model.settings, public), V[:, model.width :]
            near = np.exp(-np.arange(len(items)) / 3.0)
            expected = expected + 5 * (T / scale[:, None]) @ (T[items].T @ (near * scale[items]))
            shares = model.list_weight_shares(X, items, given, public, recency)
            z = model.list_weights(w, X, items, given, public, recency)
            np.testing.assert_allclose(shares.sum(axis=0)[-K:], z[-K:], atol=1e-9)
        np.testing.assert_allclose(listed, expected, atol=1e-9)


def test_deployments_refuse_tables_that_take_turns() -> None:
    with pytest.raises(UserError, match="take turns, which deployments don't know"):
        check_deployable(assign(preset("fedrec+secure"), ["model.rule=sequence"]))
