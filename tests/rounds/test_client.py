"""What a client does in a round: Algorithm 1, lines 3–8."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from fedrecplus.config import assign
from fedrecplus.device import Device, merge
from fedrecplus.parts import KINDS, built_in
from fedrecplus.protocol import PeerMessage, Upload
from fedrecplus.rounds import client_round, predictions_of, pseudo_items
from fedrecplus.rounds.client import _are_unrated, extra_rows, in_double
from fedrecplus.testing import example_round


def test_small_steps_go_down_the_gradient_of_the_objective() -> None:
    """Objective of Eq. (2) with λ/2: V's step against a numerical gradient."""
    problem, message, devices = example_round("model.learning_rate=1e-6")
    config, device = problem.config, devices[4]
    upload, after = client_round(message, device, config)
    rows = merge(device, pseudo_items(message, device, config))
    V = message.V[rows.items]

    def objective(V: np.ndarray) -> float:
        e = rows.ratings - V @ after.U[:-1]
        return float(0.5 * (e**2).sum() + 0.5 * config.model.settings.regularisation * (V**2).sum())

    for row, column in [(0, 0), (1, 3), (len(V) - 1, 2)]:
        up, down = V.copy(), V.copy()
        up[row, column] += 1e-5
        down[row, column] -= 1e-5
        slope = (objective(up) - objective(down)) / 2e-5
        assert upload.delta[row, column] == pytest.approx(-1e-6 * slope, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("rule", built_in(KINDS["pseudo_items"]))
def test_uploads_are_sorted_by_item_and_mix_rated_with_pseudo(rule: str) -> None:
    problem, message, devices = example_round(f"pseudo_items.rule={rule}", "model.batch_size=3")
    for device in devices:
        upload, after = client_round(message, device, problem.config)
        assert (np.diff(upload.items) > 0).all()
        assert after.kept is not None
        assert set(upload.items) == set(device.items) | set(after.kept.items)
        assert upload.delta.shape == (len(upload.items), message.V.shape[1])


def test_nothing_leaves_a_device_but_the_fields_of_an_upload() -> None:
    problem, message, devices = example_round()
    upload, _ = client_round(message, devices[0], problem.config)
    assert type(upload) is Upload
    sent = {field.name for field in fields(Upload)}
    assert sent == {"client", "items", "delta", "weight", "counts", "statistic", "clipped"}
    assert {field.name for field in fields(PeerMessage)} == {"items", "delta"}
    assert set(vars(upload)) == sent
    assert (upload.weight, upload.counts, upload.statistic.size, upload.clipped) == (None, None, 0, False)
    assert ({field.name for field in fields(Device)} - {"client", "items"}) & sent == set()


@pytest.mark.parametrize("model", ["model.user_step=all", "model.rule=reconstruction"])
def test_a_pseudo_row_with_the_rating_of_a_rated_row_is_uploaded_as_that_one_would_be(model: str) -> None:
    """What the server gets depends on item and rating alone, not on which of the two a row is."""
    over_all = ["model.user_step=all"] if "reconstruction" in model else []
    problem, message, devices = example_round(model, *over_all, "virtual_ratings.rule=user-average")
    upload, after = client_round(message, devices[3], problem.config)
    assert after.kept is not None
    rows = merge(devices[3], after.kept)
    honest = replace(devices[3], items=rows.items, ratings=rows.ratings)
    really = assign(problem.config, ["pseudo_items.rule=none"])
    np.testing.assert_allclose(client_round(message, honest, really)[0].delta, upload.delta, rtol=0, atol=1e-12)


def test_a_client_that_weighs_itself_sends_the_weight_and_the_weighted_rows() -> None:
    problem, message, devices = example_round("aggregation.rule=wasserstein")
    plain, _ = client_round(message, devices[1], problem.config)
    weighed, _ = client_round(message, devices[1], assign(problem.config, ["aggregation.weigh_on=client"]))
    assert weighed.weight is not None
    np.testing.assert_allclose(weighed.delta, weighed.weight * plain.delta, rtol=1e-12)
    assert weighed.bytes == plain.bytes + 4


def test_padded_uploads_have_the_size_of_a_class() -> None:
    problem, message, devices = example_round("pseudo_items.size_classes=true", "pseudo_items.ratio=0.5")
    sizes = {len(client_round(message, device, problem.config)[0].items) for device in devices}
    assert sizes <= {16, 21, 26, 32, 40}


def test_without_pseudo_items_there_are_neither_items_nor_ratings() -> None:
    """Nor where a rule hides rows and none is asked for."""
    for changes in (["pseudo_items.rule=none"], ["pseudo_items.rule=random", "pseudo_items.ratio=0"]):
        problem, message, devices = example_round(*changes)
        decoys = pseudo_items(message, devices[0], problem.config)
        assert (decoys.items.shape, decoys.ratings.shape) == ((0,), (0,))


def test_a_rule_that_adds_no_rows_of_its_own_adds_none() -> None:
    problem, message, devices = example_round("pseudo_items.rule=random")
    assert extra_rows(devices[0].items, message.public, problem.config) == 0


def test_a_single_device_computes_in_double_precision() -> None:
    _, message, _ = example_round()
    assert in_double(message) is message
    assert in_double(replace(message, V=message.V.astype(np.float32))).V.dtype == np.float64


def test_predictions_take_no_steps_unless_asked_for() -> None:
    problem, message, devices = example_round("model.rule=mf", "model.factors=3")
    device, items = devices[0], np.arange(5)
    predict, model = predictions_of(device, message, problem.config), problem.config.model
    np.testing.assert_array_equal(predict(items), model.predict(items, device, message, 0))
    assert not np.allclose(predict(items), predict(items, 1))


@pytest.mark.parametrize(
    ("chosen", "count", "right"),
    [
        ([[0, 2], [4, -1]], [2, 1], True),
        ([[4, 5], [0, -1]], [2, 1], True),
        ([[0, 4], [1, 3]], [2, 2], True),
        ([[0], [1]], [1, 1], True),
        (np.zeros((2, 0)), [0, 0], True),
        ([[0, 3], [4, -1]], [2, 1], False),  # rated
        ([[0], [2]], [1, 1], False),
        ([[-1, 2], [4, -1]], [2, 1], False),
        ([[0, 6], [4, -1]], [2, 1], False),
        ([[0, 2], [4, 5]], [2, 1], False),
        ([[2, 0], [4, -1]], [2, 1], False),
        ([[2, 2], [4, -1]], [2, 1], False),
        ([[0.0, 2.0], [4.0, -1.0]], [2, 1], False),
        ([[0], [4]], [2, 1], False),
        ([[0, 2, 4], [4, -1, -1]], [2, 1], False),
    ],
)
def test_what_a_rule_has_chosen_is_unrated_ascending_and_padded_or_refused(chosen, count, right: bool) -> None:
    """Of two clients among six items: the first has rated items 1 and 3, the second item 2."""
    device = replace(example_round()[2][0], items=np.array([[1, 3], [2, -1]]))
    assert _are_unrated(np.array(chosen), np.array(count), device, 6) is right
