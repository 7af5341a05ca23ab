"""Identities that are pinned outside the server: signed keys and survivors, and what a lying server gets."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store, answer, own_key, pin_identities
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.server import journal_of
from fedrecplus.deploy.wire.identities import identity_number
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.stages import Stage, encode_stage
from fedrecplus.errors import UserError
from fedrecplus.parts.channel.secure.messages import VERSION, Advertisement, Neighbourhood, pack, to_bytes
from fedrecplus.parts.channel.secure.server import SecureServer
from fedrecplus.parts.channel.secure.stages import reveal
from tests.deploy.in_process import MODEL, InProcessLink, change_terms, prepared, serve
from tests.deploy.replay import simulated
from tests.deploy.summing import NODES, Killed, advert_request, dying, expected, losing, message, model, secure_config
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=16, items=30)


def with_pins(homes: list[NodeHome], those: list[NodeHome]) -> tuple[str, ...]:
    """Everybody's identities in hexadecimal; some nodes pin them."""
    keys = []
    for home in homes:
        with Store.open(home.store) as store:
            keys.append(own_key(store).public_key().public_bytes_raw())
    for home in those:
        with Store.open(home.store) as store:
            pin_identities(store, keys)
    return tuple(key.hex() for key in keys)


def pinned(folder: Path, rounds: int = 1, ratings: Ratings = RATINGS, nodes: int = NODES) -> list[NodeHome]:
    """A run all of whose nodes have pinned each other."""
    homes = prepared(folder, ratings, secure_config(rounds=rounds), nodes=nodes)
    change_terms(folder / "run", identities=with_pins(homes, homes))
    return homes


def test_pinned_identities_sign_keys_and_survivors_and_the_sum_is_the_same(tmp_path: Path) -> None:
    link = InProcessLink(pinned(tmp_path, rounds=2))
    serve(link, tmp_path / "run")
    stages = list(dict.fromkeys(packet.facts["stage"] for _, packet in link.asked))
    assert stages == ["advertise", "share", "mask", "consent", "reveal"]
    np.testing.assert_array_equal(model(tmp_path), simulated(RATINGS, secure_config()))


def test_a_node_that_takes_another_s_number_keeps_nobody_out(tmp_path: Path) -> None:
    """Numbers follow from identities, so everybody knows everybody's: who comes first with one must have signed it."""
    homes = pinned(tmp_path, rounds=2)
    with Store.open(homes[2].store) as store:
        victim = identity_number(own_key(store).public_key().public_bytes_raw())

    def pose(node: int, packet: Packet) -> Packet:
        if node != 1 or packet.facts.get("stage") != "advertise":
            return packet
        own = msgspec.msgpack.decode(packet.arrays["message"].tobytes(), type=Advertisement)
        forged = pack(msgspec.structs.replace(own, sender=to_bytes(victim)))
        return Packet(packet.facts, {"message": np.frombuffer(forged, np.uint8)})

    serve(InProcessLink(homes, pose), tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert [line["lost"] for line in lines] == [{"1": "advertise malformed"}] * 2
    assert lines[-1]["refusals"]["strikes"] == {"1": 2}
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, secure_config(), [(2, 3, 4)] * 2, [(2, 3, 4)] * 2))


@pytest.mark.parametrize("stage", ["advertise", "share", "mask", "consent", "reveal"])
def test_with_pins_a_node_may_drop_out_and_the_server_may_die_at_any_stage(stage: str, tmp_path: Path) -> None:
    """More than two thirds of the neighbours must stay: four of five nodes are enough, three of four are not."""
    ratings = small_ratings(clients=20, items=30)
    homes = pinned(tmp_path, 2, ratings, nodes=5)
    config = secure_config()
    with pytest.raises(Killed):
        serve(InProcessLink(homes, dying(stage, 3, 1, losing(stage, 2))), tmp_path / "run")
    serve(InProcessLink(homes), tmp_path / "run")
    everybody, others = range(1, 6), (1, 3, 4, 5)
    advertised = [everybody if stage != "advertise" else others, everybody]
    summed = [everybody if stage in ("consent", "reveal") else others, everybody]
    np.testing.assert_array_equal(model(tmp_path), expected(ratings, config, advertised, summed, 5))


def test_a_server_that_swaps_a_key_learns_nothing_where_identities_are_pinned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    homes = pinned(tmp_path)
    change_terms(tmp_path / "run", patience=0.3)
    link = InProcessLink(homes)
    ask = link.ask

    def swapping(packets: dict[int, Packet], seconds: float) -> dict[int, int]:
        """In every neighbourhood the server puts a key of its own in the place of a neighbour's."""
        changed = {}
        for node, packet in packets.items():
            raw = bytearray(message(packet)) if "message" in packet.arrays else b""
            if packet.facts["stage"] == "share":
                raw[-100] ^= 1  # within the last neighbour's keys; 64 bytes of signature follow
                packet = Packet(packet.facts, {"message": np.frombuffer(bytes(raw), np.uint8)})
            changed[node] = packet
        return ask(changed, seconds)

    link.ask = swapping  # type: ignore[method-assign]
    with pytest.raises(UserError, match="no upload came"):
        serve(link, tmp_path / "run")
    assert "the signature is not that of its pinned identity" in caplog.text
    assert {packet.facts["stage"] for _, packet in link.asked} == {"advertise", "share"}, "it gets no further"


