r"""Tables and figures of the audit in docs/ are of schemes and attacks that there are.

After a change of presets or attacks, to write new ones::

    make frontier
    python -m tests.audit.test_tables_in_docs runs/frontier runs/frontier-more

Tables stand between ``<!-- NAME -->`` and ``<!-- end of NAME -->``; single figures, in a sentence, between
``<!-- auc SCHEME knowing WHAT -->`` and ``<!-- end -->``: the strongest attack of an attacker who knows so much.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.frontier import BUDGETS, CHANNELS
from fedrecplus.audit.attacks import KNOWINGS
from fedrecplus.audit.audit import AuditExtent, audit_cases
from fedrecplus.audit.tables import (
    Row,
    applies,
    is_blind,
    known_to,
    number,
    rows_by_case,
    strongest,
    table_line,
    to_markdown,
)
from fedrecplus.config import preset
from fedrecplus.markdown import markdown_table
from fedrecplus.web.report.frontier import frontier_table

HOME = Path(__file__).parents[2]
DOCS = HOME / "docs"
AUDIT, RESULTS, PROTECTIONS, THREATS = (
    DOCS / f"{name}.md" for name in ("audit", "audit-results", "frontier", "threat-model")
)


def strongest_to_markdown(rows: Sequence[Row]) -> str:
    """For a document: the strongest attack on each case, for each thing an attacker may know."""
    cells = []
    for case in rows_by_case([row for row in rows if row["auc"] is not None]):
        for knowing in dict.fromkeys(known_to(row) for row in case if applies(row)):
            best = table_line(strongest(case, knowing))
            cells.append([best[0], best[1], knowing, best[5], *best[10:14], best[16], *best[7:9]])
    headings = ["scheme", "K", "knowing", "strongest", "AUC", "95 %", "worst tenth", "control", "TPR at 1 % FPR"]
    return markdown_table([*headings, "ratings", "control"], cells)


def every_attack_to_markdown(rows: Sequence[Row]) -> str:
    """For a document: each attack on each case, as mean, worst tenth of users and control."""
    attacks = list(dict.fromkeys(row["attack"] for row in rows if applies(row)))
    cells = []
    for case in rows_by_case(rows):
        told = {row["attack"]: _three(row) for row in case if applies(row)}
        cells.append([*table_line(case[0])[:2], *(told.get(name, "–") for name in attacks)])
    return markdown_table(["scheme", "K", *attacks], cells)


def _three(row: Row) -> str:
    three = " / ".join(number(row.get(name)) for name in ("auc", "auc_worst_tenth", "auc_control"))
    return f"{three} blind" if is_blind(row) else three


TABLES = {
    (RESULTS, "audit"): to_markdown,
    (RESULTS, "strongest"): strongest_to_markdown,
    (RESULTS, "every attack"): every_attack_to_markdown,
}
FRONTIER = {(PROTECTIONS, "frontier"): 0, (PROTECTIONS, "frontier of attacks"): 1}
"""where the tables of ``frontier.md`` stand, by their order there"""
FIGURE = re.compile(r"(<!-- auc (\S+) knowing (.+?) -->)(.*?)(<!-- end -->)")
SCHEMES = ("fedmf", "fedrec", "fedrec-hf", "fedrec++", "fedrec+paper", "fedrec+", "fedrec+private", "fedrec+secure")


def place(name: str) -> re.Pattern[str]:
    """Where a table stands."""
    return re.compile(rf"(<!-- {name} -->\n\n)(.*?)(<!-- end of {name} -->)", re.S)


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


def write(audits: Sequence[Path], frontier: Path) -> None:
    """Put the tables and figures of the audits of all schemes where they belong, with the command that makes them."""
    contents = {content["made"]["command"].split()[2]: content for content in map(_read, audits)}
    first = contents[SCHEMES[0]]
    rows = [row for scheme in SCHEMES for row in contents[scheme]["rows"]]
    asked = f"--dataset {first['dataset']} --users {first['users']} --rounds {first['rounds']}"
    command = f"    fedrecplus audit {' '.join(SCHEMES)} {asked}\n"
    for (path, name), table in TABLES.items():
        put(path, name, f"{table(rows)}\n{command}\n")
    tables = [part for part in frontier.read_text(encoding="utf-8").split("\n\n") if part.startswith("|")]
    for (path, name), number_of_table in FRONTIER.items():
        put(path, name, f"{tables[number_of_table].strip()}\n\n    make frontier\n\n")
    for path in (AUDIT, THREATS):
        text = path.read_text(encoding="utf-8")
        path.write_text(FIGURE.sub(lambda found: figure(found, rows), text), encoding="utf-8")


def put(path: Path, name: str, content: str) -> None:
    """Write what stands at one place."""
    text, places = place(name).subn(
        lambda found: f"{found[1]}{content}{found[3]}",
        path.read_text(encoding="utf-8"),
    )
    assert places == 1, f"{path.name} has no place for the table {name}"
    path.write_text(text, encoding="utf-8")


def _read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def figure(found: re.Match[str], rows: list[dict]) -> str:
    """Mean and worst tenth of the strongest attack on a scheme, by what the attacker knows; as it was, if not there."""
    some = [row for row in rows if row["scheme"] == found[2] and known_to(row) == found[3]]
    if not some:
        return found[0]
    best = strongest(some, found[3])
    return f"{found[1]}{number(best['auc'])}, worst tenth {number(best['auc_worst_tenth'])}{found[5]}"


if __name__ == "__main__":
    main, more = map(Path, sys.argv[1:3])
    clear = [main / f"clear-{name}-audit.json" for name in ("fedmf", "fedrec", "fedrec+", "fedrec+private")]
    others = [more / f"{name}.json" for name in ("fedrec-hf", "fedrec++", "fedrec+paper")]
    write([*clear, *others, main / "preset-audit.json"], main / "frontier.md")
