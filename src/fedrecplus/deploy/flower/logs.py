"""The server's log: a JSON object a line in a file that is rotated, plain lines on standard error, no colour codes."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

LOG = "server.log"
_BYTES, _FILES = 10 * 2**20, 5
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_QUIET = ("alembic", "httpx", "httpcore", "sqlalchemy")


class JsonLines(logging.Formatter):
    """One record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, who, what; a traceback where there is one."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "from": record.name,
            "message": _COLOUR.sub("", record.getMessage()),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class Plain(logging.Formatter):
    """A line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, what."""
        return _COLOUR.sub("", super().format(record))


def log_to(home: Path) -> None:
    """Send everything that this process logs to the file of a home, and to standard error."""
    file = RotatingFileHandler(home / LOG, maxBytes=_BYTES, backupCount=_FILES, encoding="utf-8", delay=True)
    file.setFormatter(JsonLines())
    terminal = logging.StreamHandler()
    terminal.setFormatter(Plain("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.handlers[:] = [file, terminal]
    root.setLevel(logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    flower = logging.getLogger("flwr")  # has a handler of its own, with colours
    flower.handlers.clear()
    flower.setLevel(logging.INFO)
    flower.propagate = True
