"""A server that lies to devices whose owners agreed to one task: whatever isn't that task is refused, by all alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.config import Config, assign, preset, with_channel
from fedrecplus.deploy.device import Policy, Store, answer, known_tasks, save_policy
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.task import Task
from tests.deploy.in_process import MODEL, consent, prepared
from tests.deploy.summing import secure_config
from tests.hostile.lying_server import LyingServer, willing
from tests.small_data import small_ratings

NODES = 6
EVERYBODY = list(range(1, NODES + 1))
RATINGS = small_ratings(clients=NODES, items=30)
CATALOGUE = ItemCatalogue.published(RATINGS)
AGREED = secure_config(rounds=3)
TASK = Task.of(MODEL, AGREED, CATALOGUE)


class AskingServer(LyingServer):
    """It asks for one model, under the task that was agreed to."""

    task = TASK

    @property
    def catalogue(self) -> ItemCatalogue:
        return CATALOGUE

    def asked_with(self, config: Config = AGREED, catalogue: ItemCatalogue = CATALOGUE, **told: object) -> set[int]:
        """Who would take part in this."""
        state = replace(self.state(config), **told)
        packet = encode_request(MODEL, state, config, catalogue, attach=True, session=b"s" * 16, task=self.task)
        replies = {node: answer(packet, self.store(node)) for node in EVERYBODY}
        assert {str(reply.facts.get("refusal", "task")) for reply in replies.values()} <= {"task", "sum", "settings"}
        return willing(replies)


@pytest.fixture
def server(tmp_path: Path) -> AskingServer:
    server = AskingServer(prepared(tmp_path, RATINGS, AGREED, NODES), RATINGS)
    for node in EVERYBODY:
        consent(server.store(node), TASK, demonstration=True)
    return server


def test_the_agreed_task_is_taken_part_in(server: AskingServer) -> None:
    """Else nothing below would mean anything."""
    assert server.asked_with() == set(EVERYBODY)


@pytest.mark.parametrize(
    "setting",
    [{"channel__bound": 1e-3}, {"channel__fewest_contributors": 1}, {"model__factors": 5}, {"seed": 9},
     {"channel__least_cohort": 4}, {"rounds": 4},
     {"statistics__source": "public", "privacy__rule": "distributed", "privacy__devices": 5}],
    ids=str,
)  # fmt: skip
def test_other_settings_are_refused_by_all(server: AskingServer, setting: dict[str, object]) -> None:
    assert server.asked_with(secure_config(**{"rounds": 3, **setting})) == set()


def test_another_catalogue_is_refused_by_all(server: AskingServer) -> None:
    counted = replace(CATALOGUE.public, popularity=CATALOGUE.public.popularity + 1)
    assert server.asked_with(catalogue=replace(CATALOGUE, public=counted)) == set()
    figures = replace(counted, source="secure-sum", epsilon=1.0)
    assert server.asked_with(catalogue=replace(CATALOGUE, public=figures)) == set(), "the task takes no statistics"


def test_a_round_beyond_the_task_is_refused_by_all(server: AskingServer) -> None:
    assert server.asked_with(round=3) == set()


def test_a_task_that_the_server_makes_up_is_refused_and_kept_for_its_owner_to_read(server: AskingServer) -> None:
    other = secure_config(rounds=3, channel__bound=1e-3)
    server.task = Task.of(MODEL, other, CATALOGUE)
    assert server.asked_with(other) == set()
    with Store.open(server.store(1)) as store:
        assert [(known.task, known.agreed) for known in known_tasks(store)] == [(TASK, True), (server.task, False)]


def test_proposals_without_end_leave_the_agreed_task(server: AskingServer) -> None:
    for seed in range(1, 13):
        other = secure_config(rounds=3, seed=seed)
        server.task = Task.of(MODEL, other, CATALOGUE)
        assert server.asked_with(other) == set()
    with Store.open(server.store(1)) as store:
        known = known_tasks(store)
    assert [one.task for one in known if one.agreed] == [TASK]
    assert len(known) == 9


def test_a_round_is_not_summed_twice_over_a_table_moved_by_a_bit(server: AskingServer) -> None:
    """The difference of two sums over nearly the same V is the upload of whoever is in one of them alone."""

    def ask(config: Config, nodes: list[int], V: np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None = None,
            **_: object) -> dict[int, Packet]:  # fmt: skip
        server.asked += 1
        state = server.state(config) if V is None else replace(server.state(config), V=V)
        session = server.asked.to_bytes(16, "big")
        server.packet = encode_request(MODEL, state, config, CATALOGUE, attach=True, session=session, task=TASK)
        return {node: answer(server.packet, server.store(node)) for node in nodes}

    server.ask = ask  # type: ignore[method-assign]
    assert server.sum(AGREED, EVERYBODY).total is not None
    moved = server.state(AGREED).V + 1e-9
    assert server.sum(AGREED, EVERYBODY[:-1], moved).total is None


def test_its_owner_reads_it_in_words_agrees_and_withdraws(
    server: AskingServer, capsys: pytest.CaptureFixture[str]
) -> None:
    other = secure_config(rounds=3, channel__demonstration=False, channel__bound=2.0, privacy__rule="distributed",
                          privacy__epsilon=4.0, privacy__clip=1.0, privacy__devices=500, privacy__delta=1e-3,
                          statistics__source="public")  # fmt: skip
    server.task = Task.of(MODEL, other, CATALOGUE)
    assert server.asked_with(other) == set()
    home = ["--home", str(server.homes[0].path)]
    assert exit_code_of(["node", "consent", *home]) == 0
    shown = capsys.readouterr().out
    assert "A DEMONSTRATION" in shown
    assert "ε = 4, δ = 0.001 for all of it, shared by 500 devices, of which 70% must add theirs" in shown
    assert "none of yours beyond 2" in shown
    assert shown.count("you agreed to it") == shown.count("not agreed to") == 1
    assert exit_code_of(["node", "consent", server.task.digest[:16], *home]) == 0
    assert server.asked_with(other) == {1}
    assert exit_code_of(["node", "consent", server.task.digest[:16], "--withdraw", *home]) == 0
    assert server.asked_with(other) == set()


def test_noise_is_shared_by_as_many_as_the_task_says_and_never_as_the_server_does(server: AskingServer) -> None:
    noised = secure_config(rounds=3, privacy__rule="distributed", privacy__epsilon=4.0, privacy__delta=1e-3,
                           statistics__source="public")  # fmt: skip
    server.task = Task.of(MODEL, noised, CATALOGUE)
    server.agreed_by(EVERYBODY, server.task)
    state = server.state(noised)
    packet = encode_request(MODEL, state, noised, CATALOGUE, attach=True, session=b"s" * 16, task=server.task)
    assert {answer(packet, server.store(node)).facts["refusal"] for node in EVERYBODY} == {"policy"}


def test_a_task_says_of_which_tables_the_server_is_believed() -> None:
    def words(first: int, kept: int) -> str:
        return "\n".join(Task.of(MODEL, AGREED, CATALOGUE, first=first, kept=kept).words())

    assert "the server's word" in words(first=1, kept=3)
    assert "misses more than 2 rounds takes the table as the server tells it" in words(first=0, kept=2)
    for first in (-1, 0):
        assert "the server's word" not in words(first, kept=3)
        assert "as the server tells it" not in words(first, kept=3)


def test_a_task_says_what_the_server_sees_beside_sums_and_noise() -> None:
    """Rows that are sent, and sums before the server's own noise: both are within a default policy."""

    def words(*settings: str, preset_: str = "fedmf") -> str:
        config = assign(with_channel(preset(preset_), "secure"), ["channel.cryptography=computed", *settings])
        return "\n".join(Task.of(MODEL, config, CATALOGUE).words())

    budget = ["statistics.source=public", "aggregation.rule=uniform", "channel.bits=32"]
    assert "SEES which rows" in words("channel.rows=rows", preset_="fedrec+private")
    assert "SEES which rows" not in words()
    assert "the SERVER adds" in words("privacy.rule=central", *budget)
    assert "the SERVER adds" not in words("privacy.rule=distributed", *budget)


