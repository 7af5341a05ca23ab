"""The server's rounds: quorum, deadline, refusals, and going on from a checkpoint."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.cli.live_view import show_rounds
from fedrecplus.config import change
from fedrecplus.data import Scale
from fedrecplus.deploy.device import Store, pause
from fedrecplus.deploy.server import Deployment, journal_of
from fedrecplus.deploy.server.deployment import DEPLOYMENT, run_of
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.catalogue import ITEMS
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import check_deployable
from fedrecplus.engines import engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.files import write_json
from fedrecplus.training.run_folder import RunFolder
from tests.deploy.in_process import InProcessLink, database_of, go_on, prepared, serve, small_config, stored
from tests.deploy.replay import replayed, simulated
from tests.deploy.summing import Killed, dying, model
from tests.small_data import small_ratings

RATINGS = small_ratings()
CONFIG = small_config(engine="reference", precision="float64")


def spoiled(packet: Packet) -> Packet:
    return Packet(packet.facts, {**packet.arrays, "delta": packet.arrays["delta"] * np.nan})


def test_a_node_that_keeps_sending_nonsense_is_set_aside_and_never_touches_the_model(tmp_path: Path) -> None:
    config = small_config(engine="reference", precision="float64", rounds=5)
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=2))
    link.tamper = lambda node, packet: spoiled(packet) if node == 2 else packet
    serve(link, tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert [len(line["lost"]) for line in lines] == [1, 1, 1, 0, 0], "three strikes, then it isn't asked"
    assert lines[-1]["refusals"] == {"strikes": {"2": 3}, "refused": {"non-finite": 3}, "wrong_version": []}
    assert {client % 2 for line in lines for client in line["clients"]} == {0}
    np.testing.assert_array_equal(model(tmp_path), replayed(RATINGS, config, link.homes, lines))


def test_a_device_that_pauses_is_not_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = InProcessLink(prepared(tmp_path, RATINGS, CONFIG, nodes=2))
    with Store.open(link.homes[1].store) as store:
        pause(store, True)
    serve(link, tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert [line["lost"] for line in lines] == [{"2": "node-paused"}] * 3, "and asked again in each round"
    assert lines[-1]["refusals"] == {"strikes": {}, "refused": {}, "wrong_version": []}
    with show_rounds(3) as show:
        show({"phase": "finished"}, lines)
    assert "nodes 1, paused 1, dropouts 0, refused 0" in capsys.readouterr().err


def test_a_client_stays_with_the_node_that_spoke_for_it_first_also_after_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nodes 1, 2 and 3 have the persons 0, 3, 6, …, 1, 4, 7, … and 2, 5, 8, …; node 2 speaks for those of node 1."""
    link = InProcessLink(prepared(tmp_path, RATINGS, CONFIG, nodes=3))

    def claim(node: int, packet: Packet) -> Packet | Refusal:
        if node == 1:
            return Refusal("lost", blame=False)
        others = {**packet.arrays, "clients": packet.arrays["clients"] - 1}
        return Packet(packet.facts, others) if node == 2 else packet

    link.tamper = lambda node, packet: _die_in_round_1(packet)
    with pytest.raises(Killed):
        serve(link, tmp_path / "run")
    link.tamper = claim
    serve(link, tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert [line["lost"] for line in lines] == [{}, {"1": "lost", "2": "claimed"}, {"1": "lost", "2": "claimed"}]
    assert lines[-1]["refusals"]["strikes"] == {"2": 2}
    assert "refused an answer of node 2: claimed: client 0 spoke through node 1 before" in caplog.text
    assert {client % 3 for line in lines[1:] for client in line["clients"]} == {2}
    np.testing.assert_array_equal(model(tmp_path), replayed(RATINGS, CONFIG, link.homes, lines))


def test_people_may_move_between_nodes_where_they_are_let(tmp_path: Path) -> None:
    homes = prepared(tmp_path, RATINGS, CONFIG, nodes=2)
    link = InProcessLink(homes, lambda node, packet: _die_in_round_1(packet))
    with pytest.raises(Killed):
        serve(link, tmp_path / "run")
    stored(tmp_path / "run").stop()
    with pytest.raises(UserError, match="at work"):
        stored(tmp_path / "run").pardon()
    serve(InProcessLink(homes), tmp_path / "run")  # it finds that somebody wants it to end
    stored(tmp_path / "run").pardon()
    serve(InProcessLink(homes[::-1]), tmp_path / "run")
    assert [line["lost"] for line in journal_of(tmp_path / "run")] == [{}, {}, {}]
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, CONFIG))


