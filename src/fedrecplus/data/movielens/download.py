"""Archives from GroupLens, checked against the md5 that is published beside them."""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import urllib.error
import urllib.request
from pathlib import Path

from fedrecplus.data.progress import Progress
from fedrecplus.errors import UserError

_GROUPLENS = "https://files.grouplens.org/datasets/movielens"
_CONNECT_SECONDS, _STALL_SECONDS = 5.0, 60.0
_PIECE = 1 << 18


class Unreachable(Exception):
    """A source that doesn't answer: the next one may."""


def grouplens_url(name: str) -> str:
    """The address of a set's archive; ``FEDRECPLUS_GROUPLENS_URL`` names a mirror."""
    base = os.environ.get("FEDRECPLUS_GROUPLENS_URL") or _GROUPLENS
    return f"{base.rstrip('/')}/{name}.zip"


def download(name: str, folder: Path, progress: Progress | None) -> Path:
    """Fetch an archive into a folder. Raises Unreachable, or UserError if what came is not what was published."""
    url = grouplens_url(name)
    expected = published_md5(_small_file(f"{url}.md5"), url)
    path = folder / f"{name}.zip"
    received = _fetch(url, path, progress)
    if received != expected:
        raise UserError(
            f"{url} arrived with md5 {received}, published is {expected}: nothing was kept",
            "try again; if it happens again, the server or something on the way changes the file",
        )
    return path


def published_md5(text: str, url: str) -> str:
    """The sum in an .md5 file, as BSD's or GNU's md5 write it.

    >>> published_md5("MD5 (ml-1m.zip) = c4d9eecfca2ab87c1945afe126590906", "")
    'c4d9eecfca2ab87c1945afe126590906'
    >>> published_md5("c4d9eecfca2ab87c1945afe126590906  ml-1m.zip", "")
    'c4d9eecfca2ab87c1945afe126590906'
    """
    found = re.search(r"\b[0-9a-fA-F]{32}\b", text)
    if found is None:
        raise Unreachable(f"{url}.md5 holds no md5")
    return found[0].lower()


def _small_file(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=_CONNECT_SECONDS) as answer:
            text: str = answer.read(4096).decode("ascii", errors="replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unreachable(f"{url}: {_reason(error)}") from None
    return text


def _fetch(url: str, path: Path, progress: Progress | None) -> str:
    """Write what is at an address to a file; its md5."""
    md5, done = hashlib.md5(usedforsecurity=False), 0
    try:
        with urllib.request.urlopen(url, timeout=_STALL_SECONDS) as answer, path.open("wb") as file:
            total = int(answer.headers.get("Content-Length") or 0)
            while piece := answer.read(_PIECE):
                file.write(piece)
                md5.update(piece)
                done += len(piece)
                if progress:
                    progress(path.name, done, total)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unreachable(f"{url}: {_reason(error)}") from None
    if done < total:
        raise Unreachable(f"{url}: the connection broke off after {done:,} of {total:,} bytes")
    return md5.hexdigest()


def _reason(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"answers {error.code} {error.reason}"
    return str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__
