"""What every refusal has in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of


def refused(arguments: list[str], said: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with 2, says why on standard error alone, and writes nothing."""
    before = sorted(here.rglob("*"))
    assert exit_code_of(arguments) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    assert sorted(here.rglob("*")) == before
