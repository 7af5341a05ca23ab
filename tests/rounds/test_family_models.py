"""What only FedRAP, FedRecon and FedNCF do, against their formulas."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import check
from fedrecplus.device import Rows, every_item
from fedrecplus.errors import UserError
from fedrecplus.parts import Model
from fedrecplus.parts.model.fedrap import FedRAP
from fedrecplus.parts.model.fedrecon import FedRecon
from fedrecplus.testing import example_config, example_round

DRAWS = np.random.default_rng(3)
PLAIN = ("model.factors=3", "pseudo_items.rule=none")


def with_constants(monkeypatch: pytest.MonkeyPatch, model: Any, **values: float) -> None:
    """Numbers that are the same in every training, as a test can compute with them."""
    for name, value in values.items():
        monkeypatch.setattr(type(model.settings), name, value)


def test_fedrap_steps_along_the_gradient_of_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.choose("fedrap")
    assert isinstance(model, FedRAP)
    with_constants(monkeypatch, model, difference=0.3, sparsity=0.2)
    C, D, score = DRAWS.normal(size=(5, 3)), DRAWS.normal(size=(5, 3)), DRAWS.normal(size=4)
    clicked, share = np.array([1.0, 0, 1, 0, 0]), np.array([0.25, 0.25, 0.25, 0.25, 0.0])
    for place, descent in enumerate(model.descent(C, D, score, clicked, share)):
        for cell in np.ndindex(descent.shape):
            losses = []
            for moved in (1e-6, -1e-6):
                known = [C.copy(), D.copy(), score.copy()]
                known[place][cell] += moved
                losses.append(model.loss(known[0], known[1], known[2], clicked, share))
            assert descent[cell] == pytest.approx((losses[1] - losses[0]) / 2e-6, abs=1e-6)


def test_fedrap_stops_where_the_loss_changes_no_more_and_decays_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, message, devices = example_round(
        "model.rule=fedrap", *PLAIN, "model.learning_rate=0.5", "model.regularisation=0.1", "model.local_epochs=4"
    )
    model, device = problem.config.model, devices[0]
    assert isinstance(model, FedRAP)
    with_constants(monkeypatch, model, tolerance=1.0, round_decay=1.0, step_decay=1.0)
    rows = every_item(device, len(message.V))
    used = model.drawn(device, rows, message).items
    trained = model.local_training(device, rows, message)
    unused = np.setdiff1d(rows.items, used)
    # a tolerance of 1 ends it after the second pass
    np.testing.assert_allclose(trained.delta[unused], (0.95**2 - 1) * message.V[unused])
    D = [model.split_private(U)[1] for U in (device.U, trained.U)]
    np.testing.assert_allclose(D[1][unused], 0.95**2 * D[0][unused])


def test_fedrap_ranks_by_both_tables_together() -> None:
    problem, message, devices = example_round("model.rule=fedrap", *PLAIN)
    model, device = problem.config.model, devices[1]
    assert isinstance(model, FedRAP)
    X = model.item_columns(message.V, problem.public)
    w = model.user_weights(device.U, X, device.items, device.ratings, problem.public)
    z = model.list_weights(w, X, device.items, device.ratings, problem.public)
    (weights, constant), D = np.split(device.U[:4], [3]), device.U[4:].reshape(message.V.shape)
    expected = (message.V + D) @ weights + constant
    some = np.array([7, 2, 7])
    np.testing.assert_allclose(model.scores(X, z, message.dense), expected)
    np.testing.assert_allclose(model.scores(X[some], z, message.dense), expected[some])


def test_fedrecon_makes_factors_of_one_half_and_moves_the_rows_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, message, devices = example_round("model.rule=fedrecon", *PLAIN)
    model, mean = problem.config.model, problem.public.mean
    with_constants(monkeypatch, model, reconstruction_steps=4)
    assert isinstance(model, FedRecon)
    device = max(devices, key=lambda device: len(device.items))
    rows = Rows(device.items, device.ratings, np.ones(len(device.items), np.bool_))
    trained = model.local_training(device, rows, message)
    query = np.flatnonzero(np.abs(trained.delta).sum(axis=1))
    support, V = np.setdiff1d(np.arange(len(rows.items)), query), message.V[rows.items]
    assert len(support) - len(query) in (0, 1)
    assert trained.U.size == 0
    u, settings = np.zeros(3), model.settings
    for _ in range(4):
        e = rows.ratings - mean - V @ u
        pull = np.mean([e[row] * V[row] for row in support], axis=0)
        u = u + settings.reconstruction_rate * (pull - settings.regularisation * u)
    for row in query:
        step = (rows.ratings[row] - mean - V[row] @ u) * u - settings.regularisation * V[row]
        np.testing.assert_allclose(trained.delta[row], settings.learning_rate * step)
    later = model.local_training(device, rows, replace(message, round=message.round + 1))
    assert set(np.flatnonzero(np.abs(later.delta).sum(axis=1))) != set(query), "halves are drawn anew"


def test_fedncf_adds_products_and_layers_up() -> None:
    torch = pytest.importorskip("torch")
    model: Any = example_config("model.rule=fedncf", "model.factors=4", "pseudo_items.rule=none").model
    leaves = {
        name: DRAWS.normal(size=(6, 4) if leaf.role == "table" else leaf.shape) for name, leaf in model.tree().items()
    }
    found = model.score({name: torch.from_numpy(leaf) for name, leaf in leaves.items()})
    for item in range(6):
        hidden = np.concatenate([leaves["inputs"][item], leaves["u_inputs"]])
        for depth in range(2):
            hidden = np.maximum(hidden @ leaves[f"layer_{depth}"] + leaves[f"bias_{depth}"], 0.0)
        both = np.concatenate([leaves["products"][item] * leaves["u_products"], hidden])
        assert float(found[item]) == pytest.approx(float((both @ leaves["last"] + leaves["constant"])[0]))


@pytest.mark.parametrize("rule", ["fedrap", "fedncf"])
def test_a_single_upload_names_the_clicks_and_is_refused(rule: str) -> None:
    with pytest.raises(UserError, match="of which nobody may see one person's"):
        check(example_config(f"model.rule={rule}", *PLAIN, "simulation_only=false", "channel.rule=clear"))
