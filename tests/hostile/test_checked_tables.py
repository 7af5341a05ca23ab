"""A server that sends a V of its own making, to devices whose owners agreed to a task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.config import Config
from fedrecplus.deploy.device import answer
from fedrecplus.deploy.node import Node, NodeHome, ServerConnection
from fedrecplus.deploy.wire import ItemCatalogue, questions
from fedrecplus.deploy.wire.packet import Packet, Refusal
from fedrecplus.deploy.wire.questions import WorkItem
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.steps import first_state, next_state
from fedrecplus.deploy.wire.task import Task
from fedrecplus.protocol import Sums
from tests.deploy.in_process import MODEL, InProcessLink, consent, prepared, serve, stored
from tests.deploy.summing import secure_config
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=6, items=30)


def agreed(folder: Path, config: Config, nodes: int = 3, *, logged: bool = True, rounds: int = 0) -> list[NodeHome]:
    """Nodes whose owners agreed to the run's task and to no other; without a log, tables are all that is looked at."""
    task = "" if logged else Task.of(MODEL, config, ItemCatalogue.of(RATINGS)).text
    homes = prepared(folder, RATINGS, config, nodes, task=task, rounds=rounds)
    for home in homes:
        consent(home.store, Task.parse(stored(folder / "run").deployment.task), demonstration=True, bare=True)
    return homes


Lie = Callable[[Packet], Packet]


class LyingLink(InProcessLink):
    """It changes what the first node is asked in some rounds, in one way after another, and asks it the truth then."""

    def __init__(self, homes: list[NodeHome], lies: Mapping[str, tuple[Lie, int]]) -> None:
        super().__init__(homes)
        self.lies, self.refusals = lies, dict[str, str]()

    def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[int, int]:
        first = packets.get(1)
        if first is not None and first.facts.get("stage") == "advertise":
            for name, (lie, in_round) in self.lies.items():
                if first.facts["round"] == in_round:
                    self.refusals[name] = str(answer(lie(first), self.homes[0].store).facts.get("refusal"))
        return super().ask(packets, seconds)


@pytest.mark.parametrize(
    ("optimizer", "precision"),
    [("sgd", "float64"), ("momentum", "float32"), ("adam", "float32"), ("adam", "float64")],
)
def test_tables_of_an_honest_run_are_the_steps_of_their_sums(tmp_path: Path, optimizer: str, precision: str) -> None:
    settings = {"precision": precision, "server_optimizer__rule": optimizer}
    config = secure_config(rounds=4, channel__fewest_contributors=1, **settings)
    link = InProcessLink(agreed(tmp_path, config))
    serve(link, tmp_path / "run")
    told = [packet for _, packet in link.asked if packet.facts.get("stage") == "advertise"]
    assert [("sum.total" in packet.arrays) for packet in told[::3]] == [False, True, True, True]


def test_a_node_that_missed_a_round_goes_on(tmp_path: Path) -> None:
    def lost(node: int, packet: Packet) -> Packet | Refusal:
        return Refusal("lost", blame=False) if node == 1 and packet.facts.get("round") == 1 else packet

    config = secure_config(rounds=4, channel__fewest_contributors=1, server_optimizer__rule="momentum")
    homes = agreed(tmp_path, config, nodes=4)
    link = InProcessLink(homes, tamper=lost)
    serve(link, tmp_path / "run")
    assert stored(tmp_path / "run").lines()[-1]["uploads"] == RATINGS.clients


def moved(packet: Packet, by: float) -> Packet:
    V = packet.arrays["V"].copy()
    V[3] += by
    return replace(packet, arrays={**packet.arrays, "V": V})


def without_sum(packet: Packet) -> Packet:
    return replace(packet, arrays={name: one for name, one in packet.arrays.items() if not name.startswith("sum.")})


def with_sum(packet: Packet, times: float) -> Packet:
    """Another sum, and the very table that it makes would have to come with it."""
    return replace(packet, arrays={**packet.arrays, "sum.total": times * packet.arrays["sum.total"]})


LIES: dict[str, tuple[Lie, int]] = {
    "another start": (lambda packet: moved(packet, 0.5), 0),
    "another table": (lambda packet: moved(packet, 0.01), 1),
    "no sum": (without_sum, 1),
    "a sum that nobody could make": (lambda packet: with_sum(packet, 1e6), 1),
    "another sum": (lambda packet: with_sum(packet, 3.0), 2),
}


def test_a_table_that_is_not_the_task_s_is_refused(tmp_path: Path) -> None:
    config = secure_config(rounds=3, channel__fewest_contributors=1)
    link = LyingLink(agreed(tmp_path, config, logged=False), LIES)
    serve(link, tmp_path / "run")
    assert link.refusals == dict.fromkeys(LIES, "task")
    assert len(stored(tmp_path / "run").lines()[-1]["nodes"]) == 3, "and the truth is taken"


