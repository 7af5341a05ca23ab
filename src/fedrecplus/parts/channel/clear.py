"""Uploads as they are: the server sees each of them."""

from __future__ import annotations

from fedrecplus.parts.channel import Channel
from fedrecplus.settings import Settings


class Clear(Channel[Settings]):
    """Nothing is done to uploads."""
