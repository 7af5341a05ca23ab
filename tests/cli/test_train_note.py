"""`train` says where means or the most popular items do better than what it trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedrecplus.cli.main import exit_code_of

DATA = "synthetic:clients=60,items=40,ratings_per_client=10"
MORE = "synthetic:clients=200,items=40,ratings_per_client=25"


def said(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    *options: str,
    algorithm: str = "fedmf-vanilla",
    data: str = DATA,
) -> str:
    command = ["train", "--dataset", data, "--algorithm", algorithm, "--out", str(tmp_path / "run"), *options]
    assert exit_code_of(command) == 0
    return " ".join(capsys.readouterr().err.split())


def test_means_that_predict_better_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "bias-only" in said(capsys, tmp_path, "--set", "server.rounds=2")


def test_what_does_no_better_is_not_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = said(capsys, tmp_path, "--set", "server.rounds=6", algorithm="fedmf", data=MORE)
    assert "the most popular items are a better list" in text
    assert "bias-only" not in text


@pytest.mark.parametrize(("people", "said_so"), [(60, True), (120, False)])
def test_where_devices_would_refuse_the_sums_the_people_they_need_are_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, people: int, said_so: bool
) -> None:
    data = f"synthetic:clients={people},items=40,ratings_per_client=10"
    text = said(capsys, tmp_path, "--full", "--set", "server.rounds=1", algorithm="fedrec+secure", data=data)
    assert ("secure sums of 108 people or more" in text) == said_so


def test_nothing_is_said_where_nothing_is_tested(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "note:" not in said(capsys, tmp_path, "--full", "--set", "server.rounds=1")


def test_while_it_chooses_it_says_what_it_has_tried(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert exit_code_of(["train", "--dataset", DATA, "--full", "--out", str(tmp_path / "run")]) == 0
    text = capsys.readouterr().err
    at = [text.index(words) for words in ("choosing", "tried fedrec+secure", "tried biases", "algorithm: ")]
    assert at == sorted(at)