def falsely_told(rows: list[int], statistic: float) -> Sums:
    """A sum within the range of six people, whose every number in these rows is of the server's making."""
    total = np.zeros((30, 7))
    total[rows] = 40.0
    return Sums(total, np.full(30, 2.0), 6.0, 6, statistic=np.full(6, statistic))


@pytest.mark.parametrize(
    ("rare", "statistic", "refusal"),
    [(False, 1.0, None), (True, 1.0, "task"), (False, 1e6, "task")],
    ids=["rows that may be summed", "a row that few rated", "a statistic that nobody could make"],
)
def test_a_false_sum_moves_no_row_of_few_raters(
    tmp_path: Path, rare: bool, statistic: float, refusal: str | None
) -> None:
    """A row that stands out singles out its raters: the next honest sum would have their whole lists in a column."""
    counts = ItemCatalogue.of(RATINGS).public.popularity
    fewest = int(np.median(counts))
    shape = {"model__interaction_factors": 3, "statistics__source": "public"}
    config = secure_config("fedrec+secure", rounds=2, channel__fewest_contributors=fewest, **shape)
    home, catalogue = agreed(tmp_path, config, logged=False)[0], ItemCatalogue.of(RATINGS)
    often = np.flatnonzero(counts >= fewest)[:2].tolist()
    sums = falsely_told([*often, int(counts.argmin())] if rare else often, statistic)
    begun = first_state(config, catalogue.public)
    moved = next_state(begun, [sums], catalogue.public, config)
    for state, told, said in ((begun, None, None), (moved, [sums], refusal)):
        asked = encode_request(MODEL, state, config, catalogue, attach=True, session=b"s" * 16, sums=told)
        assert answer(asked, home.store).facts.get("refusal") == said


def test_a_round_that_was_passed_has_no_second_table(tmp_path: Path) -> None:
    """Who was asked for the round after it, by a sum that nobody unmasked, takes no V of the server's making for it."""
    config, catalogue = secure_config(rounds=4, channel__fewest_contributors=1), ItemCatalogue.of(RATINGS)
    home, states = agreed(tmp_path, config, logged=False)[0], [first_state(config, catalogue.public)]
    nothing = Sums(np.zeros((30, 4)), np.full(30, 2.0), 6.0, 6, statistic=np.zeros(0))
    for _ in range(2):
        states.append(next_state(states[-1], [nothing], catalogue.public, config))
    passed = replace(states[1], V=states[1].V + 0.5)
    for state, sums, said in ((states[1], [nothing], None), (states[2], [nothing], None), (passed, [nothing], "task")):
        asked = encode_request(MODEL, state, config, catalogue, attach=True, session=b"s" * 16, sums=sums)
        assert answer(asked, home.store).facts.get("refusal") == said


@pytest.mark.parametrize("honest", [True, False])
def test_a_node_fetches_the_sum_and_not_the_table_that_it_makes(
    tmp_path: Path, honest: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes as before; a table that differs is fetched, compared, and refused where it isn't near."""
    monkeypatch.setattr(questions, "_INLINE", 0)
    homes, fetched = agreed(tmp_path, secure_config(rounds=3, precision="float32"), nodes=4), list[set[str]]()

    def reply(packet: Packet) -> Packet:
        content, objects = questions.split(packet if honest else moved(packet, 0.01 * int(packet.facts["round"])))
        named = {kind: questions.object_digest(one) for kind, one in objects.items()}
        question, got = WorkItem(1, 1, 0.0, b"", content, named), set[str]()

        def fetch(digest: str) -> bytes:
            got.update(kind for kind in named if named[kind] == digest)
            return objects[next(kind for kind in named if named[kind] == digest)]

        node = Node(ServerConnection("127.0.0.1", 9, None), homes[0].store)
        monkeypatch.setattr(node, "_fetch", fetch)
        whole = node._whole(question)
        fetched.append(got)
        return answer(whole, homes[0].store)

    class OverObjects(InProcessLink):
        def ask(self, packets: Mapping[int, Packet], seconds: float) -> dict[int, int]:
            first = {node: packet for node, packet in packets.items() if node == 1 and "V" in packet.arrays}
            replies = {node: reply(packet) for node, packet in first.items()}
            asked = super().ask({node: packet for node, packet in packets.items() if node not in first}, seconds)
            for node, packet in replies.items():
                self.box[-len(fetched)], asked[-len(fetched)] = packet, node
            return asked

    serve(OverObjects(homes), tmp_path / "run")
    later = {questions.SUMS} if honest else {questions.SUMS, questions.TABLES}
    assert fetched == [{questions.CATALOGUE, questions.TABLES}, later, later]
    assert len(stored(tmp_path / "run").lines()[-1]["nodes"]) == (4 if honest else 3)
