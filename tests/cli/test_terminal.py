"""A terminal of 80 columns: no line is longer, and no word is broken, whatever a command shows."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of
from fedrecplus.parts.channel import _summing

DATA = "synthetic:clients=40,items=30,ratings_per_client=8"
QUICK = ("--dataset", DATA, "--set", "server.rounds=1", "--set", "model.factors=2")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
_NAME = re.compile(r"[^\W\d_]{3,}")
COMMANDS = {
    "settings": ["settings"],
    "attacks": ["settings", "attack"],
    "presets": ["presets"],
    "data list": ["data", "list"],
    "data info": ["data", "info", DATA],
    "recommend": ["recommend", "run", "--client", "1", "--explore", "0.3"],
    "privacy": ["privacy", "run"],
    "train": ["train", *QUICK, "--algorithm", "fedmf", "--out", "again", "--overwrite"],
    "compare": ["compare", *QUICK, "--algorithm", "fedmf", "--folds", "2", "--workers", "1"],
    "compare in detail": ["compare", *QUICK, "--algorithm", "fedmf", "--folds", "2", "--workers", "1", "--details"],
    "audit": [
        *("audit", *QUICK, "--algorithm", "fedmf", "--rounds", "1", "--users", "3", "--workers", "1", "--details"),
        *("--attacks", "popularity,one-round"),
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("terminal")
    assert exit_code_of(["train", *QUICK, "--algorithm", "fedmf", "--full", "--out", str(place / "run")]) == 0
    return place


def shown(command: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[list[str], list[str]]:
    """The lines on standard output, and the notes beside them, where bars are drawn, too."""
    capsys.readouterr()
    assert exit_code_of(command) == 0
    out, err = (_ESCAPES.sub("", text) for text in capsys.readouterr())
    notes = [line for line in re.split(r"[\r\n]", err) if line.startswith("note:")]
    return [line.rstrip() for line in out.splitlines()], notes


@pytest.mark.parametrize("name", COMMANDS)
def test_a_terminal_of_80_columns_has_room(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.delenv("COLUMNS", raising=False)
    wide, _ = shown(COMMANDS[name], capsys)
    for variable, value in {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "80"}.items():
        monkeypatch.setenv(variable, value)
    narrow, notes = shown(COMMANDS[name], capsys)
    assert [line for line in (*narrow, *notes) if len(line) > 80] == []
    words = {word for line in wide for word in _NAME.findall(line)}
    assert words - {word for line in narrow for word in _NAME.findall(line)} == set()


def test_a_warning_of_every_round_is_said_with_a_count(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_summing, "_clipped_rounds", itertools.count(1))
    for number in range(1, 200):
        _summing.warn_of_clipping(1, number)
    assert [record.args and record.args[0] for record in caplog.records] == [1, 10, 100]
    assert "100 such rounds so far" in caplog.text
