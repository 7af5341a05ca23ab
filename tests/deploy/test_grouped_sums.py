"""Groups of a cohort with a secure sum each: drawn by everybody, joined by everybody, without those that fail."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings
from fedrecplus.deploy.device import Store, answer, sums as device_sums
from fedrecplus.deploy.device.catalogues import load_catalogue
from fedrecplus.deploy.node import NodeHome
from fedrecplus.deploy.server import journal_of
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import decode_request, told_tables
from fedrecplus.deploy.wire.ring import persons_bound, sum_terms
from fedrecplus.deploy.wire.steps import first_state, next_state, sum_arrays
from fedrecplus.deploy.wire.task import Task
from fedrecplus.engines import device_of, engine_of, message_of, prepare
from fedrecplus.engines.state import remember
from fedrecplus.parts.channel import RingVector, add_all, decode, encode, expected_in, joined
from fedrecplus.rounds import client_round, server_round
from tests.deploy.in_process import MODEL, InProcessLink, StoredPast, consent, prepared, serve, stored
from tests.deploy.summing import Killed, dying, losing, model, secure_config
from tests.small_data import small_ratings

NODES, GROUPS = 15, 5
SPOILED = 2**27
"""steps of the ring that a spoiler adds to every number: about three"""
RATINGS = small_ratings(clients=30, items=30)


def grouped(rounds: int = 2, **settings: Any) -> Config:
    return secure_config(rounds=rounds, channel__groups=GROUPS, channel__fewest_contributors=1, **settings)


def expected(ratings: Ratings, config: Config, lines: Sequence[dict[str, Any]], nodes: int, spoiler: int = 0) -> Any:
    """V after rounds in which these groups of nodes came to a sum, all of whose vectors are in it."""
    problem = prepare(ratings, config)
    state = engine_of(config).start(problem)
    for line in lines:
        told, uploads = message_of(problem, state), {}
        for client in range(ratings.clients):
            upload, device = client_round(told, device_of(problem, state.private, client), problem.config)
            remember(problem, state.private, device)
            uploads[client] = upload
        terms, groups = sum_terms(config, problem.public, state.server.V.shape, state.server.round), []
        for group in line["groups"]:
            persons = {node: [c for c in range(ratings.clients) if c % nodes == node - 1] for node in group}
            room = sum(persons_bound(len(own)) for own in persons.values())
            encoding = terms.encoding(room, len(group))
            vectors = (encode(uploads[client], encoding) for own in persons.values() for client in own)
            total = add_all(vectors, terms.layout)
            total.updates += np.asarray(SPOILED * (spoiler in group), dtype=total.updates.dtype)
            groups.append(decode(total, encoding))
        sums, _ = joined(groups, expected_in(1, problem.public))
        state = replace(state, server=server_round(state.server, sums, problem.public, config))
    return state.server.V


def in_groups(line: dict[str, Any]) -> list[int]:
    """Nodes of all groups that came to a sum."""
    return [node for group in line["groups"] for node in group]


def agreed(folder: Path, config: Config, task: str = "") -> list[NodeHome]:
    """Nodes whose owners agreed to the task, and that make the server's step themselves."""
    homes = prepared(folder, RATINGS, config, nodes=NODES, task=task)
    for home in homes:
        consent(home.store, Task.parse(stored(folder / "run").deployment.task), demonstration=True, bare=True)
    return homes


def test_groups_sums_are_joined_to_the_model_of_a_simulation_bit_for_bit(tmp_path: Path) -> None:
    config = grouped(rounds=3)
    homes = agreed(tmp_path, config)
    serve(InProcessLink(homes), tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert [sorted(in_groups(line)) for line in lines] == [list(range(1, NODES + 1))] * 3
    assert [[len(group) for group in line["groups"]] for line in lines] == [[3] * GROUPS] * 3
    assert lines[0]["groups"] != lines[1]["groups"], "each round draws its own"
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, lines, NODES))
    run = stored(tmp_path / "run")
    told = StoredPast(run.database).log(Task.parse(run.deployment.task).digest)
    leaves = [json.loads(leaf) for leaf in told.entries[1:]]
    assert [len(leaf["sum"].split()) for leaf in leaves] == [0, GROUPS, GROUPS], "a digest of each group's sum"


@pytest.mark.parametrize("stage", ["share", "mask", "reveal"])
def test_a_group_that_falls_below_the_least_size_is_left_out(stage: str, tmp_path: Path) -> None:
    config = grouped()
    link = InProcessLink(agreed(tmp_path, config), losing(stage, 2))
    serve(link, tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert [len(line["groups"]) for line in lines] == [GROUPS - 1, GROUPS]
    assert lines[0]["lost"] == {"2": f"{stage} lost"}
    assert 2 not in in_groups(lines[0])
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, lines, NODES))


def test_where_most_groups_fail_the_round_begins_anew(tmp_path: Path) -> None:
    config, sessions = grouped(rounds=1), set[str]()

    def tamper(node: int, packet: Packet) -> Packet | Refusal:
        sessions.add(str(packet.facts["session"]))
        gone = node > 2 and packet.facts["stage"] == "share" and len(sessions) == 1
        return Refusal("lost", blame=False) if gone else packet

    serve(InProcessLink(agreed(tmp_path, config), tamper), tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert (len(sessions), len(lines[0]["groups"])) == (2, GROUPS)
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, lines, NODES))


