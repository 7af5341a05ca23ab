"""Secure sums in a deployment: equal to simulated ones, whoever drops out at whatever stage; nothing of one upload."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import change, dumps
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.server import journal_of
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import check_deployable
from fedrecplus.deploy.wire.stages import Stage, encode_stage
from fedrecplus.deploy.wire.task import Task
from fedrecplus.errors import UserError
from fedrecplus.parts.channel.secure.messages import Advertisement
from tests.deploy.in_process import MODEL, InProcessLink, prepared, serve, small_config, stored
from tests.deploy.replay import simulated
from tests.deploy.summing import NODES, Killed, advert_request, dying, expected, losing, message, model, secure_config
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=16, items=30)
ALL = range(1, NODES + 1)
STAGES = ("advertise", "share", "mask", "reveal")
WEIGHED = {"aggregation__rule": "wasserstein", "aggregation__weigh_on": "client", "aggregation__global_step": "last"}


@pytest.mark.parametrize("masks", ["skipped", "computed"])
@pytest.mark.parametrize(("name", "settings"), [("fedmf", {}), ("fedmf-vanilla", {}), ("fedrec+", WEIGHED)])
def test_rounds_equal_simulated_rounds_bit_for_bit(
    name: str, settings: dict[str, str], masks: str, tmp_path: Path
) -> None:
    config = secure_config(name, **settings)
    serve(InProcessLink(prepared(tmp_path, RATINGS, config, nodes=NODES)), tmp_path / "run")
    in_simulation = change(config, "channel.cryptography", masks)
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, in_simulation))


def test_a_model_with_a_statistic_passes_the_wire_in_secure_sums_alone(tmp_path: Path) -> None:
    settings = {"model__factors": 4, "model__interaction_factors": 3, "channel__statistic_bound": 1e4}
    config = secure_config("fedrec+secure", rounds=2, **settings)
    homes = prepared(tmp_path, RATINGS, config, nodes=NODES)
    serve(InProcessLink(homes), tmp_path / "run")
    with Store.open(homes[0].store) as store:
        kept = Packet.of_bytes(store.value("SELECT content FROM answers"))
    assert np.abs(kept.arrays["statistic"]).max() > 0
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, config))
    in_the_clear = change(change(config, "channel.rule", "clear"), "simulation_only", True)
    with pytest.raises(UserError, match="simulation"):
        prepared(tmp_path / "clear", RATINGS, in_the_clear, nodes=NODES)
    with pytest.raises(UserError, match="statistic"):
        check_deployable(change(config, "channel.rule", "clear"))


@pytest.mark.parametrize("stage", STAGES)
def test_a_node_may_drop_out_at_any_stage(stage: str, tmp_path: Path) -> None:
    config = secure_config()
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=NODES))
    link.tamper = losing(stage, 2)
    serve(link, tmp_path / "run")
    advertised = [ALL if stage != "advertise" else (1, 3, 4), ALL]
    summed = [ALL if stage == "reveal" else (1, 3, 4), ALL]
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, advertised, summed))
    lines = journal_of(tmp_path / "run")
    assert [line["lost"] for line in lines] == [{"2": f"{stage} lost"}, {}]
    assert [line["uploads"] for line in lines] == [4 * len(nodes) for nodes in summed]
    assert all(line["clients"] == [] and line["rmse"] is None for line in lines), "nothing of one person"


@pytest.mark.parametrize("stage", STAGES)
def test_below_the_threshold_the_round_fails_closed_and_begins_anew_with_fresh_keys(stage: str, tmp_path: Path) -> None:
    config = secure_config(rounds=1)
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=NODES))
    lost, keys = list[str](), list[bytes]()

    def tamper(node: int, packet: Packet) -> Packet | Refusal:
        if packet.facts.get("stage") == "advertise":
            advert = msgspec.msgpack.decode(message(packet), type=Advertisement)
            keys.extend((advert.cipher_key, advert.mask_key))
        if packet.facts.get("stage") == stage and node > 2 and len(lost) < 2:
            lost.append(str(packet.facts["session"]))
            return Refusal("lost", blame=False)
        return packet

    link.tamper = tamper
    serve(link, tmp_path / "run")
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, config))
    sessions = list(dict.fromkeys(packet.facts["session"] for _, packet in link.asked))
    if stage == "reveal":
        # some shares are out: another sum over this V could be compared with this one, so it is finished
        assert len(sessions) == 1
        assert sum(packet.facts["stage"] == "reveal" for _, packet in link.asked) == 2 * NODES
    else:
        assert len(sessions) == 2
        assert set(lost) == {sessions[0]}
        assert len(keys) == 2 * 2 * NODES
        assert len(set(keys)) == len(keys), "no key is in two sums"


def test_patience_ends_with_the_reason_and_the_sum_can_be_finished_later(tmp_path: Path) -> None:
    config = secure_config(rounds=1)
    homes = prepared(tmp_path, RATINGS, config, nodes=NODES, patience=0.3)
    with pytest.raises(UserError, match=r"(?s)no upload came.*gave a share.*resume=True"):
        serve(InProcessLink(homes, losing("reveal", *ALL)), tmp_path / "run")
    assert stored(tmp_path / "run").pending() is not None
    link = InProcessLink(homes)
    serve(link, tmp_path / "run")
    assert {packet.facts["stage"] for _, packet in link.asked} == {"reveal"}, "the same sum, and no new one"
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, config))
    assert stored(tmp_path / "run").pending() is None


@pytest.mark.parametrize("stage", STAGES)
def test_a_server_that_died_goes_on_to_the_same_model(stage: str, tmp_path: Path) -> None:
    config = secure_config()
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=NODES), dying(stage, 3, 1))
    with pytest.raises(Killed):
        serve(link, tmp_path / "run")
    again = InProcessLink(link.homes)
    serve(again, tmp_path / "run")
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, config))
    first = {packet.facts["session"] for _, packet in link.asked if packet.facts["round"] == 1}
    second = {packet.facts["session"] for _, packet in again.asked}
    assert (first == second) == (stage == "reveal"), "a round begins anew, unless its sum was being unmasked"


def test_replayed_misplaced_and_forged_messages_are_refused(tmp_path: Path) -> None:
    config = secure_config()
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=NODES))
    first: dict[str, Packet] = {}

    def tamper(node: int, packet: Packet) -> Packet:
        stage, number = str(packet.facts.get("stage")), packet.facts["round"]
        if node != 2:
            return packet
        if number == 0:
            first[stage] = packet
            return packet
        return first[stage]  # a replay of the round before

    link.tamper = tamper
    serve(link, tmp_path / "run")
    last = journal_of(tmp_path / "run")[-1]
    assert last["lost"] == {"2": "advertise late"}
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, [ALL, (1, 3, 4)], [ALL, (1, 3, 4)]))


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (lambda packet: Packet({**packet.facts, "stage": "reveal"}, packet.arrays), "malformed"),
        (lambda packet: Packet({**packet.facts, "session": "00" * 16}, packet.arrays), "late"),
        (lambda packet: Packet(packet.facts, {"message": packet.arrays["message"][:-1]}), "malformed"),
        (lambda packet: Packet(packet.facts, {**packet.arrays, "delta": np.zeros(2)}), "malformed"),
        (lambda packet: Packet(packet.facts, {"message": np.zeros(10**6, np.uint8)}), "oversized"),
        (lambda packet: Packet(packet.facts, {}), "malformed"),
    ],
)
def test_unsound_stages_are_refused_by_name(spoil: object, kind: str, tmp_path: Path) -> None:
    link = InProcessLink(prepared(tmp_path, RATINGS, secure_config(rounds=1), nodes=NODES))
    link.tamper = lambda node, packet: (
        spoil(packet) if node == 4 and packet.facts.get("stage") == "share" else packet  # type: ignore[operator]
    )
    serve(link, tmp_path / "run")
    assert journal_of(tmp_path / "run")[0]["lost"] == {"4": f"share {kind}"}


def test_a_node_that_deals_garbage_is_blamed_by_the_others_and_set_aside(tmp_path: Path) -> None:
    link = InProcessLink(prepared(tmp_path, RATINGS, secure_config(rounds=1), nodes=NODES))

    def garble(node: int, packet: Packet) -> Packet:
        if node != 4 or packet.facts.get("stage") != "share":
            return packet
        changed = packet.arrays["message"].copy()
        changed[-NODES * 40 :] ^= 1
        return Packet(packet.facts, {"message": changed})

    link.tamper = garble
    serve(link, tmp_path / "run")
    line = journal_of(tmp_path / "run")[0]
    assert sorted(line["nodes"]) == ["1", "2", "3"], "the others have their sum"
    assert line["refusals"]["strikes"] == {"4": 3}, "and nobody else is blamed"


def replace_task(packet: Packet, **fields: str) -> str:
    """The text of a request's task with other fields."""
    return msgspec.structs.replace(Task.parse(str(packet.facts["task"])), **fields).text


