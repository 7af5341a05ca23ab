"""Which sides understand each other."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields

from fedrecplus import __version__
from fedrecplus.config import Choice, Config, to_tables
from fedrecplus.parts import KINDS, built_in
from fedrecplus.protocol import ErrorReport, PublicItems, Upload
from fedrecplus.settings import settings_of

PROTOCOL = 3
"""raised whenever a message changes its meaning; sides with different numbers refuse each other by name"""


def layout() -> str:
    """A hash over the names of all that travels, settings too: a field that one side lacks is another protocol."""
    carried = [[field.name for field in fields(kind)] for kind in (PublicItems, Upload, ErrorReport)]
    options = [
        [kind.name, rule, [setting.name for setting in settings_of(Choice(kind.name, rule).part.settings_type)]]
        for kind in KINDS.values()
        for rule in built_in(kind)
    ]
    others = [[name, sorted(table)] for name, table in to_tables(Config()).items() if isinstance(table, dict)]
    return hashlib.sha256(json.dumps([carried, options, others]).encode()).hexdigest()[:6]


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
