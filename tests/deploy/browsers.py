"""Browsers as devices of a real server: a demonstration task, pages that join by links, and what they recorded."""

from __future__ import annotations

import base64
import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, change, preset
from fedrecplus.deploy.device.batching import rated_items
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.ring import sum_terms
from fedrecplus.deploy.wire.steps import as_told, next_state
from fedrecplus.device import Device
from fedrecplus.parts.channel import RingVector, decode, encode, zeros
from fedrecplus.parts.channel._ring import Encoding, from_bytes
from fedrecplus.protocol import Broadcast
from fedrecplus.rounds import ServerState, broadcast, client_round
from fedrecplus.web.page.bundle import write_bundle
from tests.deploy.cluster import Cluster
from tests.small_data import small_ratings
from tests.waiting import GIVE_UP

ITEMS = 40
PUBLIC = small_ratings(clients=80, items=ITEMS, seed=5)
"""of other people, whose counts the catalogue has"""
KEPT = """async ([prefix, table]) => {
  const done = (asked) => new Promise((resolve) => { asked.onsuccess = () => resolve(asked.result); });
  const names = (await indexedDB.databases()).map((each) => each.name);
  const database = await done(indexedDB.open(names.find((name) => name.startsWith(prefix))));
  const rows = await done(database.transaction(table).objectStore(table).getAll());
  database.close();
  return table === 'vectors' ? rows.map(({ round, content }) => [round, btoa(String.fromCharCode(...content))]) : rows;
}"""
"""what a browser keeps"""


Ratings = dict[str, float]


def vector_of(
    ratings: Ratings, message: Broadcast, encoding: Encoding, config: Config, catalogue: ItemCatalogue
) -> RingVector:
    """What a Python device adds to a sum."""
    items, values = rated_items(ratings, catalogue)
    U = config.model.start_users(0, np.array([0]), catalogue.public)[0]
    upload, _ = client_round(message, Device(0, items, values, catalogue.scale.standard_step, U, 0), config)
    return encode(upload, encoding)


def ratings_of_nodes(cluster: Cluster) -> list[Ratings]:
    """What each node of one person has rated."""
    scale, people = cluster.ratings.scale, list[Ratings]()
    for client in range(cluster.ratings.clients):
        items, values = cluster.ratings.of(client)
        names = cluster.ratings.item_ids[items].astype(str).tolist()
        people.append(dict(zip(names, scale.restore(values).tolist(), strict=True)))
    return people


def stepped(
    state: ServerState, people: list[Ratings], browsers: list[tuple[Ratings, Any]], config: Config,
    catalogue: ItemCatalogue,
) -> ServerState:  # fmt: skip
    """The server after a round, from what nodes add and what browsers recorded, which is near what Python would add."""
    message, everybody = broadcast(state, catalogue.public, np.zeros((0, 0))), len(people) + len(browsers)
    terms = sum_terms(config, catalogue.public, state.V.shape, state.round)
    encoding = terms.encoding(everybody, everybody)
    total = zeros(terms.layout)
    for ratings in people:
        total.add(vector_of(ratings, message, encoding, config, catalogue))
    for ratings, recorded in browsers:
        by_python = np.frombuffer(vector_of(ratings, message, encoding, config, catalogue).to_bytes(), "<u4")
        assert np.abs((recorded[state.round] - by_python).view("<i4")).max() <= 1, "units of the ring"
        assert recorded[state.round].any()
        total.add(from_bytes(recorded[state.round].tobytes(), terms.layout))
    return next_state(state, [as_told(decode(total, encoding), config)], catalogue.public, config)


def demonstration(rounds: int, **settings: Any) -> Config:
    """`fedrec+secure` with few factors, among however few people."""
    config = preset("fedrec+secure")
    small = {
        "engine": "reference", "precision": "float64", "model.factors": 4, "model.interaction_factors": 3,
        "server.rounds": rounds, "channel.bits": 32, "channel.cryptography": "computed", "channel.least_cohort": 3,
        "channel.demonstration": True, "statistics.source": "public",
        **{name.replace("__", "."): value for name, value in settings.items()},
    }  # fmt: skip
    for path, value in small.items():
        config = change(config, path, value)
    return config


def cluster_of(folder: Path, config: Config, nodes: int, wanted: int, **deployment: Any) -> Cluster:
    """A server with its page, Python nodes of a person each, and a run that waits for so many devices."""
    ratings, terms = small_ratings(clients=nodes, items=ITEMS, seed=7), {"deadline": GIVE_UP, **deployment}
    write_bundle(folder / "server" / "page")
    return Cluster(folder, ratings, config, nodes, ItemCatalogue.published(PUBLIC), wanted=wanted, **terms)


@contextmanager
def hosted(folder: Path) -> Iterator[str]:
    """The address of a web host of somebody else's: files as they are, with no policy but the page's own."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


class DevicePage:
    """A page that an invitation opened."""

    def __init__(self, browser: Any, server: ServerHome, name: str, elsewhere: str = "", **how: Any) -> None:
        """The server's own page, or the one that lies ``elsewhere``."""
        self.context = browser.new_context(ignore_https_errors=True, reduced_motion="reduce", **how)
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * GIVE_UP)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        link = server.invite(name, 1.0)
        self.page.goto(f"{elsewhere}#code={link.code}" if elsewhere else str(link))
        self.page.wait_for_selector("body[data-ready]")

    def show(self, view: str) -> None:
        """Go to a part of the page."""
        self.page.click(f".tabs a[data-view={view}]")

    def rate(self, ratings: dict[str, float]) -> None:
        """Rate items by clicking their stars."""
        for item, stars in ratings.items():
            self.page.fill("#search", f"Item {item}")
            group = self.page.locator("#results").get_by_role("group", name=f"Rate Item {item}", exact=True)
            group.get_by_role("button").nth(int(stars) - 1).click()
        self.page.fill("#search", "")
        self.page.wait_for_selector("body:not([data-saving])")

    def take_part(self) -> None:
        """Consent, also to a demonstration."""
        self.show("part")
        self.page.check("#agree")
        self.page.click("#take-part")
        self.page.wait_for_selector("#leave:visible")

    def vectors(self) -> dict[int, np.ndarray[Any, Any]]:
        """What this browser recorded of its own vectors: round → ring numbers."""
        recorded = self.kept("device", "vectors")
        return {int(number): np.frombuffer(base64.b64decode(content), "<u4") for number, content in recorded}

    def kept(self, name: str, table: str) -> list[Any]:
        """A table of this browser."""
        return list(self.page.evaluate(KEPT, [f"fedrecplus-{name}:", table]))