def test_a_node_answers_no_stage_out_of_turn_and_unmasks_a_table_once(tmp_path: Path) -> None:
    config = secure_config(rounds=1)
    homes = prepared(tmp_path, RATINGS, config, nodes=NODES)
    link = InProcessLink(homes)
    serve(link, tmp_path / "run")
    store = homes[0].store
    asked = {str(packet.facts["stage"]): packet for node, packet in link.asked if node == 1}
    session = bytes.fromhex(str(asked["reveal"].facts["session"]))
    again = answer(asked["reveal"], store)
    assert "refusal" not in again.facts, "the last answer once more"
    stage = Stage(MODEL, 0, session, "reveal")
    others = encode_stage(stage, message(asked["reveal"])[:-1] + b"\x00")
    assert answer(others, store).facts["refusal"] == "sum", "other survivors"
    assert answer(asked["mask"], store).facts["refusal"] == "sum", "its secrets are gone"
    assert answer(encode_stage(replace(stage, session=b"x" * 16), b""), store).facts["refusal"] == "sum"
    assert answer(encode_stage(replace(stage, name="unmask"), b""), store).facts["refusal"] == "request"
    assert answer(advert_request(tmp_path), store).facts["refusal"] == "sum", "a second sum over the same table"
    assert answer(asked["advertise"], store).facts["refusal"] == "sum", "nor under the first one's session"
    same_session = advert_request(tmp_path, session=session)
    assert answer(same_session, store).facts["refusal"] == "sum"
    assert answer(asked["reveal"], store).facts == again.facts, "the last answer is still there"
    other_model = advert_request(tmp_path)
    other_model.facts["task"] = replace_task(other_model, model="beef")
    other_model.facts["model"] = "beef"
    assert answer(other_model, store).facts["refusal"] == "sum", "nor under another name"
    late = Packet({**asked["share"].facts, "round": 5}, asked["share"].arrays)
    assert answer(late, store).facts["refusal"] == "sum"


