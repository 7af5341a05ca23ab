"""How many answers a second workers serve on one database: ``python -m benchmarks.workers --database postgresql://…``.

Every device of a round answers at once, so that a round takes as long as its answers do. The same rounds are run with
one worker, two, and four; devices are threads of other processes on the same machine, which must have cores for them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.load import measured, options


def main() -> None:
    """Run it with each number of workers, and print the ratios."""
    given = options("python -m benchmarks.workers", nodes=960, cohort=960, dropouts=0.0, kills=0, quorum=1.0)
    given.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4])
    wanted = given.parse_args()
    found = {str(count): _answers(wanted, count) for count in wanted.counts}
    first = found[str(wanted.counts[0])]["answers a second"]
    for one in found.values():
        one["of the first"] = round(one["answers a second"] / first, 2)
    report = {"cores": os.cpu_count(), "load average": os.getloadavg(), "workers": found}
    print(json.dumps(report, indent=1))
    if wanted.json is not None:
        wanted.json.write_text(json.dumps(report, indent=1) + "\n")


def _answers(wanted: argparse.Namespace, count: int) -> dict[str, Any]:
    """One run's figures; its first round, in which devices start, is left out."""
    told = argparse.Namespace(**vars(wanted))
    told.workers, told.database = count, wanted.database.replace("{workers}", str(count))
    with tempfile.TemporaryDirectory(prefix="workers") as folder:
        facts = measured(Path(folder), told)
    seconds = statistics.median(facts["round by round"][1:])
    rate = wanted.cohort / seconds
    kept = ("round by round", "workers' cpu", "coordinator's cpu", "nodes' cpu", "seconds", "ms a call", "events")
    return {"answers a second": round(rate, 1), **{name: facts[name] for name in kept}}


if __name__ == "__main__":
    main()
