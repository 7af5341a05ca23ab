"""Which sides understand each other."""

from __future__ import annotations

from fedrecplus import __version__

PROTOCOL = 1
"""raised whenever a message changes its meaning; sides with different numbers refuse each other by name"""

VERSION = f"fedrecplus {__version__}, protocol {PROTOCOL}"


def mismatch(theirs: object, who: str) -> str:
    """What is wrong with the other side's version, in words; empty if nothing is.

    >>> mismatch(VERSION, "the server")
    ''
    >>> mismatch("fedrecplus 9.9.9, protocol 7", "the server")
    'the server runs fedrecplus 9.9.9, protocol 7; this side runs fedrecplus 0.1.0, protocol 1: upgrade the older one'
    """
    if str(theirs).rpartition("protocol ")[2] == str(PROTOCOL):
        return ""
    return f"{who} runs {str(theirs)[:80]}; this side runs {VERSION}: upgrade the older one"
