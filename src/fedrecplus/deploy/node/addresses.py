"""Where a server is, and whether that is this machine."""

from __future__ import annotations

import ipaddress

from fedrecplus.errors import UserError


def is_loopback(host: str) -> bool:
    """Whether a host is this machine and nobody else can reach it. A name is not, whatever it begins with.

    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "127.evil.example")]
    [True, True, True, False, False]
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which says nothing of where it leads
        return False


def split_address(address: str) -> tuple[str, int]:
    """``host:port`` in two.

    >>> split_address("shop.example:9092")
    ('shop.example', 9092)
    """
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise UserError(f"{address!r} is no address", "write HOST:PORT, such as fed.example.org:9092")
    return host.strip("[]"), int(port)
