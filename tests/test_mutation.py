"""Mutants of the paper's code: each differs in one place, and is what runs once it is applied."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks.mutation import FILES, PACKAGE, TESTS, Mutant, apply, mutants, run
from fedrecplus.experiments.theory import study

FILE = "experiments/theory/study.py"


def of(function: str, change: str) -> Mutant:
    return next(own for own in mutants(FILE) if (own.function, own.change) == (function, change))


@pytest.mark.parametrize("file", ["parts/aggregation/wasserstein.py", "experiments/theory/constants.py"])
def test_a_mutant_differs_in_one_line_of_its_function(file: str) -> None:
    lines = ast.unparse(ast.parse((PACKAGE / file).read_text(encoding="utf-8"))).splitlines()
    found = list(mutants(file))
    assert len({own.source for own in found}) == len(found) > 0
    for own in found:
        assert sum(line not in lines for line in own.source.splitlines() if not line.startswith("class ")) == 1


def test_whoever_has_imported_a_function_runs_its_mutant(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("__code__", "__defaults__", "__kwdefaults__"):
        monkeypatch.setattr(study.looked_at, name, getattr(study.looked_at, name))
    imported = study.looked_at
    assert imported(100, 5) == [0, 1, 3, 10, 32]
    apply(of("looked_at", "0 → 1"))
    assert imported(100, 5) == [1, 3, 10, 32]


@pytest.mark.whole
def test_a_change_that_matters_is_noticed_and_one_that_doesn_t_is_not() -> None:
    """By the doctest of a function; another function has none."""
    asked = [of("looked_at", "0 → 1"), of("open_run", "3 → 4")]
    fates = {own.change: killer for own, killer in run(asked, (), 2).items()}
    assert "looked_at" in (fates["0 → 1"] or "")
    assert fates["3 → 4"] is None


def test_what_is_changed_and_what_is_run_is_there() -> None:
    assert {Path(file).parent.name for file in FILES} == {
        *("model", "pseudo_items", "virtual_ratings", "parts", "aggregation", "rounds", "theory")
    }
    assert all((PACKAGE.parents[1] / path).exists() for path in TESTS)
