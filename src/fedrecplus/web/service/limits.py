"""What one peer, and all of them together, may ask of the service."""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """Bounds that hold whatever is sent."""

    body: int = 256 * 1024
    """bytes of a request's body at most"""
    rate: float = 50.0
    """requests a second that one peer may make for long; 0 for no bound"""
    burst: float = 100.0
    """requests that it may make at once"""
    peers: int = 10_000
    """peers that are remembered; the one that asked longest ago goes first"""
    connections: int = 200
    """open at a time, of all peers"""
    header_seconds: float = 10.0
    """from the first byte of a request, or from connecting, to the end of its header"""
    request_seconds: float = 30.0
    """from the end of the header to the last byte of the answer"""
    idle_seconds: float = 15.0
    """that a connection may stay open between two requests"""
    ratings: int = 5_000
    """in one request"""
    longest_list: int = 1_000


@dataclass
class RateLimiter:
    """A token bucket for each peer, in bounded memory."""

    rate: float
    burst: float
    peers: int
    clock: Callable[[], float] = time.monotonic
    buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)
    """peer → tokens, and when they were counted"""

    def wait(self, address: str, cost: float = 1.0) -> float:
        """Take tokens from a peer's bucket: 0.0, or seconds until there will be enough of them, and none are taken."""
        if self.rate <= 0:
            return 0.0
        peer, now = peer_of(address), self.clock()
        tokens, counted = self.buckets.pop(peer, (self.burst, now))
        tokens = min(self.burst, tokens + self.rate * (now - counted))
        cost = min(cost, self.burst)
        self.buckets[peer] = (tokens - cost if tokens >= cost else tokens, now)
        if len(self.buckets) > self.peers:
            self.buckets.popitem(last=False)
        return max(0.0, (cost - tokens) / self.rate)


def peer_of(address: str) -> str:
    """Who an address counts as: itself, and in IPv6 its network of 64 bits, all of which one subscriber has.

    >>> peer_of("127.0.0.1"), peer_of("2001:db8:1:2:3:4:5:6"), peer_of("a socket")
    ('127.0.0.1', '2001:db8:1:2::', 'a socket')
    """
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv6Address):
        if known.ipv4_mapped is not None:
            return str(known.ipv4_mapped)
        return str(ipaddress.IPv6Address(int(known) >> 64 << 64))
    return str(known)
