"""What servers here tell browsers, and which requests of browsers they let in."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
"""scripts and data of this server alone: an injected title can't load or send anything"""
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
    ".json": "application/json", ".svg": "image/svg+xml", ".webmanifest": "application/manifest+json",
}  # fmt: skip
OWN_RESOURCES = {"Cross-Origin-Resource-Policy": "same-origin"}


def media_type(name: str) -> str:
    """What a file of the page is called towards browsers, which are told not to guess.

    >>> media_type("page.webmanifest"), media_type("model.bin")
    ('application/manifest+json', 'application/octet-stream')
    """
    return _MEDIA_TYPES.get(name[name.rfind(".") :], "application/octet-stream")


def host_of(header: str) -> str | None:
    """The name in a ``Host`` header, without its port; None where it is none.

    >>> host_of("LocalHost:8000"), host_of("[::1]:80"), host_of("a b"), host_of("")
    ('localhost', '::1', None, None)
    """
    try:
        split = urlsplit(f"//{header}")
        _ = split.port
    except ValueError:
        return None
    plain = not (split.path or split.query or split.fragment or split.username or " " in header)
    return split.hostname if plain and split.hostname else None


def may_be_named(header: str, names: Collection[str]) -> bool:
    """Whether a request is for this server by a name of its own.

    A page elsewhere can let its own name point to this machine (DNS rebinding): then its requests have that name.
    """
    return host_of(header) in {name.lower() for name in names}


def is_own_origin(origin: str, host: str) -> bool:
    """Whether an ``Origin`` header is of a page that this server sent: the same name and port.

    >>> is_own_origin("http://127.0.0.1:8000", "127.0.0.1:8000"), is_own_origin("http://127.0.0.1:9", "127.0.0.1:8000")
    (True, False)
    >>> is_own_origin("null", "127.0.0.1:8000")
    False
    """
    scheme, _, rest = origin.partition("://")
    return scheme in ("http", "https") and rest.lower() == host.lower()


def is_everywhere(host: str) -> bool:
    """Whether an address to listen on means all of the machine's.

    >>> is_everywhere("0.0.0.0"), is_everywhere("::"), is_everywhere("example.org")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
