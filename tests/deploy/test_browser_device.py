"""Chromium as a device beside Python nodes: a secure sum of both, a closed tab, a server that lies, a small screen."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedrecplus.config import Config
from fedrecplus.deploy.device import Policy, Store, agree, answer, save_policy
from fedrecplus.deploy.server import CoordinatedRun, Deployment, Lease, begin
from fedrecplus.deploy.server.link import DatabaseLink
from fedrecplus.deploy.wire import ItemCatalogue
from fedrecplus.deploy.wire.packet import Packet
from fedrecplus.deploy.wire.request import encode_request
from fedrecplus.deploy.wire.ring import sum_terms
from fedrecplus.deploy.wire.stages import Stage, encode_stage
from fedrecplus.deploy.wire.steps import as_told, first_state, next_state
from fedrecplus.deploy.wire.task import Task
from fedrecplus.parts.channel import never_summed
from fedrecplus.parts.channel._ring import from_bytes
from fedrecplus.protocol import Sums
from fedrecplus.rounds import broadcast, start_server
from fedrecplus.web.page.bundle import write_bundle
from tests.deploy.browsers import (
    PUBLIC,
    DevicePage,
    Ratings,
    cluster_of,
    demonstration,
    hosted,
    ratings_of_nodes,
    stepped,
    vector_of,
)
from tests.deploy.cluster import Cluster
from tests.deploy.running import Running
from tests.page.test_accessible import RUN_AXE, npm  # noqa: F401  (npm is a fixture)
from tests.waiting import GIVE_UP, wait_until

pytestmark = pytest.mark.slow

CATALOGUE = ItemCatalogue.published(PUBLIC)
BY_BROWSERS: list[Ratings] = [
    {"0": 5, "3": 4, "7": 1, "12": 3},
    {"1": 2, "3": 5, "5": 5, "9": 4, "21": 1},
    {"2": 4, "4": 4, "8": 2},
]
NODES, ROUNDS = 9, 5


def online(cluster: Cluster) -> int:
    return sum(node["status"] == "online" for node in cluster.server.roster.everybody())


def test_browsers_and_nodes_make_one_secure_sum_bit_for_bit(browser: Any, tmp_path: Path) -> None:
    config = demonstration(ROUNDS)
    with cluster_of(tmp_path, config, NODES, NODES + len(BY_BROWSERS)) as cluster:
        pages = [DevicePage(browser, cluster.server, f"browser {place}") for place in range(len(BY_BROWSERS))]
        for page, ratings in zip(pages, BY_BROWSERS, strict=True):
            page.rate(ratings)
            page.take_part()
        cluster.start_nodes()
        cluster.run()
        recorded = [page.vectors() for page in pages]
        sent = [page.kept("device", "sent") for page in pages]
        complaints = [page.complaints for page in pages]
    lines = cluster.journal.lines()
    assert [(line["round"], len(line["nodes"])) for line in lines] == [(n + 1, 12) for n in range(ROUNDS)]
    assert [[line["stage"] for line in lines].count("mask") for lines in sent] == [ROUNDS] * len(pages)
    assert complaints == [[]] * len(pages)
    people, browsers = ratings_of_nodes(cluster), list(zip(BY_BROWSERS, recorded, strict=True))
    state = first_state(config, CATALOGUE.public)
    for _ in range(ROUNDS):
        state = stepped(state, people, browsers, config, CATALOGUE)
    np.testing.assert_array_equal(cluster.V, state.V)


def test_a_closed_tab_is_a_dropout_and_a_page_from_elsewhere_takes_part_and_leaves(
    browser: Any, tmp_path: Path
) -> None:
    config = demonstration(3, channel__bits=16)
    with (
        cluster_of(tmp_path, config, 4, 5, quorum=0.75, deadline=20.0) as cluster,
        hosted(tmp_path / "elsewhere") as elsewhere,
        hosted(tmp_path / "server" / "page") as stranger,
    ):
        write_bundle(tmp_path / "elsewhere", f"https://127.0.0.1:{cluster.server.port}")
        closed = DevicePage(browser, cluster.server, "closed")
        stays = DevicePage(browser, cluster.server, "stays", elsewhere)
        stays.page.evaluate("(where) => fetch(where).catch(() => undefined)", stranger)
        assert "Content Security Policy" in stays.complaints.pop(), "it may speak to its server alone"
        for page in (closed, stays):
            page.rate(BY_BROWSERS[0])
            page.take_part()
        cluster.start_nodes()
        wait_until(lambda: online(cluster) == 6)
        cluster.start_run()
        cluster.wait_for(lambda now: now.get("stage") in ("share", "mask") or now.get("round", 0) > 0)
        closed.context.close()
        cluster.wait_for(lambda now: now.get("round", 0) >= 2)
        stays.page.click("#leave")
        stays.page.wait_for_selector("#take-part:visible")
        cluster.finish()
        assert len(stays.kept("device", "facts")) > 0, "key and policy are still there"
        recorded = stays.vectors()[0].tobytes()
        number = next(str(node["number"]) for node in cluster.server.roster.everybody() if node["name"] == "closed")
    lines = cluster.journal.lines()
    assert [line["round"] for line in lines] == [1, 2, 3]
    assert number not in lines[1]["nodes"]
    assert min(units_apart(recorded, config, persons) for persons in (5, 6)) <= 1, "rounded by chance, up or down"
    assert all(len(line["nodes"]) >= 4 for line in lines)


def units_apart(recorded: bytes, config: Config, persons: int) -> int:
    """How far a browser's vector of the first round is from Python's."""
    state = start_server(config, CATALOGUE.public)
    terms = sum_terms(config, CATALOGUE.public, state.V.shape, 0)
    message, mine = broadcast(state, CATALOGUE.public, np.zeros((0, 0))), from_bytes(recorded, terms.layout)
    by_python = vector_of(BY_BROWSERS[0], message, terms.encoding(persons, persons), config, CATALOGUE)
    moves, weights = (mine.updates - by_python.updates).view("<i2"), (mine.weights - by_python.weights).view("<i4")
    return max(int(np.abs(moves).max()), int(np.abs(weights).max()))


NOT_AGREED, NEXT_ROUND = "a task that nobody agreed to", "the step that the task makes of the sum"
AGREE = """async (tasks) => {
  const done = (asked) => new Promise((resolve) => { asked.onsuccess = () => resolve(asked.result); });
  const names = (await indexedDB.databases()).map((each) => each.name);
  const database = await done(indexedDB.open(names.find((name) => name.startsWith('fedrecplus-device:'))));
  await done(database.transaction('facts', 'readwrite').objectStore('facts').put(tasks, 'tasks'));
  database.close();
}"""
"""agree to tasks in a browser"""


def hostile_requests() -> dict[str, Packet]:
    """What a server may ask that no device should do."""
    exact = ItemCatalogue.of(PUBLIC)

    def request(config: Config, catalogue: ItemCatalogue = CATALOGUE, **how: Any) -> Packet:
        state = start_server(config, catalogue.public)
        return encode_request("00c0ffee", state, config, catalogue, attach=True, **{"session": b"s" * 16, **how})

    def told(packet: Packet, old: str, new: str) -> Packet:
        text = str(packet.facts["config"])
        assert old in text
        return Packet({**packet.facts, "config": text.replace(old, new)}, packet.arrays)

    good, noise = request(demonstration(2)), {"privacy__rule": "distributed", "aggregation__rule": "uniform"}
    wrong = {"catalogue.popularity": good.arrays["catalogue.popularity"] + 1}
    nan = {"V": np.where(good.arrays["V"] > 0.05, np.nan, good.arrays["V"])}
    model = good.facts["model"]
    return {
        "another catalogue's digest": Packet({**good.facts, "catalogue": "0" * 32}, good.arrays),
        "a catalogue of another digest": Packet(good.facts, {**good.arrays, **wrong}),
        "exact figures of participants": request(demonstration(2), exact),
        "uploads in the clear": request(demonstration(2, channel__rule="clear", model__rule="mf"), session=b""),
        "a statistic in the clear": request(demonstration(2, channel__rule="clear"), session=b""),
        "no masks": told(good, 'cryptography = "computed"\n', ""),
        "no session": request(demonstration(2), session=b""),
        "ε over the budget": request(demonstration(2, **noise, privacy__epsilon=50.0)),
        "δ over the budget": request(demonstration(2, **noise, privacy__delta=0.05)),
        "an invented setting": told(good, "[server]", "[server]\ninvented = 1"),
        "an invented section": told(good, "[server]", "[invented]\nrounds = 1\n[server]"),
        "code from elsewhere": told(good, 'rule = "joint"', 'rule = "os.path"'),
        "a setting out of range": told(good, "least_cohort = 3", "least_cohort = 1"),
        "a ring of seven bits": told(good, "least_cohort = 3", "least_cohort = 3\nbits = 17"),
        "noise of a seed": told(good, "[model]", "seeded_noise = true\n[model]"),
        "pinned identities": request(demonstration(2), pinned=True),
        "V that is no number": Packet(good.facts, {**good.arrays, **nan}),
        "V of another shape": Packet(good.facts, {**good.arrays, "V": good.arrays["V"][:, :-1].copy()} | {
            name: good.arrays[name][:, :-1].copy() for name in ("last_step", "last_covariance")}),
        "another protocol": Packet({**good.facts, "version": "fedrecplus 9, protocol 99"}, good.arrays),
        "a stage of no sum": encode_stage(Stage(str(model), 0, b"x" * 16, "share"), b"nothing"),
        "a good one": good,
        "other settings for the same model": request(demonstration(2, model__item_prior=7.0)),
        NOT_AGREED: request(demonstration(3)),
        **tables_of_its_own_making(good),
        "a cohort of nobody": encode_stage(Stage(str(model), 0, b"s" * 16, "share"), b"nothing"),
    }  # fmt: skip


def tables_of_its_own_making(good: Packet) -> dict[str, Packet]:
    """The round after ``good``, and what a server may tell of it that isn't the step of the sum that it tells."""
    config, (people, columns) = demonstration(2), (12, 3)
    dice, first = np.random.default_rng(3), first_state(config, CATALOGUE.public)
    u = dice.normal(size=(people, columns))
    statistic = (u.T @ u)[np.triu_indices(columns)]
    weights = people * CATALOGUE.public.popularity / CATALOGUE.public.people
    rare = never_summed(CATALOGUE.public, config.channel.settings)
    total = dice.normal(size=first.V.shape) * ~rare[:, None]
    sums = as_told(Sums(total, weights, people, people, statistic=statistic), config)
    second = next_state(first, [sums], CATALOGUE.public, config)
    how = {"attach": True, "session": b"n" * 16, "sums": [sums]}
    told = encode_request(str(good.facts["model"]), second, config, CATALOGUE, **how)

    def other(name: str, change: Callable[[Any], Any], packet: Packet = told) -> Packet:
        return Packet(packet.facts, {**packet.arrays, name: change(packet.arrays[name])})

    assert "last_step" in told.arrays
    assert 0 < np.count_nonzero(rare) < len(rare)
    return {
        "another start": other("V", lambda V: V + 0.5, good),
        "another step before the first": other("last_step", lambda step: step + 0.5, good),
        "another table": other("V", lambda V: np.where(np.arange(len(V))[:, None] == 3, V + 0.01, V)),
        "another last step": other("last_step", lambda step: 0.5 * step),
        "no sum": Packet(told.facts, {name: one for name, one in told.arrays.items() if not name.startswith("sum.")}),
        "another sum": other("sum.total", lambda total: 3.0 * total),
        "a sum that nobody could make": other("sum.total", lambda total: 1e6 * total),
        "a sum that moves rows of few raters": other("sum.total", lambda total: total + rare[:, None]),
        "a sum of another table": other("sum.total", lambda total: total[:, :-1].copy()),
        "sums of two groups": Packet(
            told.facts,
            {name: np.concatenate([one] * (1 + name.startswith("sum."))) for name, one in told.arrays.items()},
        ),
        "sums of no group": Packet(
            told.facts, {name: one[:0] if name.startswith("sum.") else one for name, one in told.arrays.items()}
        ),
        "a sum that is no number": other("sum.weights", lambda weights: weights * np.nan),
        NEXT_ROUND: told,
    }


