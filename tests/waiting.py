"""How long tests wait for what must come."""

from __future__ import annotations

GIVE_UP = 600.0
"""seconds after which a test calls it a failure; nothing that works depends on it, however busy the machine is"""
