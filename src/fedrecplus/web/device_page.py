"""The person's page over their device's own store, on 127.0.0.1, at a link that nobody else on the machine learns."""

from __future__ import annotations

import html
import math
import secrets
import threading
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fedrecplus.deploy.device import Store, chosen_table, is_paused, mark_item, marks_of, pause, used_model
from fedrecplus.deploy.node import NodeHome
from fedrecplus.errors import UserError
from fedrecplus.files import write_private
from fedrecplus.training import SharedModel
from fedrecplus.web.browser import media_type
from fedrecplus.web.local_server import PageAnswer, Pages, PageServer
from fedrecplus.web.page.build import computable, files_of_model, page_files

LINK = "page.html"
"""a file that only its owner may read and that leads to the page: a browser's command line everybody can read"""
_LEADING = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={}">\n'
_TOKEN_BYTES = 32
_OF_MODEL = ("model.json", "model.bin", "items.json", "leaves.json", "leaves.bin")
_LINES = 200
"""messages that the page lists; totals are of all"""
_LONGEST = 1000
"""characters of an item's id"""
_MARKED = (b"<html ", b"<html data-device ")
"""by it the page knows that it is a device's"""


@dataclass
class DevicePages(Pages):
    """Everything that the page can ask for. Whether it may ask is decided before."""

    home: NodeHome
    person: int
    run: Path | None = None
    forgotten: Callable[[], None] = lambda: None
    """called after everything was deleted"""
    _model: tuple[tuple[str, str] | None, dict[str, bytes]] = field(default_factory=lambda: (None, {}))
    _making: threading.Lock = field(default_factory=threading.Lock)

    def shell(self, name: str) -> PageAnswer | None:
        """A file of the page itself: the same for everybody, and nothing of this device."""
        files = page_files()
        name = name or "index.html"
        if name not in files or name == "offline.js":  # what lies on a device needs no copy in the browser
            return None
        content = files[name]
        if name == "index.html":
            content = content.replace(*_MARKED, 1)
        return PageAnswer(HTTPStatus.OK, media_type(name), content)

    def read(self, name: str) -> PageAnswer | None:
        """The model's files, and what the store holds; None for any other name."""
        with Store.open(self.home.store) as store:
            if name in _OF_MODEL:
                return PageAnswer(HTTPStatus.OK, media_type(name), self._model_files(store)[name])
            if name == "api/saved":
                return PageAnswer.of({"ratings": self._ratings(store), "marks": marks_of(store, self.person)})
            if name == "api/sent":
                return PageAnswer.of(_sent(store))
        return None

    def change(self, name: str, body: Mapping[str, Any]) -> PageAnswer | None:
        """What the page's owner does; None for any other name."""
        if name == "api/forget":
            if body.get("sure") is not True:
                return PageAnswer.problem(HTTPStatus.BAD_REQUEST, "nothing is deleted", "send sure: true")
            self.home.forget()
            self.forgotten()
            return PageAnswer.of({"done": "forget"})
        act = {"api/rate": self._rate, "api/unrate": self._unrate, "api/mark": self._mark, "api/pause": self._pause}
        if name not in act:
            return None
        with Store.open(self.home.store) as store:
            act[name](store, body)
        return PageAnswer.of({"done": name.removeprefix("api/")})

    def _rate(self, store: Store, body: Mapping[str, Any]) -> None:
        rating = body.get("rating")
        if not isinstance(rating, int | float) or isinstance(rating, bool) or not math.isfinite(rating):
            raise UserError("rating is no number", f"give one on the scale {store.scale}")
        store.rate({_item(body): float(rating)}, self.person)

    def _unrate(self, store: Store, body: Mapping[str, Any]) -> None:
        store.unrate(_item(body), self.person)

    def _mark(self, store: Store, body: Mapping[str, Any]) -> None:
        mark = body.get("mark")
        if mark is not None and not isinstance(mark, str):
            raise UserError("mark is no text", "give seen or hidden, or null")
        mark_item(store, _item(body), mark, self.person)

    def _pause(self, store: Store, body: Mapping[str, Any]) -> None:
        if not isinstance(body.get("paused"), bool):
            raise UserError("paused is neither true nor false", "give one of them")
        pause(store, body["paused"])

    def _ratings(self, store: Store) -> list[tuple[str, float]]:
        """Item and rating, in the order in which they were given."""
        query = "SELECT item, rating FROM ratings WHERE person = ? ORDER BY at, rowid"
        return store.connection.execute(query, (self.person,)).fetchall()

    def _model_files(self, store: Store) -> dict[str, bytes]:
        """Made once for each model that this device sees: all files are of the same one."""
        used = chosen_table(store) if store.models() and self.run is None else None  # the newest, or the owner's choice
        key = (used.model, used.at) if used else (str(self.run), "")
        with self._making:
            if self._model[0] != key:
                allowed = store.allowed_rules
                model = computable(SharedModel.read(self.run, allowed)) if self.run else used_model(store)
                self._model = key, files_of_model(model, {"dataset": key[0], "when": key[1]})
            return self._model[1]


def _item(body: Mapping[str, Any]) -> str:
    item = body.get("item")
    if not isinstance(item, str) or not 0 < len(item) <= _LONGEST:
        raise UserError("item is no id", "give an item's id as text")
    return item


def _sent(store: Store) -> dict[str, Any]:
    """What left so far, newest first, and whether the device pauses."""
    lines = store.sent()
    named = ("at", "stage", "round", "rows", "bytes", "again")
    return {
        "paused": is_paused(store),
        "messages": len(lines),
        "bytes": sum(line["bytes"] for line in lines),
        "sent": [{name: line[name] for name in named} for line in reversed(lines[-_LINES:])],
    }


def serve_page(
    home: NodeHome, person: int, *, port: int, run: Path | None, show: bool, say: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C, or until everything was deleted on the page."""
    token, pages = secrets.token_urlsafe(_TOKEN_BYTES), DevicePages(home, person, run)
    server = PageServer(pages, token, port)
    pages.forgotten = lambda: threading.Timer(0.5, server.shutdown).start()
    link, file = f"{server.address}#token={token}", home.path / LINK
    try:
        write_private(file, _LEADING.format(html.escape(link, quote=True)).encode())
        say(f"{link} (Ctrl-C ends it; who has the link has your ratings)")
        if show:
            webbrowser.open(file.absolute().as_uri())
        server.serve_forever()
        say(f"everything in {home.path} is deleted")
    except KeyboardInterrupt:
        say("the page is closed")
    finally:
        file.unlink(missing_ok=True)
        server.server_close()
