r"""Tables and figures of README.md, docs/audit.md and docs/threat-model.md are of schemes and attacks that there are.

After a change of presets or attacks, to write new ones::

    fedrecplus audit fedmf fedrec fedrec-hf fedrec++ fedrec+paper fedrec+ fedrec+private --dataset ml-100k \
      --json leaks.json
    python -m tests.audit.test_readme leaks.json

Tables stand between ``<!-- NAME -->`` and ``<!-- end of NAME -->``; single figures, in a sentence, between
``<!-- auc SCHEME knowing WHAT -->`` and ``<!-- end -->``: the strongest attack of an attacker who knows so much.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from fedrecplus.audit.audit import AuditExtent, cases
from fedrecplus.audit.guess import KNOWINGS
from fedrecplus.audit.tables import (
    every_attack_to_markdown,
    known_to,
    number,
    strongest,
    strongest_to_markdown,
    to_markdown,
)
from fedrecplus.config import preset

HOME = Path(__file__).parents[2]
README, AUDIT, THREATS = HOME / "README.md", HOME / "docs" / "audit.md", HOME / "docs" / "threat-model.md"
TABLES = {
    (README, "audit"): to_markdown,
    (AUDIT, "audit"): strongest_to_markdown,
    (AUDIT, "every attack"): every_attack_to_markdown,
}
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


def test_the_frontier_has_a_column_for_every_attack() -> None:
    """But for those of attackers with a second data set: there is none for the README's audit."""
    assert tuple(shown(README, "audit")[0][7:-2]) == tuple(AuditExtent().chosen)


@pytest.mark.parametrize(("path", "name"), TABLES, ids=lambda each: getattr(each, "name", each))
def test_the_table_has_a_row_for_every_scheme_and_number_of_epochs(path: Path, name: str) -> None:
    found = cases({name: preset(name) for name in SCHEMES})
    rows = dict.fromkeys((row[0], row[1]) for row in shown(path, name)[1:])
    assert list(rows) == [(case.scheme, str(case.epochs)) for case in found]


def test_figures_in_sentences_are_of_schemes_and_attackers_that_there_are() -> None:
    found = [figure for path in (README, AUDIT, THREATS) for figure in FIGURE.findall(path.read_text(encoding="utf-8"))]
    assert found
    assert {figure[1] for figure in found} <= set(SCHEMES)
    assert {figure[2] for figure in found} <= set(KNOWINGS)


def write(content: dict) -> None:
    """Put the tables and figures of an audit's JSON file where they belong, with the command that made it."""
    command = "    " + re.sub(r" --json \S+", "", content["made"]["command"]) + "\n"
    for (path, name), table in TABLES.items():
        text, places = place(name).subn(
            lambda found, table=table: f"{found[1]}{table(content['rows'])}\n{command}\n{found[3]}",
            path.read_text(encoding="utf-8"),
        )
        assert places == 1, f"{path.name} has no place for the table {name}"
        path.write_text(text, encoding="utf-8")
    for path in (README, AUDIT, THREATS):
        text = path.read_text(encoding="utf-8")
        path.write_text(FIGURE.sub(lambda found: figure(found, content["rows"]), text), encoding="utf-8")


def figure(found: re.Match[str], rows: list[dict]) -> str:
    """Mean and worst tenth of the strongest attack on a scheme, by what the attacker knows; as it was, if not there."""
    some = [row for row in rows if row["scheme"] == found[2] and known_to(row) == found[3]]
    if not some:
        return found[0]
    best = strongest(some, found[3])
    return f"{found[1]}{number(best['auc'])}, worst tenth {number(best['auc_worst_tenth'])}{found[5]}"


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
