"""A cache of one's own for every test, files written in a line, and a GroupLens that runs here."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from local_grouplens import NOBODY, GroupLens, Handler

from fedrecplus.data import Ratings, load


@pytest.fixture(autouse=True)
def own_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FEDRECPLUS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("FEDRECPLUS_GROUPLENS_URL", NOBODY)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("FEDRECPLUS_DATA", raising=False)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write a file, get its path."""

    def _write(contents: str | bytes, name: str = "ratings.csv") -> str:
        path = tmp_path / name
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return str(path)

    return _write


@pytest.fixture
def grouplens(monkeypatch: pytest.MonkeyPatch, own_folders: None) -> Iterator[GroupLens]:
    lens = GroupLens()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, lens))
    lens.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("FEDRECPLUS_GROUPLENS_URL", lens.url)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield lens
    lens.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="session")
def ml_100k(tmp_path_factory: pytest.TempPathFactory) -> Ratings:
    """The real MovieLens-100K, fetched once, as where GroupLens can't be reached."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FEDRECPLUS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("FEDRECPLUS_GROUPLENS_URL", NOBODY)
        patch.delenv("FEDRECPLUS_DATA", raising=False)
        load("ml-100k")
        return load("ml-100k")
