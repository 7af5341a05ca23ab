"""A site in Debian's chromium: started, opened, watched. The page's policy forbids eval, so Python does the waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fedrecplus.web import FolderPages, PageServer
from tests.waiting import GIVE_UP

RATED = """Array.from(document.querySelectorAll('.mine .row'), (row) => {
  const stars = Array.from(row.querySelectorAll('.star'));
  return [row.querySelector('.title').textContent, stars.findIndex((star) => star.ariaPressed === 'true') + 1];
})"""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on 127.0.0.1."""
    server = PageServer(FolderPages(folder), "")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.address
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Opened:
    """A page with its complaints and its requests."""

    def __init__(self, browser: Any, address: str, before: str = "", **how: Any) -> None:
        self.context = browser.new_context(**how)
        if before:
            self.context.add_init_script(before)
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * GIVE_UP)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(address)
        self.ready()

    def ready(self) -> None:
        """Until all is shown and computed."""
        self.page.wait_for_selector("body[data-ready][data-warm]")

    def until(self, holds: Callable[[], Any], what: str) -> Any:
        """Wait for something to hold."""
        end = time.monotonic() + GIVE_UP
        while not (found := holds()):
            assert time.monotonic() < end, f"never: {what}"
            self.page.wait_for_timeout(30)
        return found

    def installed(self) -> None:
        """Until the service worker has the whole site."""
        self.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        self.until(lambda: self.page.evaluate("navigator.serviceWorker.controller !== null"), "a controlling worker")

    def search(self, words: str) -> None:
        """Type into the search box."""
        self.page.fill("#search", words)

    def rate(self, title: str, stars: int) -> None:
        """Search a title and click its star."""
        self.search(title)
        group = self.page.locator("#results").get_by_role("group", name=f"Rate {title}", exact=True)
        group.get_by_role("button").nth(stars - 1).click()
        self.search("")

    def rated(self) -> dict[str, int]:
        """Own ratings as they are shown."""
        return dict(self.page.evaluate(RATED))

    def listed(self) -> list[str]:
        """Titles of the list."""
        return list(
            self.page.evaluate("Array.from(document.querySelectorAll('.list .title'), (one) => one.textContent)")
        )

    def saved(self) -> None:
        """Until all that was rated is on the disk."""
        self.page.wait_for_selector("body:not([data-saving])")

    def delete_everything(self) -> None:
        """By the button, and the question that follows it."""
        self.page.click("#delete")
        self.page.click("#delete-sure")
        self.until(lambda: not self.rated(), "everything deleted")

    def close(self) -> None:
        """Close it."""
        self.context.close()
