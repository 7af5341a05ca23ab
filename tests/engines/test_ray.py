"""A cluster gives what the fast engine gives, to the same bits with any number of workers and after deaths."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedrecplus as fr
from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import Config, assign, preset
from fedrecplus.data import Ratings
from fedrecplus.data.shards.write import shard_ratings, shard_synthetic
from fedrecplus.data.synthetic.truth import SyntheticOptions
from fedrecplus.engines import SimulationState, engine_of, prepare
from fedrecplus.engines.ray import RayEngine, connection as ray_connection
from fedrecplus.engines.ray.cluster import cluster_overview, slow_workers
from fedrecplus.engines.ray.engine import added
from fedrecplus.engines.ray.worker import ShardView
from fedrecplus.errors import UserError
from fedrecplus.protocol import Sums
from fedrecplus.testing.example import state_after
from tests.small_data import small_ratings
from tests.waiting import GIVE_UP

MF = ["model.rule=mf", "model.factors=4", "model.local_epochs=2", "model.learning_rate=0.05"]
KEPT = [*MF, "pseudo_items.rule=random", "virtual_ratings.rule=drawn", "virtual_ratings.refresh=false"]
CLUSTER = ["engine=ray", "cluster.shards=5", "precision=float64"]


@pytest.fixture(scope="module", autouse=True)
def ray() -> Iterator[Any]:
    """One cluster for all tests. Ray leaves files and processes to the garbage collector, which is no error of ours."""
    place = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # its sockets need short paths, and its logs stay
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_TMPDIR", place)
        module = ray_connection.connect()
        patch.setenv(ray_connection.WORKERS, "2")  # what tests set beside it is put back with it
        yield module
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module.shutdown()
        gc.collect()
    shutil.rmtree(place, ignore_errors=True)


def after(config: Config, ratings: Ratings, rounds: int, workers: int = 2) -> tuple[RayEngine, Any, SimulationState]:
    os.environ[ray_connection.WORKERS] = str(workers)
    problem, engine = prepare(ratings, config), engine_of(config)
    state = engine.start(problem)
    for _ in range(rounds):
        state, _ = engine.round(problem, state)
    assert isinstance(engine, RayEngine)
    return engine, problem, state


def of_fast(config: Config, ratings: Ratings, rounds: int) -> SimulationState:
    return state_after(prepare(ratings, assign(config, ["engine=fast"])), rounds, "fast")


@pytest.mark.parametrize(("inside", "bits"), [("fast", 32), ("cuda", 64), ("reference", 64)])
def test_tables_have_the_precision_of_the_engine_inside(inside: str, bits: int) -> None:
    config = assign(preset("fedrec+paper"), ["engine=ray", f"cluster.engine={inside}"])  # chooses items by V
    assert np.dtype(engine_of(config).dtype) == f"float{bits}"
    others = assign(preset("fedrec"), ["engine=ray", "cluster.engine=cuda"])
    assert np.dtype(engine_of(others).dtype) == "float32"


def assert_near(state: SimulationState, expected: SimulationState, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(state.server.V, expected.server.V, atol=tolerance)
    np.testing.assert_allclose(state.private.U, expected.private.U, atol=tolerance)
    np.testing.assert_array_equal(state.private.drawn, expected.private.drawn)
    np.testing.assert_array_equal(state.private.pseudo_items, expected.private.pseudo_items)


def _refuse(view: ShardView, shared: Any, own: Any) -> None:
    raise UserError("the shard is no good", "write it again")


def test_it_gives_what_the_fast_engine_gives_with_cohorts_and_kept_pseudo_items() -> None:
    config = assign(Config(), [*KEPT, "cohort.fraction=0.6", "cohort.dropout=0.2", *CLUSTER])
    engine, problem, state = after(config, small_ratings(), 3)
    assert_near(state, of_fast(config, small_ratings(), 3))
    again = SimulationState.of_arrays(state.arrays())  # as a checkpoint would have it
    assert_near(engine.round(problem, again)[0], of_fast(config, small_ratings(), 4))
    found = cluster_overview("auto")
    assert len(found["machines"]) == 1
    own = [
        one for one in found["workers"] if one["pid"] in {each["pid"] for each in engine.cluster_of(problem).statuses()}
    ]
    assert [one["worker"] for one in own] == ["worker 0", "worker 1"]
    assert [one["shards"] for one in own] == [3, 2]
    assert all(one["at"] == "waiting" and one["calls"] > 0 for one in own)
    with pytest.raises(UserError, match="the shard is no good"):  # an error that a user can put right comes as it is
        engine.look(problem, state.private, _refuse)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fedrec+private", "fedrec-hf", "fedrec+paper"])
def test_presets_give_what_the_fast_engine_gives(name: str) -> None:
    config = assign(preset(name), CLUSTER)
    engine, problem, state = after(config, small_ratings(), 3)
    assert_near(state, of_fast(config, small_ratings(), 3))
    fast = engine_of(assign(config, ["engine=fast"]))
    message = fr.engines.message_of(problem, state)
    some = np.array([0, 7, 11])
    plain = state.private.copy()
    sets, expected = (each.item_sets(problem, plain, message, some) for each in (engine, fast))
    assert {client: items.tolist() for client, items in sets.items()} == {
        client: items.tolist() for client, items in expected.items()
    }
    uploads, _ = engine.uploads(problem, state.private, message, some)
    of_others, _ = fast.uploads(problem, plain, message, some)
    for one, other in zip(uploads, of_others, strict=True):
        assert one.client == other.client
        np.testing.assert_allclose(one.delta, other.delta, atol=1e-9)


@pytest.mark.slow
def test_the_number_of_workers_changes_no_bit() -> None:
    config = assign(Config(), [*KEPT, *CLUSTER, "precision=float32"])
    tables = [after(config, small_ratings(), 2, workers)[2].server.V for workers in (1, 2, 3, 4)]
    for table in tables[1:]:
        np.testing.assert_array_equal(table, tables[0])


def test_tables_take_turns_in_a_cluster_and_its_devices_know_the_order(tmp_path: Path) -> None:
    ratings = small_ratings()
    ratings = replace(ratings, timestamps=np.random.default_rng(4).integers(0, 60, len(ratings)))
    columns = [f"model.{name}=3" for name in ("factors", "interaction_factors")]
    sums = ["model.rule=sequence", "channel.rule=sums", "server.held_back=0", "server.rounds=5"]
    config = assign(preset("fedrec+secure"), [*sums, *columns, *CLUSTER])
    engine, problem, state = after(config, ratings, 5)
    workers = engine.cluster_of(problem).statuses()
    assert sum(each["calls"] for each in workers) == 5 * 5, "one cluster for all turns"
    assert_near(state, of_fast(config, ratings, 5))
    untold = of_fast(config, small_ratings(), 5)
    assert not np.allclose(state.server.V, untold.server.V)


def test_a_worker_killed_in_a_round_changes_no_bit(tmp_path: Path) -> None:
    """Its shards are read again from their files, U comes from the snapshot, and the others' work is kept."""
    folder = shard_synthetic(SyntheticOptions.parse("clients=300,items=60,ratings_per_client=20"), tmp_path, 5)
    config = assign(Config(), [*KEPT, *CLUSTER, "cluster.engine=reference"])
    ratings = fr.open_shards(folder.path, fold=0)
    _, _, undisturbed = after(config, ratings, 3)
    engine, problem, state = after(config, ratings, 2)
    cluster, killed = engine.cluster_of(problem), []

    def kill_one_at_work() -> None:
        end = time.monotonic() + GIVE_UP
        while not killed and time.monotonic() < end:
            for status in cluster.statuses():
                if status["at"].startswith("round") and not killed:
                    os.kill(status["pid"], signal.SIGKILL)
                    killed.append(status["pid"])

    killer = threading.Thread(target=kill_one_at_work)
    killer.start()
    while not cluster.deaths.workers:  # a round may be over before anybody was seen at work
        assert killed or killer.is_alive()
        disturbed, _ = engine.round(problem, state)
    killer.join()
    assert len(cluster.deaths.workers) == 1
    assert 1 <= len(cluster.deaths.repeated) <= 3
    np.testing.assert_array_equal(disturbed.server.V, undisturbed.server.V)
    np.testing.assert_array_equal(disturbed.private.U, undisturbed.private.U)
    np.testing.assert_array_equal(disturbed.private.virtual_ratings, undisturbed.private.virtual_ratings)


