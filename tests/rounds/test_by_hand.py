"""A round that was computed by hand: two clients, two items, one factor.

U and V start at 2 everywhere (2 · 2 predicts 4), λ = 0.1, η_L = 0.1, K = 1, η = 1.
Client a rated item 0 with 5; item 1 is its pseudo item, with its average, 5. Client b rated both: 3 and 2.
"""

from __future__ import annotations

import numpy as np
import pytest

from fedrecplus.config import Config, assign
from fedrecplus.data.ratings import Ratings
from fedrecplus.data.scale import Scale
from fedrecplus.engines import device_of, engine_of, message_of, prepare
from fedrecplus.parts.model.mf import Settings
from fedrecplus.rounds import client_round
from tests.rounds.engines import ENGINES, run_rounds

RATINGS = Ratings(
    "by hand", Scale(1.0, 5.0, 1.0), np.array([0, 1, 3]), np.array([0, 0, 1], np.uint16), np.array([4, 2, 1], np.uint8),
    np.array(["a", "b"]), np.array(["first", "second"]),
)  # fmt: skip
CONFIG = assign(
    Config(),
    ["precision=float64", "model.factors=1", "model.init=constant", "model.init_scale=0",
     "model.regularisation=0.1", "model.learning_rate=0.1", "model.local_epochs=1", "model.user_step=all",
     "pseudo_items.rule=random", "pseudo_items.ratio=1", "virtual_ratings.rule=user-average"],
)  # fmt: skip

# a: e = (1, 1), mean of e·V = 2, U = 2 − 0.1 (0.1·2 − 2) = 2.18; then e = 5 − 2.18·2 = 0.64 for both items,
#    g = 0.1·2 − 0.64·2.18 = −1.1952, Δ = 0.11952
# b: e = (−1, −2), mean of e·V = −3, U = 2 − 0.1 (0.1·2 + 3) = 1.68; then e = (−0.36, −1.36),
#    g = (0.2 + 0.36·1.68, 0.2 + 1.36·1.68) = (0.8048, 2.4848), Δ = (−0.08048, −0.24848)
U_AFTER = [2.18, 1.68]
DELTA = [[0.11952, 0.11952], [-0.08048, -0.24848]]

# uniform: V = 2 + ((0.11952 − 0.08048)/2, (0.11952 − 0.24848)/2)
V_UNIFORM = [2.01952, 1.93552]

# Wasserstein, mean per own row, no step before the first round: D_a = 0.11952² = 0.0142850304 and
# D_b = (0.08048² + 0.24848²)/2 = 0.0341096704; p_a = D_b/(D_a + D_b) = 0.7048224…, p_b = 0.2951775…
P = [0.0341096704 / 0.0483947008, 0.0142850304 / 0.0483947008]
V_WASSERSTEIN = [2 + P[0] * 0.11952 - P[1] * 0.08048, 2 + P[0] * 0.11952 - P[1] * 0.24848]


@pytest.fixture(autouse=True)
def round_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """First predictions of 4, U = V = 2: figures that a hand can compute."""
    monkeypatch.setattr(Settings, "init_rating", 4.0)


def test_each_client_uploads_what_the_hand_says() -> None:
    problem = prepare(RATINGS, CONFIG)
    state = engine_of(CONFIG).start(problem)
    message = message_of(problem, state)
    assert message.V.tolist() == [[2.0], [2.0]]
    for client in (0, 1):
        upload, device = client_round(message, device_of(problem, state.private, client), CONFIG)
        assert upload.items.tolist() == [0, 1]
        assert upload.delta[:, 0].tolist() == pytest.approx(DELTA[client], abs=1e-12)
        assert device.U[0] == pytest.approx(U_AFTER[client], abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("rule", "expected"), [("uniform", V_UNIFORM), ("wasserstein", V_WASSERSTEIN)])
@pytest.mark.parametrize("normalise", ["item", "cohort"])
def test_the_server_moves_where_the_hand_says(engine: str, rule: str, expected: list[float], normalise: str) -> None:
    config = assign(CONFIG, [f"aggregation.rule={rule}", f"aggregation.normalise={normalise}"])
    (state,) = run_rounds(RATINGS, config, engine, rounds=1)
    assert state.server.V[:, 0].tolist() == pytest.approx(expected, abs=1e-12)
    assert state.server.last_step[:, 0].tolist() == pytest.approx([v - 2.0 for v in expected], abs=1e-12)
    assert state.private.U[:, 0].tolist() == pytest.approx(U_AFTER, abs=1e-12)
    assert state.server.round == 1


@pytest.mark.parametrize("engine", ENGINES)
def test_without_pseudo_items_only_the_rater_moves_an_item(engine: str) -> None:
    (state,) = run_rounds(RATINGS, assign(CONFIG, ["pseudo_items.rule=none"]), engine, rounds=1)
    # a steps over item 0 alone: the same e, so the same U and the same Δ for item 0, and none for item 1
    assert state.server.V[:, 0].tolist() == pytest.approx([2.01952, 2 - 0.24848], abs=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_the_global_rate_scales_the_step(engine: str) -> None:
    (state,) = run_rounds(RATINGS, assign(CONFIG, ["server_optimizer.learning_rate=10"]), engine, rounds=1)
    assert state.server.V[:, 0].tolist() == pytest.approx([2.1952, 2 - 0.6448], abs=1e-12)
