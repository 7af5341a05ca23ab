"""Dense arrays go down, changes and statistics come up beside the rows, and each leaf is shown to whom it says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import Config, assign, check
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import check_deployable, decode_request, encode_request
from fedrecplus.device import Device, Rows
from fedrecplus.engines import SimulationState, device_of, engine_of, message_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts import Model, choices
from fedrecplus.parts.model import Trained
from fedrecplus.parts.model.mf import Mf
from fedrecplus.parts.privacy._budget import CLIPPED_SHARE
from fedrecplus.parts.tree import Leaf, unpack
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import client_round, start_server
from fedrecplus.rounds.server import dense_step
from fedrecplus.training.model_files import MODEL, SharedModel, read_tensors
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=20)
THREATS = Path(__file__).parents[2] / "docs" / "fields.md"


class Counting(Mf):
    """mf that counts its clients' ratings, and learns how many they have on average."""

    def tree(self) -> dict[str, Leaf]:
        return {**super().tree(), "counts": Leaf.statistic(2), "level": Leaf.dense(1, 3)}

    def local_training(self, device: Device, rows: Rows, broadcast: Broadcast) -> Trained:
        rated = (device.items >= 0).sum(-1)
        change = rated[..., None] - broadcast.dense[None if rated.ndim else ...]
        beside = np.concatenate([change, np.stack([rated, np.ones_like(rated)], axis=-1)], axis=-1)
        return super().local_training(device, rows, broadcast)._replace(statistic=beside.astype(float))


def counting(*changes: str, simulation_only: bool = True) -> Config:
    settings = ["model.factors=3", "precision=float64", f"simulation_only={str(simulation_only).lower()}", *changes]
    config = assign(Config(), settings)
    return replace(config, model=Counting(config.model.settings))


@pytest.mark.parametrize("engine", ["fast", "reference"])
@pytest.mark.parametrize("weigh_on", ["server", "client"])
def test_all_is_summed_with_the_weights_and_dense_arrays_move_by_the_mean(engine: str, weigh_on: str) -> None:
    config = counting(f"engine={engine}", f"aggregation.weigh_on={weigh_on}", "server_optimizer.rule=momentum")
    problem, runner = prepare(RATINGS, config), engine_of(config)
    state, clients = runner.start(problem), np.arange(RATINGS.clients)
    sums, _, _ = runner.sums(problem, state.private, message_of(problem, state, clients), clients)
    np.testing.assert_allclose(sums.statistic, [len(RATINGS)] * 4 + [RATINGS.clients])
    after, report = runner.round(problem, state)
    np.testing.assert_allclose(after.server.dense, len(RATINGS) / RATINGS.clients)
    assert report.bytes_down == RATINGS.clients * 4 * (state.server.V.size + 3)
    again, _ = runner.round(problem, after)
    np.testing.assert_allclose(again.server.dense, 1.9 * after.server.dense, err_msg="nothing new, but momentum")


def test_dense_arrays_move_for_a_single_client_too() -> None:
    config = counting("engine=reference")
    problem, runner = prepare(RATINGS, config), engine_of(config)
    state, clients = runner.start(problem), np.array([3])
    message = message_of(problem, state, clients)
    sums, _, _ = runner.sums(problem, state.private, message, clients)
    assert sums.overall == 1.0
    dense, _ = dense_step(state.server, sums, message.public, config)
    np.testing.assert_allclose(dense, np.diff(RATINGS.indptr)[3])


def test_clipping_is_by_the_norm_of_the_whole_tree() -> None:
    pytest.importorskip("dp_accounting")
    budget = ["privacy.rule=central", "privacy.clip=0.5", "statistics.source=secure-sum", "pseudo_items.rule=none"]
    config = counting(*budget, "seeded_noise=true", "channel.rule=sums", "server.rounds=2", "privacy.delta=1e-3")
    problem, runner = prepare(RATINGS, config), engine_of(config)
    state = runner.start(problem)
    upload, _ = client_round(message_of(problem, state), device_of(problem, state.private, 3), config)
    counted = CLIPPED_SHARE * 0.5 * upload.clipped
    whole = np.concatenate([upload.delta.ravel(), upload.statistic, [counted]])
    assert np.linalg.norm(whole) == pytest.approx(0.5)
    assert np.linalg.norm(upload.delta) < 0.4
    noisy, _ = runner.round(problem, state)
    assert (noisy.server.dense != 0).all()


def test_what_nobody_may_see_of_one_person_is_refused_in_the_clear() -> None:
    with pytest.raises(UserError, match="counts and level"):
        check(counting(simulation_only=False))
    check(counting("channel.rule=sums", simulation_only=False))
    with pytest.raises(UserError, match="beside its rows"):
        check_deployable(counting(simulation_only=False))
    with pytest.raises(UserError, match="dense"):
        check(counting("aggregation.rule=coordinate-median"))


def test_every_leaf_of_every_model_is_in_the_threat_model_with_those_who_see_it() -> None:
    lines = re.findall(r"^\| `([\w-]+)` \| `(\w+)` \| (\w+) \| (\w+) \|", THREATS.read_text(encoding="utf-8"), re.M)
    models = {name: Model.choose(name) for name in choices(Model)}
    leaves = {
        (name, leaf, about.role, about.seen) for name, model in models.items() for leaf, about in model.tree().items()
    }
    assert set(lines) == leaves


def test_dense_arrays_pass_checkpoint_file_and_wire_by_name_and_others_have_no_trace_of_them(tmp_path: Path) -> None:
    config = counting("channel.rule=secure", "channel.cryptography=computed", simulation_only=False)
    problem, runner = prepare(RATINGS, assign(config, ["channel.least_cohort=3"])), engine_of(config)
    state, _ = runner.round(problem, runner.start(problem))
    again = SimulationState.of_arrays(state.arrays())
    np.testing.assert_array_equal(again.server.dense, state.server.dense)
    catalogue = ItemCatalogue.of(RATINGS)
    asked = encode_request("00", state.server, config, catalogue, attach=False, session=b"s" * 16)
    assert asked.arrays["dense"].shape == (3,)
    plain = assign(config, ["model.rule=biased-mf"])
    start = start_server(plain, problem.public)
    told = encode_request("00", start, plain, catalogue, attach=False, session=b"s" * 16)
    assert set(told.arrays) == {"V"}
    assert "dense" not in SimulationState(start, state.private).arrays()
    for wrong in (np.zeros(3), np.zeros(2)):  # a model that has none
        with pytest.raises(Refusal, match="other dense arrays"):
            decode_request(Packet(told.facts, {**told.arrays, "dense": wrong}))


def test_a_model_file_has_dense_arrays_by_name(tmp_path: Path) -> None:
    config, dense = counting(), np.arange(3.0)
    assert unpack(config.model.tree(), dense, "dense")["level"].shape == (1, 3)
    problem = prepare(RATINGS, config)
    V = start_server(config, problem.public).V
    SharedModel(config, RATINGS.scale, V, problem.public, RATINGS.item_ids, (), dense=dense).write(tmp_path)
    assert read_tensors(tmp_path / MODEL)[0]["dense.level"].tolist() == [dense.tolist()]