class Owner:
    def __init__(self, ray: Any) -> None:
        self.ray = ray

    def own(self, array: Any) -> list[Any]:
        return [self.ray.put(array)]


@pytest.mark.slow
def test_a_state_lost_with_its_machine_is_solved_for_again(ray: Any) -> None:
    config = assign(Config(), [*KEPT, *CLUSTER])
    engine, problem, state = after(config, small_ratings(), 2)
    cluster, place = engine.cluster_of(problem), state.private.places[1]  # type: ignore[attr-defined]
    os.kill(next(one["pid"] for one in cluster.statuses() if one["worker"] == "worker 1"), signal.SIGKILL)
    owner = ray.remote(Owner).remote(ray)
    lost = ray.get(owner.own.remote(ray.get(place.U[0])))[0]
    ray.kill(owner)  # what it owned goes with it, in a while
    give_up = time.monotonic() + GIVE_UP
    with contextlib.suppress(ray.exceptions.ObjectLostError):
        while time.monotonic() < give_up:
            ray.get(lost)
            time.sleep(0.05)
    places = [replace(one, U=(lost,)) if one is place else one for one in state.private.places]  # type: ignore[attr-defined]
    state, _ = engine.round(problem, replace(state, private=engine._sharded(problem, places, state.private.drawn)))
    assert cluster.deaths.solved == [1]
    expected = of_fast(config, small_ratings(), 3)
    first, end = engine._firsts[1:3]
    others = np.ones(len(state.private.U), bool)
    others[first:end] = False
    np.testing.assert_allclose(state.private.U[others], expected.private.U[others], atol=1e-9)
    assert np.isfinite(state.server.V).all()
    assert np.abs(state.server.V - expected.server.V).max() < 0.5


