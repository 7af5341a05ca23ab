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
from dataclasses import dataclass
from pathlib import Path

from fedrecplus.experiments.family import shipped_settings

MODELS = ("mf", "reconstruction", "pmf", "svdpp")
PARTS = ("tune", "claims", "figure", "heterogeneity", "theory", "ours")
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


@dataclass(frozen=True)
class Extent:
    """What is run, and how."""

    sets: tuple[str, ...]
    out: Path
    engine: str = "fast"
    workers: int = 0
    folds: int = 5
    seeds: int = 5
    """of the study of heterogeneity, 1 to 5"""
    points: int = 32
    models: tuple[str, ...] = MODELS
    """in which the family is trained"""
    settings: tuple[str, ...] = ()
    """of every training, to try all commands quickly"""

    @property
    def common(self) -> tuple[str, ...]:
        """Options of every study."""
        changed = (f"engine={self.engine}", *self.settings)
        return (*set_options(changed), "--workers", str(self.workers))

    def file(self, name: str) -> str:
        """A file of the run."""
        return str(self.out / name)


def set_options(changes: tuple[str, ...]) -> tuple[str, ...]:
    """Settings as options."""
    return tuple(word for change in changes for word in ("--set", change))


def commands(extent: Extent, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All commands of some parts; heterogeneity, theory and our presets are studied on the first data set."""
    found: list[tuple[str, ...]] = []
    for name in extent.sets:
        found += _of_set(extent, name, parts)
    first = ("--dataset", extent.sets[0])
    if "heterogeneity" in parts:
        how = ("--set", "server.rounds=25", *extent.common, "--folds", str(extent.seeds))
        found.append(("ablate", "heterogeneity", *first, *how, "--json", extent.file("heterogeneity.json")))
    if "theory" in parts:
        found += _theory(extent, first)
    if "ours" in parts:
        compared = ("--algorithm", OURS, "--baseline", "fedrec", "--folds", str(extent.folds))
        found.append(("compare", *first, *compared, *extent.common, "--out", extent.file(f"table-{extent.sets[0]}")))
    return found


def _of_set(extent: Extent, name: str, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The paper's claims and its figure on one data set."""
    found: list[tuple[str, ...]] = []
    if "figure" in parts:
        options = ("--algorithm", "fedrec+paper", "--folds", str(extent.folds), *extent.common)
        figure = ("--json", extent.file(f"figure-{name}.json"))
        found.append(("ablate", "pseudo-items", "--dataset", name, *options, *figure))
    for model in extent.models:
        found += _of_model(extent, name, model, parts)
    return found


def _of_model(extent: Extent, name: str, model: str, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    how, tuned, found = ("--dataset", name, "--model", model, *extent.common), extent.file("family.toml"), []
    run = ("family", "run", *how, "--folds", str(extent.folds))
    if "claims" in parts:
        found.append((*run, "--json", extent.file(f"family-{name}-{model}-fixed.json")))
    if "tune" in parts:
        points = ("--points", str(extent.points), "--out", tuned)
        found.append(("family", "tune", *how, *points, "--json", extent.file(f"tune-{name}-{model}.json")))
    if "claims" in parts and ("tune" in parts or model in shipped_settings().get(name, {})):
        ours = ("--settings-file", tuned) if "tune" in parts else ()
        found.append((*run, "--tuned", *ours, "--json", extent.file(f"family-{name}-{model}-tuned.json")))
    return found


def _theory(extent: Extent, data: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The theorem beside the paper's preset, and beside steps so small that it applies; the corollary beside those."""
    train, found = ("train", *data, "--algorithm", "fedrec+paper", *set_options(extent.settings)), []
    for number, (name, changes) in enumerate(STUDIED.items(), start=1):
        run = extent.file(name)
        over = () if number == 1 else ("--looks", "12", "--corollary", HORIZONS, "--workers", str(extent.workers))
        found.append((*train, *set_options(changes), "--out", run))
        found.append(("theory", run, *over, "--json", extent.file(f"theory-{number}.json")))
    return found


def main() -> int:
    """Parse and run; what fails is said, and the rest goes on."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__.splitlines()[0])
    parser.add_argument("--sets", default="ml-100k", help="data sets, with spaces between")
    parser.add_argument("--out", type=Path, default=Path("runs/paper"))
    parser.add_argument("--parts", default=",".join(PARTS[1:]), help=f"some of {','.join(PARTS)}")
    parser.add_argument("--engine", default=Extent.engine)
    parser.add_argument("--workers", type=int, default=Extent.workers, help="trainings side by side; 0: one per core")
    parser.add_argument("--folds", type=int, default=Extent.folds)
    parser.add_argument("--seeds", type=int, default=Extent.seeds, help="of the study of heterogeneity")
    parser.add_argument("--points", type=int, default=Extent.points, help="settings that tuning tries")
    parser.add_argument("--models", default=",".join(MODELS), help=f"some of {','.join(MODELS)}")
    parser.add_argument("--set", action="append", default=[], help="a setting of every training, to try them quickly")
    given = parser.parse_args()
    extent = Extent(
        tuple(given.sets.split()), given.out, given.engine, given.workers, given.folds, given.seeds,
        given.points, tuple(given.models.split(",")), tuple(given.set),
    )  # fmt: skip
    extent.out.mkdir(parents=True, exist_ok=True)
    return max(run(command, given.out) for command in commands(extent, tuple(given.parts.split(","))))


def run(command: tuple[str, ...], out: Path) -> int:
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
