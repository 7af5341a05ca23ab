"""A server that adds items to a task's: as many as were agreed to, at the end, in the log, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedrecplus.deploy.device import Store, answer
from fedrecplus.deploy.device.catalogues import load_catalogue
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.steps import grown_state
from fedrecplus.deploy.wire.task import Task
from tests.deploy.in_process import MODEL, consent, prepared
from tests.deploy.summing import secure_config
from tests.hostile.lying_server import LyingServer, willing
from tests.small_data import small_ratings

RATINGS = small_ratings(clients=6, items=30)
EVERYBODY = list(range(1, 7))
CONFIG = secure_config("fedrec+secure", rounds=3)
ALL = ItemCatalogue.published(RATINGS)
BEGUN = ALL.first(24)
TASK = Task.of(MODEL, CONFIG, BEGUN, growth=0.2)


class GrowingServer(LyingServer):
    """It asks for one model, whose items grow."""

    model, task = MODEL, TASK

    def asked_with(self, catalogue: ItemCatalogue) -> set[int]:
        """Who would take part in the first round over these items."""
        state = grown_state(self.state(CONFIG), catalogue.public, CONFIG)
        how = {"attach": True, "session": b"s" * 16, "task": self.task}
        packet = encode_request(self.model, state, CONFIG, catalogue, **how)
        replies = {node: answer(packet, self.store(node)) for node in EVERYBODY}
        assert {str(reply.facts.get("refusal", "task")) for reply in replies.values()} <= {
            "task",
            "settings",
            "request",
        }
        return willing(replies)

    @property
    def catalogue(self) -> ItemCatalogue:
        return BEGUN


@pytest.fixture
def server(tmp_path: Path) -> GrowingServer:
    server = GrowingServer(prepared(tmp_path, RATINGS, CONFIG, len(EVERYBODY)), RATINGS)
    for node in EVERYBODY:
        consent(server.store(node), TASK, demonstration=True)
    return server


def test_added_items_are_taken_up_to_the_agreed_share(server: GrowingServer) -> None:
    assert TASK.most_items == 28
    assert server.asked_with(ALL.first(28)) == set(EVERYBODY)
    assert server.asked_with(ALL.first(29)) == set(), "anything beyond needs consent anew"
    server.task = Task.of(MODEL, CONFIG, BEGUN, growth=0.5)
    assert server.asked_with(ALL.first(29)) == set()
    server.agreed_by([1], server.task)
    assert server.asked_with(ALL.first(29)) == {1}


def other(catalogue: ItemCatalogue, **columns: Callable[[np.ndarray], np.ndarray]) -> ItemCatalogue:
    """The same items with other figures."""
    changed = {name: change(getattr(catalogue.public, name).copy()) for name, change in columns.items()}
    return replace(catalogue, public=replace(catalogue.public, **changed))


def at(place: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    def change(column: np.ndarray) -> np.ndarray:
        column[place] = value
        return column

    return change


GROWN = ALL.first(28)
LIES = {
    "two items change places": replace(GROWN, ids=(*GROWN.ids[1::-1], *GROWN.ids[2:])),
    "an item has another title": replace(GROWN, titles=("another", *GROWN.titles[1:])) if GROWN.titles else None,
    "an item is gone": replace(
        GROWN, ids=GROWN.ids[1:], titles=GROWN.titles[1:], public=ALL.public.of_items(np.arange(1, 28))
    ),
    "an item has other counts": other(GROWN, popularity=at(3, 1)),
    "an item has another average": other(GROWN, average=at(3, 1.0)),
    "a new one comes before the others": replace(
        GROWN, ids=(GROWN.ids[-1], *GROWN.ids[:-1]), public=GROWN.public.of_items(np.roll(np.arange(28), 1))
    ),
    "a new one has the id of another": replace(GROWN, ids=(*GROWN.ids[:-1], GROWN.ids[2])),
    "a new one is rated more often than any": other(GROWN, popularity=at(27, 10**6)),
    "a new one's average is beyond the scale": other(GROWN, average=at(27, 1e6)),
    "a new one's features are no catalogue's": other(GROWN, content=at(27, 1e6)),
    "a new one comes from another time": other(GROWN, years=at(27, 90_000)),
    "a new one comes from before the first year": other(GROWN, years=at(27, 1)),
}  # fmt: skip


@pytest.mark.parametrize("lie", [name for name, catalogue in LIES.items() if catalogue is not None])
def test_items_that_are_swapped_or_said_otherwise_are_refused_by_all(server: GrowingServer, lie: str) -> None:
    catalogue = LIES[lie]
    assert catalogue is not None
    assert server.asked_with(catalogue) == set()


def test_items_that_were_added_stay(server: GrowingServer) -> None:
    """Two catalogues within the share, one after the other: the second must go on with the first."""
    assert server.asked_with(ALL.first(26)) == set(EVERYBODY)
    swapped = replace(GROWN, ids=(*GROWN.ids[:25], GROWN.ids[26], GROWN.ids[25], *GROWN.ids[27:]))
    assert server.asked_with(swapped) == set()
    assert server.asked_with(GROWN) == set(EVERYBODY)
    assert server.asked_with(BEGUN) == set(), "nor do they go away"


def test_a_catalogue_that_was_let_go_is_not_swapped(server: GrowingServer) -> None:
    """Of a model of long ago the device has no items any more, but their digest."""
    assert server.asked_with(GROWN) == set(EVERYBODY)
    for number in range(3):
        server.model = f"{number:016x}"
        server.task = Task.of(server.model, CONFIG, BEGUN)
        server.agreed_by(EVERYBODY, server.task)
        assert server.asked_with(BEGUN) == set(EVERYBODY)
    for node in EVERYBODY:
        with Store.open(server.store(node)) as store:
            assert load_catalogue(store, GROWN.digest) is None
    server.model, server.task = MODEL, TASK
    assert server.asked_with(replace(GROWN, titles=(*GROWN.titles[:-1], "another"))) == set()
    assert server.asked_with(GROWN) == set(EVERYBODY)


def test_a_refused_addition_is_never_shown_to_its_owner(server: GrowingServer) -> None:
    assert server.asked_with(ALL) == set()
    with Store.open(server.store(1)) as store:
        assert store.value("SELECT COUNT(*) FROM catalogues") == 0


def test_owners_read_what_may_come(server: GrowingServer) -> None:
    assert "24 items" in TASK.words()[0]
    assert "up to 4 that come later" in TASK.words()[0]
    assert "later" not in Task.of(MODEL, CONFIG, BEGUN).words()[0]
