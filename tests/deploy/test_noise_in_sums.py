"""Noise that nodes add to secure sums: equal to a simulation with the same draws, refused where too little."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import Config, change
from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.server import secure_sums
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.catalogue import ITEMS
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.request import check_deployable, encode_request
from fedrecplus.deploy.wire.ring import sum_terms
from fedrecplus.deploy.wire.stages import Stage, encode_stage
from fedrecplus.errors import UserError
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.parts.channel.secure.messages import VERSION, Survivors, pack, to_bits
from fedrecplus.parts.privacy import CLIPPED_SHARE, seeded_words
from fedrecplus.rounds import start_server
from fedrecplus.training.privacy import LEDGER, budget_spent, privacy_lines
from tests.deploy.in_process import InProcessLink, change_terms, serve, stored
from tests.deploy.summing import NODES, Killed, NoiseWords, dying, expected, losing, model
from tests.deploy.test_budget import RATINGS, begun, budget_config

ALL = range(1, NODES + 1)


def noisy_config(source: str = "public", **settings: Any) -> Config:
    return budget_config(source, **{"privacy__rule": "distributed", "privacy__honest": 0.7, **settings})


@pytest.mark.parametrize("name", ["fedmf", "fedrec+secure"])
def test_rounds_equal_simulated_rounds_with_the_same_draws(name: str, tmp_path: Path) -> None:
    """With a statistic beside the rows, too: both have noise."""
    more = {"model__interaction_factors": 3, "channel__statistic_bound": 100.0} if name == "fedrec+secure" else {}
    config = noisy_config(name=name, **more)
    homes = begun(tmp_path, config)
    words = NoiseWords(homes)
    serve(InProcessLink(homes, words), tmp_path / "run")
    assert len(words) == 2 * NODES
    public = catalogue_of(tmp_path)
    np.testing.assert_array_equal(model(tmp_path), expected(RATINGS, config, [ALL] * 2, [ALL] * 2, 4, words, public))
    others = {place: seeded_words(number) for number, place in enumerate(words)}
    other = expected(RATINGS, config, [ALL] * 2, [ALL] * 2, 4, others, public)
    assert np.abs(model(tmp_path) - other).max() > 1e-3, "and there is noise"


def catalogue_of(folder: Path) -> Any:
    return ItemCatalogue.read(folder / "run" / ITEMS).public


def test_a_node_may_drop_out_before_its_share_of_noise_is_in(tmp_path: Path) -> None:
    config = noisy_config()
    homes = begun(tmp_path, config)
    words = NoiseWords(homes, losing("share", 2))
    serve(InProcessLink(homes, words), tmp_path / "run")
    found = expected(RATINGS, config, [ALL] * 2, [(1, 3, 4), ALL], 4, words, catalogue_of(tmp_path))
    np.testing.assert_array_equal(model(tmp_path), found)


def test_the_result_and_the_ledger_say_who_added_the_noise(tmp_path: Path) -> None:
    homes = begun(tmp_path, noisy_config())
    serve(InProcessLink(homes), tmp_path / "run")
    privacy = json.loads((tmp_path / "run" / "result.json").read_text())["privacy"]
    lines = privacy_lines(tmp_path / "run" / LEDGER)
    assert [line["release"] for line in lines] == ["round 1", "round 2"]
    assert privacy["epsilon"] == pytest.approx(budget_spent(lines, 1e-3))
    assert privacy["epsilon"] <= 8.0
    assert "a share from each device" in privacy["mechanism"]
    assert (privacy["neighbouring"], privacy["seeded_noise"]) == ("zero-out-one", False)


@pytest.mark.parametrize(("stage", "lines"), [("mask", 2), ("reveal", 2), ("pending", 2)])
def test_what_a_round_costs_is_noted_before_anybody_can_unmask_it(
    stage: str, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill in between may count a release twice, and never not at all."""
    homes = begun(tmp_path, noisy_config())
    seen = list[int]()

    def unwritten(*_: Any) -> Any:
        seen.append(len(stored(tmp_path / "run").book.lines()))
        raise Killed

    if stage == "pending":
        monkeypatch.setattr(secure_sums.SecureRound, "finish", unwritten)
    with pytest.raises(Killed):
        serve(InProcessLink(homes, dying(stage, 1, 0)), tmp_path / "run")
    monkeypatch.undo()
    noted = privacy_lines(tmp_path / "run" / LEDGER)
    assert len(noted) == (0 if stage == "mask" else 1), "before the first share of a secret is asked for, not earlier"
    assert seen == ([1] if stage == "pending" else [])
    serve(InProcessLink(homes), tmp_path / "run")
    found = [line["release"] for line in privacy_lines(tmp_path / "run" / LEDGER)]
    assert found == ["round 1"] * (lines - 1) + ["round 2"]
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["privacy"]["epsilon"] == pytest.approx(budget_spent(privacy_lines(tmp_path / "run" / LEDGER), 1e-3))


