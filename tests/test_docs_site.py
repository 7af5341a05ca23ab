"""The documentation as a site: diagrams are drawn, and nobody else is asked for anything."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import GIVE_UP

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    site = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(site)]
    subprocess.run(build, cwd=ROOT, check=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, timeout=GIVE_UP)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Silent, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("page", ["", "architecture/"])
def test_diagrams_are_drawn_without_a_third_party(browser: Any, address: str, page: str) -> None:
    shown, asked = browser.new_page(), []
    shown.on("request", lambda request: asked.append(request.url))
    shown.goto(address + page)
    # the theme draws into a closed shadow root: the place has a height, and the text of the diagram is gone
    shown.wait_for_function("document.querySelector('div.mermaid')?.offsetHeight > 50", timeout=1000 * GIVE_UP)
    assert shown.locator("pre.mermaid").count() == 0
    assert any(url.endswith("mermaid.tiny.js") for url in asked)
    assert [url for url in asked if not url.startswith((address, "data:"))] == []
    shown.close()
