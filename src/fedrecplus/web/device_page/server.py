"""The device's page until its owner ends it, at a link that nobody else on the machine learns."""

from __future__ import annotations

import html
import os
import secrets
import signal
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path

from fedrecplus.deploy.node import NodeHome
from fedrecplus.web.device_page.pages import DevicePages
from fedrecplus.web.local_server import PageServer

LINK = "page.html"
"""a file that only its owner may read and that leads to the page: a browser's command line everybody can read"""
_TOKEN_BYTES = 32


def serve_page(
    home: NodeHome, person: int, *, port: int, run: Path | None, show: bool, say: Callable[[str], None]
) -> None:
    """Serve until Ctrl-C, a termination signal, or until everything was deleted on the page."""
    token, pages = secrets.token_urlsafe(_TOKEN_BYTES), DevicePages(home, person, run)
    server = PageServer(pages, token, port)
    pages.forgotten = lambda: threading.Timer(0.5, server.shutdown).start()
    link, file = f"{server.address}#token={token}", home.path / LINK
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        _write_link(file, link)
        say(f"{link} (Ctrl-C ends it; who has the link has your ratings)")
        if show:
            webbrowser.open(file.absolute().as_uri())
        server.serve_forever()
        say(f"everything in {home.path} is deleted")
    except KeyboardInterrupt:
        say("the page is closed")
    finally:
        signal.signal(signal.SIGTERM, before)
        file.unlink(missing_ok=True)
        server.server_close()


def _write_link(file: Path, link: str) -> None:
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        place = html.escape(link, quote=True)
        opened.write(f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={place}">\n')