def test_nodes_that_were_told_of_different_numbers_of_persons_have_no_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for 2³⁰ persons makes everybody's numbers nothing but the victim's: the sum would be the victim's vector."""
    link = InProcessLink(pinned(tmp_path, 1, small_ratings(clients=5, items=30), nodes=5))
    ask, totals, close = link.ask, list[bytes](), reveal.close

    def lying(packets: dict[int, Packet], seconds: float) -> dict[int, int]:
        persons = {node: 5 if node == 1 else 2**30 for node in packets}
        masking = {node for node, packet in packets.items() if packet.facts["stage"] == "mask"}
        changed = {
            node: Packet({**packet.facts, "persons": persons[node]}, packet.arrays) if node in masking else packet
            for node, packet in packets.items()
        }
        return ask(changed, seconds)

    def noting(server: SecureServer) -> dict[int, bytes]:
        done = close(server)
        totals.append(server.total.updates.tobytes())
        return done

    link.ask = lying  # type: ignore[method-assign]
    monkeypatch.setattr(reveal, "close", noting)
    with contextlib.suppress(UserError):  # noise makes the training diverge
        serve(link, tmp_path / "run")
    moves = np.frombuffer(totals[0], np.uint32).reshape(30, -1)
    assert moves.any(axis=1).all(), "rows that the victim has not rated look no different"
    assert len(set(totals[0])) > 150, "masks between those who were told otherwise are still in it"


@pytest.mark.parametrize("of", ["V", "config"])
def test_nodes_that_were_asked_for_different_things_refuse_each_other(
    of: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    homes = pinned(tmp_path)
    honest = advert_request(tmp_path)
    honest.facts["pinned"] = 1
    other = advert_request(tmp_path, **({} if of == "V" else {"channel__bound": 1e3}))
    other.facts["pinned"] = 1
    if of == "V":
        other.arrays["V"] = honest.arrays["V"] + 1e-3
    replies = [answer(other if node == 0 else honest, home.store) for node, home in enumerate(homes)]
    first, *others = (msgspec.msgpack.decode(message(reply), type=Advertisement) for reply in replies)
    assert {advert.session for advert in others} == {others[0].session}
    assert first.session != others[0].session
    for strangers, refused in (([first], True), ([], False)):
        asked = sorted([*strangers, *others[1:]], key=lambda advert: advert.number)
        records = b"".join(advert.record() for advert in asked)
        told = Neighbourhood(VERSION, others[0].session, len(asked), len(asked) + 1, records)
        said = answer(encode_stage(Stage(MODEL, 0, b"s" * 16, "share"), pack(told)), homes[1].store)
        assert ("refusal" in said.facts) == refused
    assert "the signature is not that of its pinned identity" in caplog.text


def test_a_node_with_a_strange_identity_is_refused_and_the_others_go_on(tmp_path: Path) -> None:
    ratings = small_ratings(clients=20, items=30)
    homes = pinned(tmp_path, 1, ratings, nodes=5)
    with Store.open(homes[2].store) as store:
        keys = [bytes.fromhex(key) for key in json.loads(store.fact("pinned"))]
        with store.changing():
            store.connection.execute("DELETE FROM facts WHERE name = 'identity'")
        pin_identities(store, [*keys, own_key(store).public_key().public_bytes_raw()])
    serve(InProcessLink(homes), tmp_path / "run")
    line = journal_of(tmp_path / "run")[0]
    assert line["lost"] == {"3": "advertise malformed"}
    assert line["uploads"] == 16


def test_whoever_has_pinned_takes_part_in_signed_sums_alone_and_the_other_way_round(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    homes = prepared(tmp_path, RATINGS, secure_config(rounds=1), nodes=NODES)
    keys = with_pins(homes, homes[:1])
    assert answer(advert_request(tmp_path), homes[0].store).facts["refusal"] == "sum"
    assert "refusal" not in answer(advert_request(tmp_path), homes[1].store).facts
    change_terms(tmp_path / "run", identities=keys, patience=0.3)
    with pytest.raises(UserError, match="no upload came"):
        serve(InProcessLink(homes), tmp_path / "run")
    assert "node-sum" in caplog.text


def test_identities_are_shown_pinned_and_told_by_the_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("fedrecplus.cli.node.run", lambda *_, **__: None)
    home, file = ["--home", str(tmp_path / "me")], tmp_path / "identities.txt"
    join = ["node", "join", "127.0.0.1:9092", "--insecure", *home]
    assert exit_code_of(["device", "init", *home]) == 0
    capsys.readouterr()
    assert exit_code_of(["node", "identity", *home]) == 0
    own = capsys.readouterr().out.strip()
    assert exit_code_of(join) == 0
    assert exit_code_of(["device", "status", *home]) == 0
    assert "no identities are pinned" in capsys.readouterr().out
    file.write_text(f"# three shops\n{'ab' * 32} berlin\n")
    assert exit_code_of([*join, "--pin", str(file)]) == 2
    assert "own identity" in capsys.readouterr().err
    file.write_text(f"{'ab' * 32} berlin\n{own} here\n")
    assert exit_code_of([*join, "--pin", str(file)]) == 0
    capsys.readouterr()
    assert exit_code_of(["device", "status", *home]) == 0
    assert "2 identities are pinned" in capsys.readouterr().out
    for content, said in (("zz here", "line 1"), ("", "no identity"), (f"{own}\n{own}", "twice")):
        file.write_text(content)
        assert exit_code_of([*join, "--pin", str(file)]) == 2
        assert said in capsys.readouterr().err
