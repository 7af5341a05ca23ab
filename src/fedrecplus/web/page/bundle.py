"""The page on which a browser is a device: for a server to serve, or for another origin, with hashes to publish.

Who sends the page says what it does: a page from the server itself protects nobody from that server. From another
origin, with published hashes, it is the same for everybody, and its policy lets it speak to that one server alone.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from urllib.parse import urlsplit

from fedrecplus.errors import UserError
from fedrecplus.files import check_writable, write_bytes
from fedrecplus.web.page.build import OFFLINE, built_files

SUMS = "SHA256SUMS"
"""one line per file, as ``sha256sum --check`` reads them; its own hash is the one to publish"""
_OFFLINE_WORKER = "worker-src 'self'; "


def bundle_files(server: str = "") -> dict[str, bytes]:
    """The files of a server's page; ``server`` is its origin where the page comes from another one."""
    contents = {name: content for name, content in built_files().items() if name != OFFLINE}
    page = contents["index.html"].decode()
    page = page.replace("<html ", f'<html data-server="{_origin(server)}" ', 1).replace(_OFFLINE_WORKER, "")
    if server:
        page = page.replace("connect-src 'self'", f"connect-src 'self' {_origin(server)}")
    contents["index.html"] = page.encode()
    sums = (f"{hashlib.sha256(contents[name]).hexdigest()}  {name}\n" for name in sorted(contents))
    return {**contents, SUMS: "".join(sums).encode()}


def write_bundle(folder: Path, server: str = "") -> str:
    """Write them; returns the hash of ``SHA256SUMS``."""
    contents = bundle_files(server)
    check_writable(folder)
    for name, content in contents.items():
        write_bytes(folder / name, content)
    return hashlib.sha256(contents[SUMS]).hexdigest()


def _origin(server: str) -> str:
    """An origin as policies write it: nothing in it ends an attribute or a directive.

    >>> _origin("https://fed.example.org:9092/")
    'https://fed.example.org:9092'
    """
    parts = urlsplit(server)
    plain = re.fullmatch(r"[A-Za-z0-9.:\[\]-]+", parts.netloc)
    if server and (parts.scheme not in ("https", "http") or not plain or parts.path.strip("/") or parts.query):
        raise UserError(f"{server!r} is no server", "give its origin, such as https://fed.example.org:9092")
    return f"{parts.scheme}://{parts.netloc}" if server else ""
