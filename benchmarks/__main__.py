"""``python -m benchmarks``: run the measures, print a table, write JSON. ``make bench`` does it with all of them."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks import (
    card,
    cluster,
    compilation,
    engines,
    kernels,
    latency,
    lists,
    secure,
    service,
    surprise_svd,
    two_tables,
)
from benchmarks.line import Line, as_table
from fedrecplus.workers import core_count

MEASURES = {
    "engines": engines.measure,
    "surprise": surprise_svd.measure,
    "hybrid-filling": engines.client_rounds,
    "kernels": kernels.measure,
    "compilation": compilation.measure,
    "cluster": cluster.measure,
    "cuda": card.measure,
    "secure": secure.measure,
    "two-tables": two_tables.measure,
    "lists": lists.measure,
    "latency": latency.measure,
    "service": service.measure,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed, memory, and lists beside peers.")
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)}; none: all")
    parser.add_argument("--json", type=Path, default=Path("runs/bench.json"), help="where to write the numbers")
    wanted = parser.parse_args()
    if unknown := set(wanted.measures) - set(MEASURES):
        parser.error(f"there is no measure {', '.join(sorted(unknown))}: choose of {', '.join(MEASURES)}")
    lines: list[Line] = []
    for name in wanted.measures or MEASURES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        lines += MEASURES[name]()
    print(as_table(lines))
    wanted.json.parent.mkdir(parents=True, exist_ok=True)
    report = {"machine": _machine(), "lines": [line.as_dict() for line in lines]}
    wanted.json.write_text(json.dumps(report, indent=1) + "\n")
    print(f"written to {wanted.json}", file=sys.stderr)
    return 0


def _machine() -> dict[str, object]:
    """What the numbers depend on besides the code, the load of others included."""
    return {
        "when": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "cores": os.cpu_count(),
        "threads": core_count(),
        "load_average": os.getloadavg(),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "numba": version("numba"),
    }


sys.exit(main())
