r"""The tables of README.md and docs/audit.md are of the presets, schemes and attacks that there are.

After a change of presets or attacks, to write new ones::

    fedrecplus audit fedmf fedrec fedrec-hf fedrec++ fedrec+paper fedrec+ fedrec+private --dataset ml-100k \
      --json leaks.json
    python -m tests.audit.test_readme leaks.json
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from fedrecplus.audit.audit import ORDER, cases
from fedrecplus.audit.tables import strongest_to_markdown, to_markdown
from fedrecplus.config import preset

HOME = Path(__file__).parents[2]
TABLES = {
    (HOME / "README.md", "audit"): to_markdown,
    (HOME / "docs" / "audit.md", "audit"): strongest_to_markdown,
    (HOME / "docs" / "audit.md", "every attack"): every_attack_to_markdown,
}
PLACE = re.compile(r"(<!-- audit -->\n\n)(.*?)(<!-- end of audit -->)", re.S)
SCHEMES = ("fedmf", "fedrec", "fedrec-hf", "fedrec++", "fedrec+paper", "fedrec+", "fedrec+private")


def shown(path: Path) -> list[list[str]]:
    """The cells of the table, headings first."""
    found = PLACE.search(path.read_text(encoding="utf-8"))
    assert found, f"{path.name} has no place for the audit's table"
    lines = [line for line in found[2].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "---" not in line]


def test_the_frontier_has_a_column_for_every_attack() -> None:
    assert tuple(shown(HOME / "README.md")[0][6:]) == ORDER


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.name)
def test_the_table_has_a_row_for_every_scheme_and_number_of_epochs(path: Path) -> None:
    found = cases({name: preset(name) for name in SCHEMES})
    hidden = [case for case in found if path.name == "README.md" or case.config.pseudo_items.rule != "none"]
    rows = [(row[0], row[1]) for row in shown(path)[1:]]
    assert rows == [(case.scheme, str(case.epochs)) for case in hidden]


def write(content: dict) -> None:
    """Put the tables of an audit's JSON file where they belong, with the command that made it."""
    command = "    " + re.sub(r" --json \S+", "", content["made"]["command"]) + "\n"
    for path, table in TABLES.items():
        text, places = PLACE.subn(
            lambda found, table=table: f"{found[1]}{table(content['rows'])}\n{command}\n{found[3]}",
            path.read_text(encoding="utf-8"),
        )
        assert places == 1, f"{path.name} has no place for the audit's table"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