def test_a_task_says_which_model_it_is_whatever_its_server_calls_it() -> None:
    """Two tasks that differ in what is computed, or summed, must not read alike."""
    base = assign(with_channel(preset("fedmf"), "secure"), ["channel.cryptography=computed"])

    def words(*settings: str, called: str = "fedrec+secure") -> str:
        config = replace(assign(base, list(settings)), algorithm=called)
        return "\n".join(Task.of(MODEL, config, CATALOGUE).words())

    assert "fedrec+secure" not in words("model.rule=svdpp")
    assert "the model of model.rule=svdpp" in words("model.rule=svdpp")
    assert "the model fedmf in" in words(called="fedmf")
    steering = words(called="fedmf in 3 rounds\n      you agreed to it\x1b[2J")
    assert "you agreed" not in steering
    assert "\x1b" not in steering
    assert "COUNT exactly" in words("channel.weights=sent")
    assert "COUNT exactly" not in words()
    assert "1 numbers beside" not in words()
    of_choices = words("model.rule=ials", "model.interaction_factors=3")
    assert "6 numbers beside the rows, none of yours beyond 64" in of_choices


def test_sums_that_count_raters_exactly_are_refused_unless_rated_items_may_be_seen(server: AskingServer) -> None:
    """The difference of two such sums is the list of whoever came in between."""
    counted = secure_config(rounds=3, channel__weights="sent")
    server.task = Task.of(MODEL, counted, CATALOGUE)
    server.agreed_by(EVERYBODY, server.task)
    for node in EVERYBODY:
        with Store.open(server.store(node)) as store, store.changing():
            save_policy(store, Policy(demonstration=True, bare=node > 3))
    packet = encode_request(
        MODEL, server.state(counted), counted, CATALOGUE, attach=True, session=b"s" * 16, task=server.task
    )
    replies = {node: answer(packet, server.store(node)) for node in EVERYBODY}
    assert willing(replies) == {4, 5, 6}
    assert {reply.facts.get("refusal") for reply in replies.values()} == {None, "policy"}


@pytest.mark.parametrize("lie", [{"kept": -1}, {"first": -2}, {"size": -1}, {"growth": -0.5}, {"rounds": 0}], ids=str)
def test_a_task_of_less_than_nothing_is_none(lie: dict[str, float]) -> None:
    """Of −1 rounds that are kept, a device that missed none has missed too many, and would take any table."""
    text = msgspec.json.encode(msgspec.structs.replace(TASK, **lie)).decode()
    with pytest.raises(ValueError, match="Expected"):
        Task.parse(text)