def test_whoever_deals_garbage_ends_the_sum_of_its_own_group_and_is_blamed(tmp_path: Path) -> None:
    def garble(node: int, packet: Packet) -> Packet:
        if node != 4 or packet.facts.get("stage") != "share":
            return packet
        changed = packet.arrays["message"].copy()
        changed[-40:] ^= 1
        return Packet(packet.facts, {"message": changed})

    config = grouped(rounds=1)
    serve(InProcessLink(agreed(tmp_path, config), garble), tmp_path / "run")
    line = journal_of(tmp_path / "run")[0]
    assert len(line["groups"]) == GROUPS - 1, "no round is lost"
    assert 4 not in in_groups(line)
    assert "4" in line["refusals"]["strikes"]
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, [line], NODES))


def test_a_server_that_died_while_groups_were_unmasked_goes_on_to_the_same_model(tmp_path: Path) -> None:
    config = grouped()
    homes = agreed(tmp_path, config)
    with pytest.raises(Killed):
        serve(InProcessLink(homes, dying("reveal", 3, 1)), tmp_path / "run")
    again = InProcessLink(homes)
    serve(again, tmp_path / "run")
    assert {packet.facts["stage"] for _, packet in again.asked} == {"reveal"}
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, journal_of(tmp_path / "run"), NODES))


def test_whoever_spoils_is_left_out_with_its_group_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    honest, spoiler = device_sums._vector, 4

    def vector(store: Store, *asked: Any) -> RingVector:
        found = honest(store, *asked)
        if store.path == homes[spoiler - 1].store:
            found.updates[:] = found.updates + np.asarray(SPOILED, dtype=found.updates.dtype)
        return found

    config = grouped(rounds=2)
    monkeypatch.setattr(device_sums, "_vector", vector)
    homes = agreed(tmp_path, config)
    serve(InProcessLink(homes), tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    for line in lines:
        assert any(spoiler in line["groups"][number] for number in line["odd_groups"])
    assert "groups whose sums are odd are left out" in caplog.text
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, lines, NODES, spoiler))
    honest_V = expected(RATINGS, config, lines, NODES)
    whole = [{"groups": [list(range(1, NODES + 1))]} for _ in lines]
    farthest = np.abs(expected(RATINGS, config, whole, NODES, spoiler) - honest_V).max()
    assert np.abs(model(tmp_path) - honest_V).max() < 0.5 * farthest, "in one sum of all it would do far more"


@pytest.mark.parametrize(("place", "steps"), [(-1, 2**20), (-1, -3), (-2, -(2**24))], ids=["many", "fewer", "weight"])
def test_whoever_lies_of_persons_or_weights_is_left_out_with_its_group_and_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int, steps: int
) -> None:
    """How many persons a group has, and what they weigh, is in its sum: each of its members can say what it likes."""
    honest, liar = device_sums._vector, 4

    def vector(store: Store, *asked: Any) -> RingVector:
        found = honest(store, *asked)
        if store.path == homes[liar - 1].store:
            found.weights[place] += np.array([steps]).astype(np.int64).astype("<u4")[0]
        return found

    config = grouped(rounds=2)
    monkeypatch.setattr(device_sums, "_vector", vector)
    homes = agreed(tmp_path, config)
    serve(InProcessLink(homes), tmp_path / "run")
    lines = journal_of(tmp_path / "run")
    assert len(lines) == 2, "devices took part in the round after"
    for line in lines:
        joined_in = [group for number, group in enumerate(line["groups"]) if number not in line["odd_groups"]]
        assert 0 < len(joined_in) < GROUPS or len(line["groups"]) < GROUPS
        assert liar not in in_groups({"groups": joined_in})


@pytest.mark.parametrize(("groups", "refused"), [(3, False), (2, True), (6, True)])
def test_devices_step_from_the_sums_of_most_groups_and_of_no_fewer(groups: int, refused: bool, tmp_path: Path) -> None:
    """Sums of another number of groups, with the table that they make; a log would say so first."""
    config = grouped()

    class Lying(InProcessLink):
        said = ""

        def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[int, int]:
            packet = packets.get(1)
            if packet is not None and "sum.total" in packet.arrays:
                request = decode_request(packet)
                told = [*(request.sums or []), *(request.sums or [])][:groups]
                with Store.open(self.homes[0].store) as store:
                    public = load_catalogue(store, request.catalogue).public
                state = next_state(first_state(config, public), told, public, config)
                arrays = {**packet.arrays, **sum_arrays(told, config), **told_tables(state, config)}
                Lying.said = str(answer(Packet(packet.facts, arrays), self.homes[0].store).facts.get("refusal", ""))
            return super().ask(packets, seconds)

    task = Task.of(MODEL, config, ItemCatalogue.of(RATINGS))
    homes = agreed(tmp_path, config, task.text)
    serve(Lying(homes), tmp_path / "run")
    assert Lying.said == ("task" if refused else "")
