r"""Tables and figures of the audit in docs/, from what `make frontier` and `fedrecplus audit` have written.

After a change of presets or attacks::

    make frontier
    python -m benchmarks.audit_tables runs/frontier runs/frontier-more

Tables stand between ``<!-- NAME -->`` and ``<!-- end of NAME -->``; single figures, in a sentence, between
``<!-- auc SCHEME knowing WHAT -->`` and ``<!-- end -->``: the strongest attack of an attacker who knows so much.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
from fedrecplus.markdown import markdown_table

DOCS = Path(__file__).parents[1] / "docs"
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
    text, places = place(name).subn(lambda found: f"{found[1]}{content}{found[3]}", path.read_text(encoding="utf-8"))
    assert places == 1, f"{path.name} has no place for the table {name}"
    path.write_text(text, encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def figure(found: re.Match[str], rows: Sequence[Row]) -> str:
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
