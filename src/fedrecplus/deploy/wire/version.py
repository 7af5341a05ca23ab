"""Which sides understand each other."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields
from typing import Any

from fedrecplus import __version__
from fedrecplus.config import Config, to_dict
from fedrecplus.protocol import ErrorReport, PublicItems, Upload

PROTOCOL = 2
"""raised whenever a message changes its meaning; sides with different numbers refuse each other by name"""


def layout() -> str:
    """A hash over the names of all that travels, settings too: a field that one side lacks is another protocol."""
    carried = {kind.__name__: [field.name for field in fields(kind)] for kind in (PublicItems, Upload, ErrorReport)}
    return hashlib.sha256(json.dumps([carried, _names(to_dict(Config()))]).encode()).hexdigest()[:6]


def _names(settings: dict[str, Any]) -> list[Any]:
    return [[name, _names(value)] if isinstance(value, dict) else name for name, value in sorted(settings.items())]


_SPOKEN = f"{PROTOCOL}-{layout()}"
VERSION = f"fedrecplus {__version__}, protocol {_SPOKEN}"


def mismatch(theirs: object, who: str) -> str:
    """What is wrong with the other side's version, in words; empty if nothing is.

    >>> mismatch(VERSION, "the server")
    ''
    >>> mismatch("fedrecplus 9.9, protocol 7", "the server")  # doctest: +ELLIPSIS
    'the server runs fedrecplus 9.9, protocol 7; this side runs fedrecplus ..., protocol ...: upgrade the older one'
    """
    if str(theirs).rpartition("protocol ")[2] == _SPOKEN:
        return ""
    return f"{who} runs {str(theirs)[:80]}; this side runs {VERSION}: upgrade the older one"