def test_secrets_are_gone_when_the_sum_is_over(tmp_path: Path) -> None:
    homes = prepared(tmp_path, RATINGS, secure_config(rounds=1), nodes=NODES)
    roots: list[bytes] = []

    def look(node: int, packet: Packet) -> Packet:
        if packet.facts.get("stage") == "mask":
            with Store.open(homes[node - 1].store) as store:
                roots.append(store.value("SELECT state FROM sums"))
        return packet

    serve(InProcessLink(homes, look), tmp_path / "run")
    assert len(roots) == NODES
    assert all(roots)
    for home, root in zip(homes, roots, strict=True):
        with Store.open(home.store) as store:
            assert store.connection.execute("SELECT state FROM sums").fetchall() == [(None,)]
        with sqlite3.connect(home.store) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert root[40:72] not in home.store.read_bytes()


def test_nothing_that_leaves_a_node_is_its_vector_and_every_byte_is_in_its_log(tmp_path: Path) -> None:
    config = secure_config(rounds=1)
    homes, sent = prepared(tmp_path, RATINGS, config, nodes=NODES), dict[int, list[Packet]]()

    def note(node: int, packet: Packet) -> Packet:
        sent.setdefault(node, []).append(packet)
        return packet

    serve(InProcessLink(homes, note), tmp_path / "run")
    masked, plain = {}, {}
    for node, packets in sent.items():
        allowed = {"version", "model", "round", "session", "stage", "persons"}
        assert all(packet.facts.keys() <= allowed and packet.arrays.keys() == {"message"} for packet in packets)
        with Store.open(homes[node - 1].store) as store:
            lines = store.sent()
            kept = Packet.of_bytes(store.value("SELECT content FROM answers"))
        assert [line["stage"] for line in lines] == list(STAGES)
        assert [line["digest"] for line in lines] == [packet.digest for packet in packets]
        delta = kept.arrays["delta"]
        assert np.abs(delta).max() > 0
        everything = b"".join(message(packet) for packet in packets)
        assert not any(row.tobytes() in everything or row.astype(np.float32).tobytes() in everything for row in delta)
        masked[node] = np.frombuffer(message(packets[2])[-4 * 30 * 4 :], np.uint8)
        plain[node] = len(set(masked[node].tolist()))
    assert all(count > 150 for count in plain.values()), "it looks like noise, rows of zeros too"
    total = sum(masked.values())
    assert len(set(np.asarray(total).tolist())) > 150, "self masks hide the sum of what was sent"
    on_disk = b"".join(file.read_bytes() for file in (tmp_path / "run").iterdir() if file.is_file())
    assert not any(masked[node].tobytes()[:64] in on_disk for node in masked)