def test_where_fewer_survive_than_the_noise_is_made_for_the_round_begins_anew(tmp_path: Path) -> None:
    config = noisy_config(privacy__honest=0.9, server__rounds=1)
    homes = begun(tmp_path, config)
    lost = list[str]()

    def once(node: int, packet: Packet) -> Packet | Refusal:
        if packet.facts.get("stage") == "mask" and node == 2 and not lost:
            lost.append(str(packet.facts["session"]))
            return Refusal("lost", blame=False)
        return packet

    link = InProcessLink(homes, once)
    serve(link, tmp_path / "run")
    sessions = {packet.facts["session"] for _, packet in link.asked}
    assert len(sessions) == 2, "three of four vectors are enough for masks, and not for noise"
    asked = [packet for _, packet in link.asked if packet.facts["session"] == lost[0]]
    assert {packet.facts["stage"] for packet in asked} == {"advertise", "share", "mask"}, "nothing was unmasked"


def test_a_node_refuses_to_unmask_a_sum_with_too_little_noise(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = noisy_config(privacy__honest=0.9, server__rounds=1)
    homes = begun(tmp_path, config)
    link = InProcessLink(homes)
    ask = link.ask

    def lying(packets: dict[int, Packet], seconds: float) -> dict[int, int]:
        """The server names three survivors of four."""
        changed = dict(packets)
        for node, packet in packets.items():
            if packet.facts["stage"] == "reveal":
                stage = Stage.of(packet.facts)
                with Store.open(homes[node - 1].store) as store:
                    state = store.value("SELECT state FROM sums")
                client = SecureClient.of_bytes(state)
                gone = next(number for number in client.near if number != client.state.number)
                alive = to_bits(number != gone for number in client.near)
                told = Survivors(VERSION, client.state.session, 3, alive)
                changed[node] = encode_stage(stage, pack(told))
        return ask(changed, seconds)

    link.ask = lying  # type: ignore[method-assign]
    with pytest.raises(UserError, match="no upload came"):
        serve_briefly(link, tmp_path)
    assert "3 of 4 survived: less noise than 1 would add" in caplog.text


def serve_briefly(link: InProcessLink, folder: Path) -> None:
    change_terms(folder / "run", patience=0.3)
    serve(link, folder / "run")


def test_a_round_whose_sum_was_unmasked_is_not_asked_for_again(tmp_path: Path) -> None:
    """Later rounds have less noise: a server that asked for the last one ever again would pay less than it says."""
    homes = begun(tmp_path, noisy_config())
    link = InProcessLink(homes)
    serve(link, tmp_path / "run")
    again = next(p for n, p in link.asked if n == 1 and p.facts["round"] == 1 and p.facts["stage"] == "advertise")
    other = Packet({**again.facts, "session": "ab" * 16}, {**again.arrays, "V": again.arrays["V"] + 1e-3})
    assert answer(other, homes[0].store).facts["refusal"] == "policy"


def test_those_who_may_collude_must_survive_beside_those_whose_noise_counts(tmp_path: Path) -> None:
    """The server knows the noise of who colludes with it, and takes it off."""
    terms = sum_terms(noisy_config(channel__corrupted=0.2), begun_public(), (30, 4), 0)
    assert terms.surviving == pytest.approx(0.9)
    with pytest.raises(UserError, match="would have to answer"):
        check_deployable(noisy_config(channel__corrupted=0.4))


def test_how_many_devices_share_the_noise_is_fixed_by_the_task_and_bounded_by_the_owner(tmp_path: Path) -> None:
    config = noisy_config(privacy__devices=4)
    told, alone = (sum_terms(change(config, "privacy.devices", n), begun_public(), (30, 4), 0) for n in (0, 4))
    by_word = [told.share(told.encoding(16, n), n) for n in (4, 4000)]
    assert by_word[1] < 0.05 * by_word[0], "a server that names 4,000 devices has next to no noise"
    fixed = [alone.share(alone.encoding(16, n), n) for n in (4, 4000)]
    assert fixed[1] == pytest.approx(fixed[0], rel=1e-2)
    assert alone.least_nodes == 4, "of whom a tenth may collude"
    homes = begun(tmp_path, config)
    serve(InProcessLink(homes), tmp_path / "run")
    request = first_request(tmp_path, config)
    assert "refusal" not in answer(request, homes[0].store).facts
    for demand, refused in (("3", True), ("4", False)):
        assert exit_code_of(["device", "policy", "--most-sharing", demand, "--home", str(homes[0].path)]) == 0
        assert ("refusal" in answer(request, homes[0].store).facts) == refused
    by_server = first_request(tmp_path, noisy_config(), "bb")
    assert answer(by_server, homes[0].store).facts["refusal"] == "policy"


def first_request(folder: Path, config: Config, model: str = "aa") -> Packet:
    """Of a model that nobody has seen yet."""
    catalogue = ItemCatalogue.read(folder / "run" / ITEMS)
    state = replace(start_server(config, catalogue.public), round=0)
    state = replace(state, V=state.V + 0.01)
    return encode_request(model, state, config, catalogue, attach=True, session=b"s" * 16)


def test_noise_is_large_enough_and_has_room_in_the_ring() -> None:
    config = noisy_config()
    public = begun_public()
    terms = sum_terms(config, public, (30, 4), 0)
    encoding = terms.encoding(16, NODES)
    share, noise = terms.share(encoding, NODES), terms.noise
    assert noise is not None
    assert share * np.sqrt(np.floor(0.7 * NODES)) >= noise.multiplier * config.privacy.settings.clip
    most = (16 * config.channel.settings.bound + 8.0 * share * np.sqrt(NODES)) * encoding.scales
    assert (most < 2**31).all()


def test_the_count_of_clipped_persons_leaves_under_the_noise_of_the_rest(tmp_path: Path) -> None:
    config = noisy_config(privacy__clip=0.05)
    serve(InProcessLink(begun(tmp_path, config)), tmp_path / "run")
    terms = sum_terms(config, begun_public(), (30, 4), 0)
    sd = terms.share(terms.encoding(16, NODES), NODES) * np.sqrt(NODES) / (CLIPPED_SHARE * 0.05)
    counts = np.array([line["clipped"] for line in stored(tmp_path / "run").lines()])
    assert (np.abs(counts - RATINGS.clients) < 8 * sd).all()
    assert (counts != RATINGS.clients).any()


def begun_public() -> Any:
    return ItemCatalogue.published(RATINGS).public


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["privacy.rule=local"], "drawn from a node's stored key"),
        (["channel.rule=clear"], "a share of the noise hides no upload"),
        (["privacy.clip=9"], "channel.bound"),
    ],
)
def test_noise_that_hides_nothing_is_refused_with_its_own_reason(settings: list[str], reason: str) -> None:
    config = noisy_config()
    for setting in settings:
        config = change(config, *setting.split("="))  # type: ignore[arg-type]
    with pytest.raises(UserError, match=reason):
        check_deployable(config)
