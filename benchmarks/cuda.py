"""``python -m benchmarks.cuda``: the CUDA engine on this machine's card: equality, precision, speed, and size.

The tables are kept in ``benchmarks/results`` with date, card and commit, a day's measures together; their numbers in
``runs``. ``--data`` names sets for whole trainings.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks.cuda_equality import beside_surprise, equality, seeds, trainings
from benchmarks.cuda_speed import growth, size, solves, speed
from benchmarks.line import Line, as_table
from fedrecplus import provenance
from fedrecplus.errors import EngineWarning

RESULTS = Path(__file__).with_name("results")
MEASURES = {
    "equality": equality,
    "speed": speed,
    "solves": solves,
    "growth": growth,
    "size": size,
    "trainings": trainings,
    "seeds": seeds,
    "surprise": beside_surprise,
}


def main() -> int:
    """Run the measures and keep their output."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cuda", description=__doc__)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)}; none: all")
    parser.add_argument("--data", nargs="*", default=["ml-100k"], help="sets for whole trainings")
    parser.add_argument(
        "--clients", type=int, default=1_000_000, help="of the speed measure; size has ten times as many"
    )
    parser.add_argument("--commit", default=provenance.commit(), help="what is measured, where there is no repository")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the output")
    wanted = parser.parse_args()
    if unknown := set(wanted.measures) - set(MEASURES):
        parser.error(f"there is no measure {', '.join(sorted(unknown))}: choose of {', '.join(MEASURES)}")
    warnings.simplefilter("once", EngineWarning)
    for name in wanted.measures or MEASURES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = MEASURES[name](wanted)
        print(as_table(found), flush=True)
        keep(name, found, wanted.commit, wanted.out)
    return 0


def keep(name: str, found: list[Line], commit: str | None, folder: Path) -> None:
    """Write a measure's lines, with the commit that they are of, beside the day's other measures on this card."""
    runs = Path("runs")
    card, today = torch.cuda.get_device_name(), datetime.now(UTC).date().isoformat()
    facts = {"date": today, "card": card, "torch": torch.__version__}
    path = runs / f"cuda-{card.lower().replace(' ', '-')}-{today}.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept = before["measures"] if all(before.get(key) == value for key, value in facts.items()) else {}
    kept[name] = {"commit": commit, "lines": [line.as_dict() for line in found]}
    report = {**facts, "measures": {each: kept[each] for each in MEASURES if each in kept}}
    for place in (runs, folder):
        place.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    (folder / path.with_suffix(".md").name).write_text(as_page(report), encoding="utf-8")


def as_page(report: dict[str, Any]) -> str:
    """The kept measures as a page, a table each."""
    page = f"# {report['card']}, {report['date']}\n\n`python -m benchmarks.cuda`, torch {report['torch']}.\n"
    for name, measure in report["measures"].items():
        lines = [Line(**line) for line in measure["lines"]]
        page += f"\n## {name}, commit {measure['commit']}\n\n{as_table(lines)}\n"
    return page


if __name__ == "__main__":
    sys.exit(main())
