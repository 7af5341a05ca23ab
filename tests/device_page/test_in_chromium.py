"""The device's page in a real browser: rating there is rating on the device, and the switch stops rounds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fedrecplus.deploy.device import Store, is_paused, marks_of
from fedrecplus.deploy.node import NodeHome
from tests.device_page.took_part import ME, SECRET, OpenedPage, opened, took_part
from tests.page.test_accessible import RUN_AXE, npm  # noqa: F401  (npm is a fixture)

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> NodeHome:
    return took_part(tmp_path)[0]


def link(page: OpenedPage) -> str:
    return f"http://127.0.0.1:{page.server.port}/#token={SECRET}"


def visited(browser, address: str, width: int = 1200):
    """The page after it has come to rest, and every request and complaint."""
    tab = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion="reduce").new_page()
    tab.set_default_timeout(30_000)
    seen: list[str] = []
    tab.on("request", lambda request: seen.append(request.url))
    tab.on("pageerror", lambda error: seen.append(f"error: {error}"))
    tab.on("console", lambda message: seen.append(f"{message.type}: {message.text}"))
    tab.goto(address)
    tab.wait_for_selector("body[data-ready], .failed")
    return tab, seen


def holds(home: NodeHome, what: Callable[[Store], bool]) -> None:
    """Wait until the store says so."""
    until = time.monotonic() + 60
    while True:
        with Store.open(home.store) as store:
            if what(store):
                return
        assert time.monotonic() < until
        time.sleep(0.05)


def test_rating_pausing_and_deleting_on_the_page(browser, home: NodeHome) -> None:
    with opened(home) as page, Store.open(home.store) as store:
        rated = store.ratings()[ME]
        free = next(str(item) for item in range(40) if str(item) not in rated)
        tab, seen = visited(browser, link(page))
        assert SECRET not in tab.url, "the token has left the address bar"
        assert SECRET not in tab.evaluate("document.documentElement.outerHTML")

        tab.get_by_label("Search titles").first.fill(f"Item {free}")
        tab.get_by_role("button", name=f"Rate Item {free} 5 of 5", exact=True).first.click()
        holds(home, lambda now: now.ratings()[ME].get(free) == 5.0)

        assert "2 messages" in tab.inner_text(".device")
        assert tab.locator(".device tbody tr").count() == 2
        tab.locator("#pause").click()
        holds(home, is_paused)
        tab.wait_for_selector("#pause[aria-checked=true]")
        tab.reload()
        tab.wait_for_selector("#pause[aria-checked=true]")
        assert tab.evaluate("navigator.serviceWorker.getRegistrations().then(found => found.length)") == 0

        origin = f"http://127.0.0.1:{page.server.port}/"
        assert [each for each in seen if not each.startswith(origin)] == [], "no complaint, no other server"

        tab.locator("#delete").click()
        tab.locator("#delete-sure").click()
        tab.get_by_text("Everything is deleted, and this page has ended.").wait_for()
        assert not home.store.exists()


def test_seen_is_noted_on_the_device(browser, home: NodeHome) -> None:
    with opened(home) as page:
        tab, _ = visited(browser, link(page))
        tab.get_by_role("button", name="Seen: take").first.click()
        holds(home, lambda now: list(marks_of(now).values()) == ["seen"])


def test_without_the_link_the_page_shows_nothing(browser, home: NodeHome) -> None:
    with opened(home) as page:
        tab, _ = visited(browser, link(page).partition("#")[0])
        assert "needs its link" in tab.inner_text(".failed")


def test_a_page_of_another_port_gets_nothing(browser, home: NodeHome, tmp_path: Path) -> None:
    """With the token and all: the browser doesn't send the header, or doesn't give the answer."""
    with opened(home) as page, opened(took_part(tmp_path / "other")[0]) as other:
        tab, _ = visited(browser, link(other))
        ask = """([address, token]) => Promise.all([
            fetch(address + "api/saved", {headers: {"X-Device-Token": token}}).then(() => "let in", () => "kept out"),
            fetch(address + "api/pause", {method: "POST", mode: "no-cors", body: '{"paused": true}'})
              .then(answer => answer.type, () => "kept out"),
        ])"""
        told = tab.evaluate(ask, [f"http://127.0.0.1:{page.server.port}/", SECRET])
        assert told[0] == "kept out"
        with Store.open(home.store) as store:
            assert not is_paused(store)


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_on_the_device_s_page(browser, home: NodeHome, npm: Path, width: int) -> None:  # noqa: F811
    axe = (npm / "node_modules" / "axe-core" / "axe.min.js").read_text()
    with opened(home) as page:
        tab, _ = visited(browser, link(page), width)
        tab.wait_for_selector(".device tbody tr")
        tab.evaluate(axe)
        assert tab.evaluate(RUN_AXE) == []
        needed, there = tab.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert needed <= there
