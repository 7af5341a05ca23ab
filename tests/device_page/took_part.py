"""A device that took part in rounds, and its page."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from fedrecplus.deploy.node import NodeHome
from fedrecplus.web.device_page import DevicePages
from fedrecplus.web.local_server import TOKEN, PageServer
from tests.deploy.in_process import InProcessLink, prepared, serve, small_config
from tests.small_data import small_ratings
from tests.waiting import GIVE_UP

SECRET = "a-token-of-the-test-itself"
ME = 0


def took_part(folder: Path) -> list[NodeHome]:
    """Three nodes after two rounds."""
    homes = prepared(folder, small_ratings(), small_config(engine="reference", rounds=2), nodes=3)
    serve(InProcessLink(homes), folder / "run")
    return homes


@dataclass
class OpenedPage:
    """A page that is served, and somebody who has its link."""

    server: PageServer
    thread: threading.Thread

    def ask(self, name: str, change: Any = None, *, token: str | None = SECRET, **headers: str) -> httpx.Response:
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        if token is not None:
            sent.append((TOKEN.encode(), token.encode("latin-1")))
        address, how = f"http://127.0.0.1:{self.server.port}/{name}", {"timeout": GIVE_UP, "trust_env": False}
        if change is None:
            return httpx.get(address, headers=sent, verify=False, **how)
        return httpx.post(address, json=change, headers=sent, verify=False, **how)


@contextlib.contextmanager
def opened(home: NodeHome, **more: Any) -> Iterator[OpenedPage]:
    """The page of a device's first person."""
    pages = DevicePages(home, ME)
    server = PageServer(pages, SECRET, **more)
    pages.forgotten = lambda: threading.Timer(0.1, server.shutdown).start()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield OpenedPage(server, thread)
    finally:
        server.shutdown()
        thread.join(GIVE_UP)
        server.server_close()
