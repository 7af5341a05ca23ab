"""No noise: no claim of differential privacy."""

from __future__ import annotations

from fedrecplus.parts.privacy import Mechanism
from fedrecplus.settings import Settings


class NoNoise(Mechanism[Settings]):
    """Nothing is claimed."""
