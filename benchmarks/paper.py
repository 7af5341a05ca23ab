"""The studies of ``make paper``: its claims on each data set, its figure, its theory, heterogeneity, and our presets.

``python -m benchmarks.paper --sets ml-100k`` runs the commands below one after the other, each with ``--workers``
trainings side by side, and leaves their JSON files and run folders for ``fedrecplus report``. On a machine with a card:
``python -m benchmarks.paper --sets ml-1m --parts claims,figure --engine cuda --workers 4``.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from fedrecplus.experiments.family import shipped_settings

MODELS = ("mf", "reconstruction", "pmf", "svdpp")
PARTS = ("claims", "figure", "heterogeneity", "theory", "ours")
OURS = "fedmf,fedrec,fedrec-hf,fedrec++,fedrec+paper,fedrec+,fedrec+private"
# steps so small that the theorem's conditions hold, for the model that it is about
_SMALL = (
    "model.local_epochs=1",
    "model.learning_rate=0.001",
    "server_optimizer.learning_rate=100",
    "server.rounds=200",
)
STUDIED = {
    "paper-run": (),
    "small-steps": ("algorithm=fedrec+paper-small-steps", *_SMALL),
    "plain": ("algorithm=fedmf-small-steps", *_SMALL, "pseudo_items.rule=none", "aggregation.rule=uniform"),
}
"""what the theorem is set beside; plain: neither pseudo items nor weights"""
HORIZONS = "10,32,100,316,1000"


def commands(sets: list[str], parts: list[str], models: list[str], out: Path, many: list[str]) -> Iterator[list[str]]:
    """All commands of some parts, ``many`` being the options of those that train on several folds.

    Heterogeneity, theory and our presets are studied on the first data set.
    """
    first = sets[0]
    for name in sets:
        if "figure" in parts:
            figure = ["ablate", "pseudo-items", "--dataset", name, "--algorithm", "fedrec+paper", *many]
            yield [*figure, "--json", f"{out}/figure-{name}.json"]
        for model in models if "claims" in parts else ():
            family = ["family", "run", "--dataset", name, "--model", model, *many]
            yield [*family, "--json", f"{out}/family-{name}-{model}-fixed.json"]
            if model in shipped_settings().get(name, {}):
                yield [*family, "--tuned", "--json", f"{out}/family-{name}-{model}-tuned.json"]
    if "heterogeneity" in parts:
        study = ["ablate", "heterogeneity", "--dataset", first, "--set", "server.rounds=25", *many]
        yield [*study, "--json", f"{out}/heterogeneity.json"]
    if "ours" in parts:
        compared = ["compare", "--dataset", first, "--algorithm", OURS, "--baseline", "fedrec", *many]
        yield [*compared, "--out", f"{out}/table-{first}"]


def theory_commands(data: str, out: Path, own: list[str], workers: int) -> Iterator[list[str]]:
    """The theorem beside the paper's preset, and beside steps so small that it applies; the corollary beside those."""
    for number, (name, changes) in enumerate(STUDIED.items(), start=1):
        train = ["train", "--dataset", data, "--algorithm", "fedrec+paper", *own, *set_options(changes)]
        yield [*train, "--out", f"{out}/{name}"]
        more = ["--looks", "12", "--corollary", HORIZONS, "--workers", str(workers)] if changes else []
        yield ["theory", f"{out}/{name}", *more, "--json", f"{out}/theory-{number}.json"]


def set_options(changes: tuple[str, ...] | list[str]) -> list[str]:
    """Settings as options."""
    return [word for change in changes for word in ("--set", change)]


def main() -> int:
    """Parse and run; what fails is said, and the rest goes on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="ml-100k", help="data sets, with spaces between")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"))
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--models", default=",".join(MODELS), help=f"some of {','.join(MODELS)}")
    parser.add_argument("--engine", default="fast")
    parser.add_argument("--workers", type=int, default=0, help="trainings side by side; 0: one per core")
    parser.add_argument("--folds", type=int, default=5, help="and seeds of the study of heterogeneity")
    parser.add_argument("--set", action="append", default=[], help="a setting of every training, to try them quickly")
    given = parser.parse_args()
    sets, parts, own = given.sets.split(), given.parts.split(","), set_options(given.set)
    many = ["--set", f"engine={given.engine}", *own, "--workers", str(given.workers), "--folds", str(given.folds)]
    wanted = list(commands(sets, parts, given.models.split(","), given.out, many))
    if "theory" in parts:
        wanted += theory_commands(sets[0], given.out, own, given.workers)
    given.out.mkdir(parents=True, exist_ok=True)
    return max(run(command, given.out) for command in wanted)


def run(command: list[str], out: Path) -> int:
    """0 where it ended well. What it took is appended to ``took.jsonl``, with the processor time of its workers."""
    started, before = time.perf_counter(), _processor_seconds()
    print("fedrecplus", *command, file=sys.stderr, flush=True)
    code = subprocess.run([sys.executable, "-m", "fedrecplus", *command], check=False).returncode
    seconds, processor = time.perf_counter() - started, _processor_seconds() - before
    how = "done" if code == 0 else f"FAILED ({code})"
    print(f"{how}: {seconds:.0f} s, {processor:.0f} s of processor time", file=sys.stderr, flush=True)
    line = {"command": command, "code": code, "seconds": round(seconds), "processor_seconds": round(processor)}
    with (out / "took.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return min(abs(code), 1)


def _processor_seconds() -> float:
    """Of all processes that were started from here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    raise SystemExit(main())