def test_the_error_on_ratings_is_not_shared(tmp_path: Path) -> None:
    homes = prepared(tmp_path, RATINGS, secure_config(), nodes=NODES)
    reply = answer(advert_request(tmp_path), homes[0].store, share_error=True)
    assert "refusal" not in reply.facts
    assert "squared_error" not in reply.facts


def test_a_cohort_below_the_minimum_is_refused_by_server_and_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(UserError, match=r"2 nodes are no cohort(.|\n)*--nodes"):
        prepared(tmp_path / "few", RATINGS, secure_config(), nodes=2)
    homes = prepared(tmp_path, RATINGS, secure_config(rounds=1), nodes=NODES)
    assert exit_code_of(["device", "policy", "--least-cohort", "20", "--home", str(homes[0].path)]) == 0
    serve(InProcessLink(homes), tmp_path / "run")
    assert journal_of(tmp_path / "run")[0]["lost"] == {"1": "share node-sum"}
    assert "a cohort of 4, and at least 20 are asked for" in caplog.text, "in the node's own log"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"channel__cryptography": "skipped"}, "channel.cryptography=computed"),
        ({"channel__dropout": 0.1}, "channel.dropout=0"),
    ],
)
def test_what_hides_nothing_is_refused_by_server_and_node(
    changes: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=said):
        prepared(tmp_path / "weak", RATINGS, secure_config(**changes), nodes=NODES)
    homes = prepared(tmp_path, RATINGS, secure_config(), nodes=NODES)
    assert answer(advert_request(tmp_path, **changes), homes[0].store).facts["refusal"] == "request"


def test_a_secure_config_without_a_sum_and_a_sum_without_one_are_refused(tmp_path: Path) -> None:
    homes = prepared(tmp_path, RATINGS, secure_config(), nodes=NODES)
    assert answer(advert_request(tmp_path, session=b""), homes[0].store).facts["refusal"] == "request"
    honest = advert_request(tmp_path)
    clear = Packet({**honest.facts, "config": dumps(small_config("fedmf"))}, honest.arrays)
    assert answer(clear, homes[0].store).facts["refusal"] == "request"


def test_a_vector_beyond_a_message_is_refused_before_the_first_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedrecplus.deploy.wire.ring.LARGEST_MESSAGE", 100)
    with pytest.raises(UserError, match="a masked vector would have"):
        prepared(tmp_path, RATINGS, secure_config(), nodes=NODES)


def test_a_person_beyond_the_bound_is_clipped_and_the_sum_is_that_of_a_simulation(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = secure_config(rounds=2, channel__bound=1e-3)
    link = InProcessLink(prepared(tmp_path, RATINGS, config, nodes=NODES))
    serve(link, tmp_path / "run")
    assert [line["lost"] for line in journal_of(tmp_path / "run")] == [{}, {}]
    assert "are clipped" in caplog.text, "in the node's own log"
    assert [line["clipped"] for line in stored(tmp_path / "run").lines()] == [RATINGS.clients] * 2
    assert "100 % of 16 persons were clipped in a round: raise channel.bound" in caplog.text
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, config))
