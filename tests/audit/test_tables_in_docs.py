"""Tables and figures of the audit in docs/ are of schemes and attacks that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.audit_tables import AUDIT, FIGURE, PROTECTIONS, RESULTS, SCHEMES, TABLES, THREATS, place
from benchmarks.frontier import BUDGETS, CHANNELS
from fedrecplus.audit.attacks import KNOWINGS
from fedrecplus.audit.audit import AuditExtent, audit_cases
from fedrecplus.config import preset
from fedrecplus.web.report.frontier import frontier_table


def shown(path: Path, name: str) -> list[list[str]]:
    """The cells of a table, headings first."""
    found = place(name).search(path.read_text(encoding="utf-8"))
    assert found, f"{path.name} has no place for the table {name}"
    lines = [line for line in found[2].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]


def test_the_frontier_has_columns_for_attacks_that_there_are_in_their_order() -> None:
    columns = shown(RESULTS, "audit")[0][7:-2]
    assert columns == [name for name in AuditExtent().chosen if name in columns]


@pytest.mark.parametrize(("path", "name"), TABLES, ids=lambda each: getattr(each, "name", each))
def test_the_table_has_a_row_for_every_scheme_and_number_of_epochs(path: Path, name: str) -> None:
    found = audit_cases({name: preset(name) for name in SCHEMES})
    rows = dict.fromkeys((row[0], row[1]) for row in shown(path, name)[1:])
    assert list(rows) == [(case.scheme, str(case.epochs)) for case in found]


def test_the_frontier_shows_every_channel_every_kind_of_rows_and_every_budget() -> None:
    headings, *lines = shown(PROTECTIONS, "frontier")
    assert headings == list(frontier_table([])[0])
    sent = {(line[1], line[2].split(",")[0]) for line in lines}
    kinds = {f"{channel}, {rows}" for channel, rows, *_ in CHANNELS}
    assert sent == {("clear", "none"), *((kind, "computational") for kind in kinds)} | {
        ("secure, whole", f"ε = {epsilon}") for epsilon in BUDGETS
    }
    assert len(shown(PROTECTIONS, "frontier of attacks")) == len(lines) + 1


def test_figures_in_sentences_are_of_schemes_and_attackers_that_there_are() -> None:
    found = [figure for path in (AUDIT, THREATS) for figure in FIGURE.findall(path.read_text(encoding="utf-8"))]
    assert found
    assert {figure[1] for figure in found} <= set(SCHEMES)
    assert {figure[2] for figure in found} <= set(KNOWINGS)