def test_a_hostile_server_is_refused_as_by_a_python_node(browser: Any, tmp_path: Path) -> None:
    write_bundle(tmp_path / "server" / "page")
    store = tmp_path / "node" / "ratings.db"
    Store.create(store, PUBLIC.scale)
    with Store.open(store) as opened, opened.changing():
        save_policy(opened, Policy(demonstration=True))
    hostile = hostile_requests()
    agreed = [packet.facts for name, packet in hostile.items() if "task" in packet.facts and name != NOT_AGREED]
    tasks = [Task.parse(str(facts["task"])) for facts in agreed]
    with Store.open(store) as opened:
        opened.rate(BY_BROWSERS[0])
        for task in tasks:
            agree(opened, task)
    with Running(tmp_path / "server") as server:
        terms = Deployment(3)
        run = begin(server.home.database, tmp_path / "run", demonstration(2), terms, CATALOGUE, {"dataset": "small"})
        page = DevicePage(browser, server.home, "one")
        page.rate(BY_BROWSERS[0])
        page.take_part()
        page.page.evaluate(AGREE, [task.digest for task in tasks])
        node, lease = server.home.roster.everybody()[0]["number"], Lease(server.home.database)
        words: dict[str, tuple[str, str]] = {}
        assert lease.take()
        with lease.kept():
            link = DatabaseLink(CoordinatedRun(lease, run.number))
            words = {
                name: (said(link, node, packet), refusal(answer(packet, store))) for name, packet in hostile.items()
            }
        ledger = page.kept("spent", "ledger")
        page.context.close()
    assert ledger == [], "nothing was paid for what was refused"
    assert {name: pair[0] for name, pair in words.items()} == {name: pair[1] for name, pair in words.items()}
    assert [name for name, (word, _) in words.items() if not word] == ["a good one", NEXT_ROUND]