def test_training_on_shards_gives_what_training_in_memory_gives(tmp_path: Path) -> None:
    ratings = small_ratings()
    folder = shard_ratings(ratings, tmp_path / "shards", 5)
    changes = [*MF, "precision=float64", "server.rounds=4", "evaluation.every=2"]
    in_memory = fr.train(*fr.split(ratings, 1), assign(Config(), changes))
    config = assign(Config(), [*changes, "engine=ray"])
    seen: list[int] = []
    run = fr.train(
        fr.open_shards(folder.path, fold=1),
        None,
        config,
        out=tmp_path / "run",
        progress=lambda step: seen.append(len(step.seconds)),
    )
    assert seen == [2, 2, 2, 2]
    np.testing.assert_allclose(run.recommender.model.V, in_memory.recommender.model.V, atol=1e-9)
    for name in ("mae", "rmse", "nmse", "cold_test_ratings", "test_ratings", "train_ratings"):
        assert run.result[name] == pytest.approx(in_memory.result[name], abs=1e-9)
    assert run.result["bytes_up_per_client_round"] == in_memory.result["bytes_up_per_client_round"]
    for group, figures in in_memory.result["groups"].items():
        assert run.result["groups"][group] == pytest.approx(figures, abs=1e-9)
    assert_same_lists(run.ranking, in_memory.ranking)
    with pytest.raises(UserError, match="unknown client"):
        run.recommender.recommend(ratings.client_ids[0])
    assert len(run.recommender.fold_in({ratings.item_ids[3]: 5.0}).recommend(3)) == 3
    sample = fr.train(fr.open_shards(folder.path), None, config)
    whole = fr.train(ratings, None, assign(Config(), changes))
    assert sample.result["fit"]["rmse"] == pytest.approx(whole.result["fit"]["rmse"], abs=1e-9)


