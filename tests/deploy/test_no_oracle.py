"""What a device does towards a server depends on the server's messages alone, never on what its owner has rated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config
from fedrecplus.data.scale import Scale
from fedrecplus.deploy.device import Policy, Store, answer, save_policy
from fedrecplus.deploy.server.statistics import before_first_round
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.request import decode_request, encode_request
from fedrecplus.deploy.wire.stages import Stage, encode_stage, mask_context
from fedrecplus.parts.channel import RingLayout
from fedrecplus.parts.channel.secure.client import SecureClient
from fedrecplus.parts.channel.secure.client_state import ClientState
from fedrecplus.parts.channel.secure.messages import Advertisement, unpack
from fedrecplus.parts.channel.secure.server import SecureServer
from fedrecplus.parts.channel.secure.server_state import ServerOptions
from fedrecplus.rounds import ServerState, start_server
from tests.deploy.in_process import MODEL, small_config
from tests.deploy.summing import message, secure_config
from tests.small_data import small_ratings

CATALOGUE = ItemCatalogue.published(small_ratings(clients=16, items=30))
SESSION = b"s" * 16
PERSONS: dict[str, dict[str, float]] = {
    "likes two": {"3": 5.0, "7": 1.0},
    "likes many": {str(item): 4.0 for item in range(0, 30, 2)},
    "hates them": {str(item): 1.0 for item in range(0, 30, 2)},
    "rates what nobody knows": {"not in the catalogue": 3.0},
    "has rated nothing": {},
}


@pytest.fixture
def stores(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / str(number) / "store.db" for number in range(len(PERSONS))]
    for path, ratings in zip(paths, PERSONS.values(), strict=True):
        Store.create(path, Scale.parse("1:5:1"))
        with Store.open(path) as store:
            store.rate(ratings)
            with store.changing():
                save_policy(store, Policy(demonstration=True, any_task=True))
    return paths


def outward(reply: Packet) -> tuple[Any, ...]:
    """What a server sees of a reply but for keys and masks: its facts, and the length of all that it holds."""
    shapes = {name: (str(table.dtype), table.shape) for name, table in reply.arrays.items()}
    return reply.facts, shapes


def state_of(config: Config) -> ServerState:
    return start_server(config, CATALOGUE.public)


def asked(config: Config, state: ServerState | None = None, **changes: Any) -> Packet:
    told = {"attach": True, "session": SESSION} | changes
    return encode_request(MODEL, state or state_of(config), config, CATALOGUE, **told)


def with_V(change: Callable[[Any], Any], **settings: Any) -> Packet:
    config = secure_config(**settings)
    return asked(config, replace(state_of(config), V=change(state_of(config).V)))


STATISTICS = {"statistics__source": "secure-sum", "statistics__epsilon": 2.0, "statistics__delta": 1e-3}
MESSAGES: dict[str, Packet] = {
    "an honest one": asked(secure_config()),
    "a tiny bound": asked(secure_config(channel__bound=1e-3)),
    "a large V": with_V(lambda V: 900.0 * np.sign(V)),
    "a V of one row": with_V(lambda V: np.where(np.arange(len(V))[:, None] == 3, 1e3, 0.0 * V)),
    "a V of zeros": with_V(np.zeros_like),
    "a V that overflows": with_V(lambda V: V + 1e200),
    "a V that is no number": with_V(lambda V: V * np.nan),
    "a V of other columns": with_V(lambda V: V[:, :2]),
    "a V of other items": with_V(lambda V: V[:9]),
    "steps so large that they overflow": with_V(lambda V: 1e3 * np.sign(V), model__learning_rate=10.0,
                                                name="fedmf-vanilla"),
    "the statistics": asked(secure_config(**STATISTICS), before_first_round(CATALOGUE)),
    "statistics without noise": asked(secure_config(statistics__source="secure-sum"), before_first_round(CATALOGUE)),
    "a round that is not due": asked(secure_config(), replace(state_of(secure_config()), round=99)),
    "no pseudo items": asked(small_config("fedmf"), session=b""),
    "hardly any pseudo items": asked(small_config(pseudo_items__ratio=0.01), session=b""),
    "three pseudo items per rating": asked(small_config(pseudo_items__ratio=3.0), session=b""),
    "signed sums": asked(secure_config(), pinned=True),
    "a catalogue that isn't here": asked(secure_config(), attach=False),
    "a version of the future": Packet({"version": "fedrecplus 9.9, protocol 99"}, {}),
    "a stage of no sum": encode_stage(Stage(MODEL, 0, SESSION, "mask"), b""),
}  # fmt: skip


@pytest.mark.parametrize("what", MESSAGES)
def test_devices_that_differ_in_ratings_alone_answer_alike(what: str, stores: list[Path]) -> None:
    for _ in range(2):  # asked again, too
        replies = [outward(answer(MESSAGES[what], path)) for path in stores]
        assert all(reply == replies[0] for reply in replies[1:]), what


@pytest.mark.parametrize(
    "what",
    ["an honest one", "a tiny bound", "a large V", "a V of one row", "steps so large that they overflow",
     "the statistics"],
)  # fmt: skip
def test_every_stage_of_a_sum_looks_the_same(what: str, stores: list[Path]) -> None:
    """From keys to shares: whatever was asked for, whoever answers one stage answers all, and as long."""
    packet = MESSAGES[what]
    replies = {number: answer(packet, path) for number, path in enumerate(stores)}
    request, layout = decode_request(packet), layout_at(stores[0])
    adverts = {n: unpack(Advertisement, message(reply), request.sum_session) for n, reply in replies.items()}
    numbers = {n: advert.number for n, advert in adverts.items()}
    server = SecureServer(request.sum_session, layout, list(numbers.values()), ServerOptions(least_cohort=3))
    server.context = mask_context(len(stores))
    for n, reply in replies.items():
        server.take(numbers[n], message(reply))
    while server.stage != "reveal":
        questions = server.close()
        stage = Stage(str(packet.facts["model"]), int(packet.facts["round"]), SESSION, server.stage)
        more = {"persons": len(stores)} if server.stage == "mask" else {}
        said = {n: answer(encode_stage(stage, questions[numbers[n]], **more), path) for n, path in enumerate(stores)}
        seen = [outward(reply) for reply in said.values()]
        assert "refusal" not in seen[0][0], (server.stage, seen[0])
        assert all(one == seen[0] for one in seen[1:]), server.stage
        for n, reply in said.items():
            server.take(numbers[n], message(reply))
    server.close()
    assert server.total.weights[-1] == len(stores), "no noise covers how many there are: it must not say who rated"


def test_devices_ask_for_as_many_others_whatever_they_have_rated(stores: list[Path]) -> None:
    """A server that chooses how many it asks would see who refuses that many."""
    for path in stores:
        with Store.open(path) as store, store.changing():
            save_policy(store, Policy(any_task=True))
        assert "refusal" not in answer(asked(secure_config(channel__demonstration=False)), path).facts
    assert len({state_at(path).least_cohort for path in stores}) == 1


def layout_at(path: Path) -> RingLayout:
    return state_at(path).layout


def state_at(path: Path) -> ClientState:
    with Store.open(path) as store:
        return SecureClient.of_bytes(store.value("SELECT state FROM sums")).state
