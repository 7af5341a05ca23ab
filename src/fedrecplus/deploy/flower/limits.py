"""How much of the server a caller may take: request rates, bytes and sizes. Nothing here knows Flower."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field

LONGEST = 32 * 2**20
"""bytes of a request that carries an object; Flower cuts arrays into chunks of 5 MB"""
SHORT = 2**20
"""bytes of any other request of a node: names, numbers, the tree of a message's objects"""
REQUESTS_PER_SECOND, REQUESTS_AT_ONCE = 30.0, 300.0
"""of one key; a round takes some fifteen, and a look for work one"""
BYTES_PER_SECOND, BYTES_AT_ONCE = 2.0 * 2**20, 512.0 * 2**20
"""that one key may store: a silo's largest answers come in one burst, and nobody fills the disk"""
_MOST_CALLERS = 100_000


@dataclass
class Bucket:
    """A token bucket: ``rate`` a second, and ``burst`` at once."""

    rate: float
    burst: float
    level: float = field(init=False)
    at: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Full at first."""
        self.level = self.burst

    def take(self, amount: float, now: float | None = None) -> bool:
        """Take an amount out, if it is there."""
        now = time.monotonic() if now is None else now
        self.level = min(self.burst, self.level + self.rate * (now - self.at))
        self.at = now
        if amount > self.level:
            return False
        self.level -= amount
        return True


class Buckets:
    """A bucket for each caller, the least recent of too many forgotten: a full bucket is what they get back."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._of: OrderedDict[object, Bucket] = OrderedDict()

    def take(self, caller: object, amount: float = 1.0) -> bool:
        """Take an amount out of a caller's bucket, if it is there."""
        bucket = self._of.pop(caller, None) or Bucket(self._rate, self._burst)
        self._of[caller] = bucket
        if len(self._of) > _MOST_CALLERS:
            self._of.popitem(last=False)
        return bucket.take(amount)
