"""Text for terminals and logs, parts of which others wrote: nothing in it steers a terminal or forges a line.

A server's titles, versions and settings come to a device's log, and a node's to an operator's.
"""

from __future__ import annotations

import logging
import unicodedata

_LINE = "%(asctime)s %(levelname)s %(message)s"
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


class LogLines(logging.Formatter):
    """Lines with times, without control characters; what goes on in a next line is indented, and so no line of its own.

    >>> record = logging.LogRecord("", logging.ERROR, "", 0, "spoilt\\n12:00 INFO done\\x1b[2J", None, None)
    >>> LogLines("%(levelname)s %(message)s").format(record)
    'ERROR spoilt\\n  12:00 INFO done[2J'
    """

    def format(self, record: logging.LogRecord) -> str:
        """A record with its traceback, if it has one."""
        return printable(super().format(record)).replace("\n", "\n  ")


def log_handler() -> logging.Handler:
    """Writes such lines to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLines(_LINE))
    return handler


def log_to_stderr() -> None:
    """Everything from INFO on, of a whole process."""
    logging.basicConfig(handlers=[log_handler()], level=logging.INFO)
