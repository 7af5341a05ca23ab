"""Text from elsewhere, such as titles, without what would steer the terminal it is shown in."""

from __future__ import annotations

import unicodedata

_STEERING = ("Cc", "Cf", "Zl", "Zp", "Cs")
"""control characters, marks that turn the direction of writing, separators of lines, halves of characters"""


def printable(text: str) -> str:
    """The text without control characters, line breaks but kept.

    >>> printable("Alien\\x1b[2J (1979)")
    'Alien[2J (1979)'
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(mark for mark in text if mark == "\n" or unicodedata.category(mark) not in _STEERING)