def said(link: DatabaseLink, node: int, packet: Packet) -> str:
    """What a device answers through the server: its refusal, or nothing."""
    asked = link.ask({node: packet}, GIVE_UP)
    replies: list[Any] = []
    wait_until(lambda: replies.extend(link.replies(asked)) or replies)
    return refusal(replies[0][1])


def refusal(reply: Any) -> str:
    return str(reply.facts.get("refusal", ""))


def pressing(page: Any) -> Callable[..., None]:
    """Press keys, one after the other."""
    return lambda *names: [page.keyboard.press(name) for name in names] and None


def test_on_a_small_screen_by_keyboard_alone(browser: Any, tmp_path: Path, npm: Path) -> None:  # noqa: F811
    """From the link to a list of one's own in under a minute, then consent, sums with noise, and forget."""
    noised = {
        "privacy__rule": "distributed",
        "aggregation__rule": "uniform",
        "privacy__epsilon": 6.0,
        "privacy__devices": 4,
    }
    config = demonstration(2, **noised, statistics__source="secure-sum")
    with cluster_of(tmp_path, config, 3, 4) as cluster:
        started = time.monotonic()
        opened = DevicePage(browser, cluster.server, "phone", viewport={"width": 390, "height": 844})
        page, press = opened.page, pressing(opened.page)
        assert "code" not in page.url, "the invitation has left the address bar"
        for stars in (5, 4, 2):
            page.locator("#results .star[tabindex='0']").first.focus()
            press(str(stars))
        focus_by_tab(page, ".tabs a[data-view=list]")
        press("Enter")
        page.get_by_text("because of").first.wait_for()
        assert time.monotonic() - started < 60
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        opened.show("part")
        focus_by_tab(page, "#agree")
        press("Space")
        focus_by_tab(page, "#take-part")
        page.evaluate((npm / "node_modules" / "axe-core" / "axe.min.js").read_text())
        assert page.evaluate(RUN_AXE) == []
        press("Enter")
        page.wait_for_selector("#leave:visible")
        cluster.start_nodes()
        cluster.run()
        wait_until(lambda: page.locator(".device tbody tr").count() == 12)  # statistics and two rounds, four each
        assert sorted(opened.vectors()) == [-1, 0, 1]
        assert np.isfinite(cluster.V).all()
        assert "ε = 6 of 30" in page.inner_text("#part"), "all sums of a task are paid for together"
        opened.show("rate")
        page.click("#delete")
        page.click("#delete-sure")
        page.get_by_text("Everything is deleted").wait_for()
        left = page.evaluate("indexedDB.databases().then((all) => all.map((each) => each.name))")
        assert [name for name in left if "spent" not in name] == []
        page.reload()
        page.wait_for_selector("body[data-ready]")
        opened.show("part")
        page.get_by_text("ε = 6 of 30").wait_for()  # what was spent stays noted
        page.wait_for_selector("#take-part:disabled")  # and a link is good for one device


def focus_by_tab(page: Any, wanted: str) -> None:
    """Press Tab until it is there."""
    for _ in range(200):
        if page.evaluate(f"document.activeElement?.matches({wanted!r})"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{wanted} is not reached by Tab")