def assert_same_lists(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if name == "groups":
            assert found[name].keys() == value.keys()
            for group, figures in value.items():
                assert found[name][group] == pytest.approx(figures, abs=1e-9)
        else:
            assert found[name] == pytest.approx(value, abs=1e-9), name
    assert expected["ndcg@10"] > 0


def test_lists_of_a_drawn_few_on_shards_are_those_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a model whose lists have weights of their own; whose lists are judged is drawn over all shards."""
    monkeypatch.setattr("fedrecplus.training.ranking._MOST_CLIENTS", 15)  # in the driver alone: shards offer everybody
    ratings = small_ratings()
    folder = shard_ratings(ratings, tmp_path / "shards", 3)
    changes = ["channel.rule=sums", "precision=float64", "server.rounds=1", "server.held_back=0"]
    config = assign(preset("fedrec+secure"), changes)
    assert config.model.scores_lists
    in_memory = fr.train(*fr.split(ratings, 1), config)
    run = fr.train(fr.open_shards(folder.path, fold=1), None, assign(config, ["engine=ray"]))
    assert in_memory.ranking["clients"] == 15
    assert_same_lists(run.ranking, in_memory.ranking)


@pytest.mark.slow
def test_the_command_trains_on_shards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.environ[ray_connection.WORKERS] = "2"
    folder, out = shard_ratings(small_ratings(), tmp_path / "shards", 4).path, tmp_path / "run"
    chosen = ["--algorithm", "fedrec+private", "--set", "engine=ray", "--set", "server.rounds=2"]
    assert exit_code_of(["train", "--dataset", str(folder), *chosen, "--fold", "1", "--out", str(out)]) == 0
    assert "2 workers" in capsys.readouterr().err
    result = fr.Recommender.load(out)
    assert len(result.clients.client_ids) == 0
    assert exit_code_of(["train", "--resume", "--out", str(out)]) == 0  # finished: by its folder alone


@pytest.mark.slow
def test_ratings_in_memory_train_on_a_cluster_and_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    training, test = fr.split(small_ratings(), 0)
    config = assign(preset("fedrec+"), ["server.rounds=4", "evaluation.every=2", *CLUSTER])
    whole = fr.train(training, test, config)
    fast = fr.train(training, test, assign(config, ["engine=fast"]))
    assert whole.rmse == pytest.approx(fast.rmse, abs=1e-9)
    assert whole.ranking["ndcg@10"] == pytest.approx(fast.ranking["ndcg@10"], abs=1e-9)
    calls = iter([False, True])
    with pytest.raises(KeyboardInterrupt):
        fr.train(training, test, config, out=tmp_path / "run", stop=lambda: next(calls))
    resumed = fr.train(training, test, config, out=tmp_path / "run", resume=True)
    assert resumed.rmse == whole.rmse
    np.testing.assert_array_equal(resumed.recommender.model.V, whole.recommender.model.V)


@pytest.mark.slow
def test_one_shard_in_memory_gives_the_bits_of_three_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = assign(Config(), [*KEPT, *CLUSTER])
    folder = shard_ratings(small_ratings(), tmp_path, 5)
    _, _, expected = after(config, fr.open_shards(folder.path, fold=0), 2, workers=3)
    monkeypatch.setenv(ray_connection.IN_MEMORY, "1")
    engine, problem, state = after(config, fr.open_shards(folder.path, fold=0), 2, workers=1)
    np.testing.assert_array_equal(state.server.V, expected.server.V)
    assert engine.cluster_of(problem).statuses()[0]["shards"] == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (["aggregation.rule=krum"], "single uploads of everybody"),
        (["aggregation.rule=coordinate-median"], "single uploads of everybody"),
        (["aggregation.rule=wasserstein", "aggregation.global_step=mean"], "sees uploads once"),
        (["channel.rule=denoising"], "exchange messages"),
        (["channel.rule=secure"], "protocol of the whole cohort"),
        (["cluster.engine=central"], "unknown cluster.engine"),
    ],
)
def test_what_is_no_sum_over_shards_is_refused_with_the_reason(changes: list[str], why: str) -> None:
    with pytest.raises(UserError, match=why):
        engine_of(assign(Config(), ["engine=ray", *changes]))


def test_shards_are_refused_by_other_engines_and_with_other_test_ratings(tmp_path: Path) -> None:
    sharded = fr.open_shards(shard_ratings(small_ratings(), tmp_path, 2).path, fold=0)
    with pytest.raises(UserError, match="not by engine=fast"):
        fr.train(sharded, None, Config())
    with pytest.raises(UserError, match="their own test ratings"):
        fr.train(sharded, small_ratings(), replace(Config(), engine="ray"))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(UserError, match="needs Ray") as error:
        ray_connection.ray_module()
    assert "fedrecplus[ray]" in error.value.remedy


def test_a_number_of_workers_that_is_none_is_refused(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ray_connection.WORKERS, "many")
    with pytest.raises(UserError, match="FEDRECPLUS_WORKERS='many'"):
        ray_connection.worker_count(ray, 5)


def test_slow_workers_are_those_far_behind_the_middle_one() -> None:
    assert slow_workers({"worker 0": 1.0}) == []
    assert slow_workers({"worker 0": 1.0, "worker 1": 1.2, "worker 2": 9.0}) == ["worker 2"]


def test_sums_of_shards_keep_their_order() -> None:
    sums: Sums | None = None
    for value in (1e16, 1.0, -1e16):
        sums = added(sums, Sums(np.full((2, 1), value, np.float32), np.ones(2), 1.0, 3, clipped=1.0))
    assert sums is not None
    assert (sums.clients, sums.clipped) == (9, 3.0)
    assert sums.weights.tolist() == [3.0, 3.0]
    assert sums.total.dtype == np.float64
