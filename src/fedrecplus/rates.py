"""How often somebody may ask: a token bucket for each caller, in bounded memory, and who an address counts as."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class TokenBuckets:
    """A token bucket for each caller: ``rate`` a second, and ``burst`` at once.

    >>> now = 0.0
    >>> buckets = TokenBuckets(2.0, 3.0, clock=lambda: now)
    >>> [buckets.take("anna") for _ in range(4)], buckets.take("ben"), buckets.wait("anna")
    ([True, True, True, False], True, 0.5)
    """

    rate: float | None
    """None: no bound"""
    burst: float
    callers: int = 100_000
    """that are remembered; the one who asked longest ago is forgotten, and has a full bucket again"""
    clock: Callable[[], float] = time.monotonic
    levels: OrderedDict[object, tuple[float, float]] = field(default_factory=OrderedDict)
    """caller → tokens, and when they were counted"""

    def wait(self, caller: object, amount: float = 1.0) -> float:
        """Take tokens from a caller's bucket: 0.0, or seconds until there will be enough of them, and none are taken.

        Whoever asks for more than a bucket holds gets it from a full one.
        """
        if self.rate is None:
            return 0.0
        now = self.clock()
        tokens, counted = self.levels.pop(caller, (self.burst, now))
        tokens = min(self.burst, tokens + self.rate * (now - counted))
        amount = min(amount, self.burst)
        self.levels[caller] = (tokens - amount if tokens >= amount else tokens, now)
        if len(self.levels) > self.callers:
            self.levels.popitem(last=False)
        if tokens >= amount:
            return 0.0
        return (amount - tokens) / self.rate if self.rate else math.inf

    def take(self, caller: object, amount: float = 1.0) -> bool:
        """Take tokens, if they are there."""
        return self.wait(caller, amount) == 0.0


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