def _die_in_round_1(packet: Packet) -> Packet:
    if packet.facts["round"] == 1:
        raise Killed
    return packet


def test_a_round_closes_at_its_quorum(tmp_path: Path) -> None:
    link = InProcessLink(prepared(tmp_path, RATINGS, CONFIG, nodes=3, quorum=0.6, deadline=60.0))
    link.tamper = lambda node, packet: None if node == 3 else packet
    serve(link, tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert [len(line["nodes"]) for line in lines] == [2, 2, 2]
    assert all(line["seconds"] < 60 for line in lines), "or else the deadline closed it"


def test_a_lost_message_is_a_dropout_and_no_offence(tmp_path: Path) -> None:
    link = InProcessLink(prepared(tmp_path, RATINGS, CONFIG, nodes=2))
    link.tamper = lambda node, packet: Refusal("lost", blame=False) if node == 2 else packet
    serve(link, tmp_path / "run")
    last = journal_of(tmp_path / "run")[-1]
    assert last["refusals"]["strikes"] == {}
    assert RunFolder(tmp_path / "run").result()["deployment"]["dropouts"] == 3


def test_a_server_that_died_goes_on_to_the_same_model(tmp_path: Path) -> None:
    link = InProcessLink(prepared(tmp_path, RATINGS, CONFIG), dying(None, 2, 1))
    with pytest.raises(Killed):
        serve(link, tmp_path / "run")
    serve(InProcessLink(link.homes), tmp_path / "run")
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, CONFIG))
    with Store.open(link.homes[0].store) as store:
        assert [line["again"] for line in store.sent()] == [0, 0, 1, 0], "round 1 was sent again, not made again"


@pytest.mark.parametrize("name", ["fedmf", "fedrec+private"])
def test_a_new_run_goes_on_with_a_finished_model_as_if_it_had_not_ended(name: str, tmp_path: Path) -> None:
    config = small_config(name, engine="reference", precision="float64", server__cooldown=0.0)
    homes = prepared(tmp_path, RATINGS, config)
    serve(InProcessLink(homes), tmp_path / "run")
    more, catalogue = change(config, "server.rounds", 2), ItemCatalogue.read(tmp_path / "run" / ITEMS)
    deployment = Deployment(3, model="feed")
    whole = go_on(tmp_path / "run", tmp_path / "more" / "run", more, deployment, catalogue, overwrite=False).config()
    serve(InProcessLink(homes), tmp_path / "more" / "run")
    assert whole.server.rounds == 5
    assert len(journal_of(tmp_path / "more" / "run")) == 2
    np.testing.assert_array_equal(model(tmp_path / "more"), simulated(RATINGS, whole))
    with pytest.raises(UserError, match="other settings"):
        go_on(tmp_path / "run", tmp_path / "x", change(more, "seed", 5), deployment, catalogue, overwrite=False)
    written = json.loads((tmp_path / "run" / DEPLOYMENT).read_text())
    for task in ({}, {"task": '{"of": "another version"}'}):
        write_json(tmp_path / "run" / DEPLOYMENT, {"run": 1, "model": written["model"], **task})
        with pytest.raises(UserError, match="names no task that this version reads"):
            go_on(tmp_path / "run", tmp_path / "x", more, deployment, catalogue, overwrite=False)


