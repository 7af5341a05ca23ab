"""The person's page as the service sends it: it computes, and sends nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.service.running import command
from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow


def test_the_page_computes_its_list_and_asks_for_nothing_more(browser: Any, run: Path, tmp_path: Path) -> None:
    with command(run, tmp_path / "errors") as service:
        tab = browser.new_page()
        tab.set_default_timeout(1000 * GIVE_UP)
        seen: list[str] = []
        tab.on("pageerror", lambda error: seen.append(f"error: {error}"))
        tab.on("console", lambda message: seen.append(f"{message.type}: {message.text}"))
        tab.goto(f"{service.address}/")
        tab.wait_for_selector("body[data-ready]")
        tab.evaluate("navigator.serviceWorker.ready.then(() => true)")
        tab.get_by_label("Search titles").first.fill("Item 7")
        tab.on("request", lambda request: seen.append(request.url))
        tab.get_by_role("button", name="Rate Item 7 5 of 5", exact=True).first.click()
        tab.get_by_text("Item 7: 5 of 5").wait_for()
        assert seen == []
        tab.close()
