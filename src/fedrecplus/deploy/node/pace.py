"""How long a node waits between looks for work: short in a round, ever longer when nothing comes, never all at once."""

from __future__ import annotations

import random
from dataclasses import dataclass

_GROWTH, _JITTER = 1.5, 0.2
_PER_LATENCY = 20.0
"""a look that took so long is answered by a server that is busy: at most a twentieth of the time is spent asking"""


@dataclass
class Pace:
    """Pauses in seconds. Devices that began together drift apart, since each pause is longer or shorter by chance."""

    shortest: float = 0.2
    longest: float = 30.0
    _next: float = 0.0

    def after_nothing(self, latency: float, waited: float) -> float:
        """The pause after a look in vain that took ``latency``.

        A server that held its answer for as long as it was asked to, ``waited``, has looked for us meanwhile, and is
        asked again at once.
        """
        self._next = min(max(_GROWTH * self._next, self.shortest), self.longest)
        if 0.0 < 0.95 * waited <= latency:
            self._next = min(max(self._next, waited), self.longest)
            return self._shaken(self.shortest)
        return self._shaken(max(self._next, min(_PER_LATENCY * latency, self.longest)))

    def after_failure(self) -> float:
        """The pause after a server didn't answer."""
        self._next = min(max(_GROWTH * self._next, 1.0), max(self.longest, 1.0))
        return self._shaken(self._next)

    @staticmethod
    def _shaken(seconds: float) -> float:
        return seconds * random.uniform(1.0 - _JITTER, 1.0 + _JITTER)
