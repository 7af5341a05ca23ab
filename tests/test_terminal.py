"""What others have written reaches terminals and logs as text alone."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedrecplus
from fedrecplus.terminal import log_handler

STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f\x9b\u202e]")


@contextlib.contextmanager
def logged() -> Iterator[None]:
    """As a node's log: to standard error."""
    log, handler = logging.getLogger("fedrecplus"), log_handler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def test_no_message_steers_a_terminal_or_forges_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with logged():
        logging.getLogger("fedrecplus").error("%s", "no rule\n2026-11-19 12:00:00,000 INFO agreed\x1b[2J\u202e")
    first, second = capsys.readouterr().err.splitlines()
    assert "no rule" in first
    assert second.startswith("  2026-11-19"), "indented, as no line of the log is"
    assert not STEERING.search(first + second)


def test_a_traceback_steers_nothing_either(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ValueError("\x1b]0;title\x07")
    except ValueError:
        with logged():
            logging.getLogger("fedrecplus").exception("failed")
    assert not STEERING.search(capsys.readouterr().err.replace("\n", ""))


def test_every_process_logs_by_this_formatter() -> None:
    source = {path: path.read_text(encoding="utf-8") for path in Path(fedrecplus.__file__).parent.rglob("*.py")}
    own = {path.name for path, text in source.items() if "basicConfig(" in text or "StreamHandler(" in text}
    assert own == {"terminal.py"}
