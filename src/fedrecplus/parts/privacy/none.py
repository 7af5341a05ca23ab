"""No noise: no claim of differential privacy."""

from __future__ import annotations

UNIT = None
"""of what the presence is hidden: nothing"""
