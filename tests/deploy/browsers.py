"""Browsers as devices of a real server: a demonstration task, pages that join by links, and what they recorded."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, change, preset
from fedrecplus.deploy.operate.homes import ServerHome
from fedrecplus.deploy.wire import ItemCatalogue
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