def test_who_has_left_is_in_no_round_of_a_run_that_goes_on(tmp_path: Path) -> None:
    config = small_config("fedmf", engine="reference", precision="float64", server__cooldown=0.0)
    homes = prepared(tmp_path, RATINGS, config)
    serve(InProcessLink(homes), tmp_path / "run")
    homes[2].forget()
    more, catalogue = change(config, "server.rounds", 2), ItemCatalogue.read(tmp_path / "run" / ITEMS)
    deployment, without = Deployment(2, model="feed"), tmp_path / "without" / "run"
    whole = go_on(tmp_path / "run", without, more, deployment, catalogue, overwrite=False).config()
    serve(InProcessLink(homes[:2]), without)
    problem, engine = prepare(RATINGS, whole), engine_of(whole)
    stay = RATINGS.where(RATINGS.client_of_rating % 3 != 2)
    state = engine.start(problem)
    for present in (RATINGS, RATINGS, RATINGS, stay, stay):
        state, _ = engine.round(replace(problem, ratings=present), state)
    np.testing.assert_array_equal(model(tmp_path / "without"), state.server.V)


def test_patience_ends_with_a_reason_for_the_follower(tmp_path: Path) -> None:
    link = InProcessLink(prepared(tmp_path, RATINGS, CONFIG, nodes=1, patience=0.3))
    link.tamper = lambda node, packet: Refusal("lost", blame=False)
    with pytest.raises(UserError, match="no upload came"):
        serve(link, tmp_path / "run")
    assert stored(tmp_path / "run").progress()["phase"] == "failed"


def test_when_everybody_is_set_aside_the_run_says_so(tmp_path: Path) -> None:
    link = InProcessLink(prepared(tmp_path, RATINGS, CONFIG, nodes=1))
    link.tamper = lambda node, packet: spoiled(packet)
    with pytest.raises(UserError, match="every node is set aside"):
        serve(link, tmp_path / "run")


def test_nodes_that_were_set_aside_can_be_pardoned(tmp_path: Path) -> None:
    config = small_config(engine="reference", precision="float64", rounds=5)
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=2, strikes=2))
    link.tamper = lambda node, packet: spoiled(packet) if node == 2 or packet.facts["round"] > 2 else packet
    with pytest.raises(UserError, match="every node is set aside"):
        serve(link, tmp_path / "run")
    with pytest.raises(UserError, match="--pardon"):
        serve(link, tmp_path / "run")
    stored(tmp_path / "run").pardon()
    serve(InProcessLink(link.homes), tmp_path / "run")
    assert [len(line["nodes"]) for line in journal_of(tmp_path / "run")] == [1, 1, 1, 2, 2]


def test_a_device_with_another_scale_says_so_and_takes_no_part(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    homes = prepared(tmp_path, RATINGS, CONFIG, nodes=2)
    with Store.open(homes[1].store) as store:
        store.change_scale(Scale(0.0, 10.0, 1.0))
    serve(InProcessLink(homes), tmp_path / "run")
    last = journal_of(tmp_path / "run")[-1]
    assert last["refusals"]["refused"] == {"node-scale": 3}
    assert last["refusals"]["strikes"] == {}
    assert "`fedrecplus device scale 1:5:1` changes it" in caplog.text


@pytest.mark.parametrize(("content", "said"), [(None, "holds no deployment"), ('{"run": 1', "is damaged")])
def test_a_folder_whose_run_is_not_known_says_why(content: str | None, said: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "deployment.json").write_text(content)
    with pytest.raises(UserError, match=said):
        run_of(database_of(tmp_path / "server.db"), tmp_path)


def test_the_run_folder_is_like_any_other(tmp_path: Path) -> None:
    homes = prepared(tmp_path, RATINGS, CONFIG)
    serve(InProcessLink(homes), tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert folder.finished
    assert [line["round"] for line in folder.metrics()] == [1, 2, 3]
    assert {"mae", "rmse", "seconds", "bytes_up_per_client_round", "config", "made"} <= folder.result().keys()
    assert not (folder.path / "checkpoint.safetensors").exists()
    json.dumps(folder.result(), allow_nan=False)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"aggregation__rule": "uniform", "channel__rule": "sums"}, "channel.rule=clear"),
        ({"aggregation__rule": "uniform", "channel__rule": "denoising"}, "channel.rule=clear"),
        ({"cohort__dropout": 0.1}, "cohort.dropout=0"),
        ({"aggregation__covariance": "full"}, "covariance=diagonal"),
        ({"engine": "central"}, "federated preset"),
    ],
)
def test_what_only_a_simulation_can_do_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(UserError, match=said):
        check_deployable(small_config(**changes))
