"""What ``fedrecplus compare`` shows: nothing is lost in a narrow terminal, and details when they are asked for."""

from __future__ import annotations

import pytest

from fedrecplus.cli.main import exit_code_of

DATA = "synthetic:clients=40,items=50,ratings_per_client=8"
COMPARE = ["compare", "--dataset", DATA, "--algorithm", "fedmf,fedrec+private", "--folds", "2"]
COMPARE += ["--set", "server.rounds=2"]
NAMES = ("global-mean", "bias-only", "fedmf", "fedrec+private")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 100 columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LINES", "25")  # without it, rich takes a dumb terminal to have 80 columns


def tables_of(out: str) -> list[list[str]]:
    """Its tables, line by line; the title stands on the first one."""
    return [table.splitlines() for table in out.strip().split("\n\n")]


def test_a_pipe_gets_one_wide_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(COMPARE) == 0
    (table,) = tables_of(capsys.readouterr().out)
    assert table[0].split() == [DATA]
    assert table[1].split()[-7:] == ["p", "rounds", "seconds", "KB", "up", "KB", "down"]
    assert "95 % interval" in table[1]


@pytest.mark.usefixtures("narrow")
def test_a_narrow_terminal_gets_the_tests_in_a_table_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of(COMPARE) == 0
    figures, tests = tables_of(capsys.readouterr().out)
    assert "95 % interval" not in figures[1]
    assert "KB down" in figures[1]
    assert "95 % interval" in tests[0]
    assert [line.split()[0] for line in tests[1:]] == list(NAMES)
    assert max(len(line) for line in [*figures, *tests]) <= 100


@pytest.mark.usefixtures("narrow")
def test_details_are_tests_groups_ranking_and_lists_by_group(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of([*COMPARE, "--details"]) == 0
    tables = tables_of(capsys.readouterr().out)
    headings = (
        "mean difference",
        "worst tenth",
        "NDCG@10",
        "MAP@10",
        "p",
    )  # p: no room beside the others
    for table, heading in zip(tables[1:], headings, strict=True):
        assert heading in table[0]
        assert [line.split()[0] for line in table[1:]] == list(NAMES)
