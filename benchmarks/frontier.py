"""Every protection against every attack: the trainings and audits of ``make frontier``, side by side.

``python -m benchmarks.frontier`` runs the commands below with as many workers as there are cores, each on one core, the
longest first, and leaves their JSON files and run folders for ``fedrecplus report``. Folds are trained without
cryptography, to the same numbers; a short run with all of it brings the seconds of a round.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from fedrecplus.workers import core_count

IN_CLEAR = ("fedmf", "fedrec", "fedrec+", "fedrec+private")
ALSO_AUDITED = ("fedrec-hf", "fedrec++", "fedrec+paper")
"""schemes of the README's audit that are no part of the frontier"""
FEW = 10
"""people for each of whom a whole training is repeated without them"""
OF_SUMS = "sums,differencing,knows-others"
FURTHER = {
    "worlds-secure": ("fedrec+secure", "--control", "worlds"),
    "worlds-private": ("fedrec+private", "--control", "worlds"),
    "everybody": ("fedrec+secure", "--attacks", OF_SUMS),
    "three-in-ten": ("fedrec+secure", "--set", "cohort.fraction=0.3", "--attacks", OF_SUMS),
    "dropouts": ("fedrec+secure", "--set", "cohort.dropout=0.05", "--attacks", OF_SUMS),
    "stronger": (
        *("fedrec+private", "--attacks", "constraints,knows-others", "--attack-set", "constraints.turns=2"),
        *("--attack-set", "knows-others.learner=trees", "--attack-set", "knows-others.teachers=400"),
    ),
}
"""audits of docs/audit.md: the dearer control, cohorts that differ, and what takes more time"""
CHANNELS = (
    ("secure", "whole", "cryptography", 2),
    ("secure", "blocks", "cryptography", 1),
    ("secure", "rows", "cryptography", 1),
    ("shares", "rows", "cryptography", 2),
    ("he", "whole", "cryptography", 2),
)
"""channel, rows, the option by which a simulation computes its cryptography, and in how many rounds that is timed: over
parts of the table everybody is everybody's neighbour, and a round takes minutes"""
BUDGETS = (1, 5, 10, 20)
ONE_CORE = dict.fromkeys(
    ("FEDRECPLUS_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)


@dataclass(frozen=True)
class Step:
    """One command."""

    name: str
    arguments: tuple[str, ...]
    cost: float
    """seconds of one core, roughly: the longest begin first"""
    after: str = ""
    """the step whose run folder it reads"""


@dataclass(frozen=True)
class Extent:
    """How much is trained and attacked."""

    out: Path
    """what the report is made of; what else is measured goes next to it"""
    users: int = 200
    rounds: int = 12
    folds: int = 5
    settings: tuple[str, ...] = ()
    """of every command, such as --set server.rounds=2, to try them all quickly"""

    @property
    def more(self) -> Path:
        """Where the audits are that are no part of the frontier."""
        return self.out.with_name(f"{self.out.name}-more")


def steps(extent: Extent) -> list[Step]:
    """All of them."""
    found = [*(step for name in IN_CLEAR for step in _in_clear(extent, name))]
    found += [_audit(extent, f"more-{name}", (name,), 500, extent.more) for name in ALSO_AUDITED]
    for name, how in FURTHER.items():
        few = replace(extent, users=min(FEW, extent.users)) if "worlds" in how else extent
        found.append(_audit(few, f"more-{name}", how, 400 if few is not extent else 150, extent.more))
    found += [step for channel in CHANNELS for step in _over(extent, *channel)]
    preset = ("fedrec+secure", "--channel", "secure")
    return [*found, *_all_of(extent, "preset", preset, "cryptography", 2), *_with_noise(extent)]


def _in_clear(extent: Extent, algorithm: str) -> list[Step]:
    return [
        _compare(extent, f"clear-{algorithm}", (algorithm,), 60),
        _audit(extent, f"clear-{algorithm}-audit", (algorithm,), 500),
    ]


def _over(extent: Extent, channel: str, rows: str, computed: str, rounds: int) -> list[Step]:
    how = ("fedrec+", "--channel", channel, "--rows", rows)
    return _all_of(extent, f"{channel}-{rows}", how, computed, rounds)


def _all_of(extent: Extent, name: str, how: tuple[str, ...], computed: str, rounds: int) -> list[Step]:
    """Folds without cryptography, a short run with it, and the attacks."""
    algorithm, *sent = how
    crypto = ("--set", f"channel.{computed}=computed", "--set", f"server.rounds={rounds}")
    run = ("train", "--dataset", "ml-100k", "--algorithm", algorithm, *sent, *extent.settings, *crypto)
    return [
        _compare(extent, name, how, 120),
        Step(f"{name}-run", (*run, "--out", str(extent.out / f"{name}-run")), 600 if rounds == 1 else 90),
        _audit(extent, f"{name}-audit", how, 300),
    ]


def _with_noise(extent: Extent) -> list[Step]:
    found = []
    for epsilon in BUDGETS:
        how = ("fedrec+secure", "--channel", "secure", "--epsilon", str(epsilon), "--noise", "distributed")
        for fold in range(extent.folds):
            masks = ("--set", "channel.cryptography=computed") if fold == 0 else ()  # one of them brings the seconds
            name = f"epsilon-{epsilon}-fold{fold}"
            run = ("train", "--dataset", "ml-100k", "--algorithm", *how, "--fold", str(fold), *extent.settings, *masks)
            found.append(Step(name, (*run, "--out", str(extent.out / name)), 200 if masks else 30))
        first = f"epsilon-{epsilon}-fold0"
        audited = (str(extent.out / first), "--set", "channel.cryptography=skipped")  # the sums are the same
        found.append(_audit(extent, f"epsilon-{epsilon}-audit", audited, 100, after=first))
    return found


def _compare(extent: Extent, name: str, how: tuple[str, ...], cost: float) -> Step:
    algorithm, *sent = how
    arguments = ("compare", "--dataset", "ml-100k", "--algorithm", algorithm, *sent, "--folds", str(extent.folds))
    return Step(name, (*arguments, *extent.settings, "--json", str(extent.out / f"{name}.json")), cost)


def _audit(
    extent: Extent, name: str, how: tuple[str, ...], cost: float, folder: Path | None = None, after: str = ""
) -> Step:
    watched = ("--users", str(extent.users), "--rounds", str(extent.rounds), "--workers", "1")
    settings = () if after else extent.settings  # a run's folder has them
    file = (folder or extent.out) / f"{name.removeprefix('more-')}.json"
    arguments = ("audit", "--algorithm", *how, "--dataset", "ml-100k", *settings, *watched, "--json", str(file))
    return Step(name, arguments, cost, after)


def run_all(wanted: Sequence[Step], workers: int, folder: Path) -> list[dict[str, object]]:
    """Run the steps, and say of each how long it took. What a step prints goes to its log."""
    waiting, done = sorted(wanted, key=lambda step: -step.cost), list[dict[str, object]]()
    running: dict[Future[tuple[int, float]], Step] = {}
    with ThreadPoolExecutor(workers) as pool:
        while waiting or running:
            unfinished = {step.name for step in (*waiting, *running.values())}
            for step in list(waiting):
                if len(running) < workers and step.after not in unfinished:
                    running[pool.submit(_run, step, folder)] = step
                    waiting.remove(step)
            over, _ = wait(running, return_when=FIRST_COMPLETED)
            done += [_told(future, running.pop(future)) for future in over]
    return done


def _run(step: Step, folder: Path) -> tuple[int, float]:
    log, started = folder / f"{step.name}.log", time.perf_counter()
    with log.open("w", encoding="utf-8") as file:
        environment = {**os.environ, **ONE_CORE}
        command = [sys.executable, "-m", "fedrecplus", *step.arguments]
        code = subprocess.run(command, env=environment, stdout=file, stderr=subprocess.STDOUT, check=False).returncode
    return code, time.perf_counter() - started


def _told(future: Future[tuple[int, float]], step: Step) -> dict[str, object]:
    code, seconds = future.result()
    how = "done" if code == 0 else f"FAILED ({code})"
    print(f"{step.name}: {how}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return {"name": step.name, "code": code, "seconds": seconds, "command": " ".join(step.arguments)}


def main() -> int:
    """Parse, run, and write down where and how long."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.frontier", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/frontier"))
    parser.add_argument("--users", type=int, default=Extent.users, help="people who are attacked")
    parser.add_argument("--rounds", type=int, default=Extent.rounds, help="rounds that the server takes notes of")
    parser.add_argument("--folds", type=int, default=Extent.folds)
    parser.add_argument("--workers", type=int, default=0, help="commands side by side; 0: one per core")
    parser.add_argument("--set", action="append", default=[], help="a setting of every command, to try them quickly")
    parser.add_argument("--only", default="", help="steps whose names begin so, or with one of several, by commas")
    wanted = parser.parse_args()
    settings = tuple(part for one in wanted.set for part in ("--set", one))
    extent = Extent(wanted.out, wanted.users, wanted.rounds, wanted.folds, settings=settings)
    logs = extent.more / "logs"
    for folder in (extent.out, extent.more):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    logs.mkdir()
    chosen = [step for step in steps(extent) if step.name.startswith(tuple(wanted.only.split(",")))]
    started = time.perf_counter()
    done = run_all(chosen, wanted.workers or core_count(), logs)
    machine = {"processor": platform.processor() or platform.machine(), "cores": core_count()}
    spent = {"machine": machine, "seconds": time.perf_counter() - started, "steps": done}
    (extent.more / "steps.json").write_text(json.dumps(spent, indent=1), encoding="utf-8")
    return max((int(str(one["code"])) for one in done), default=0)


if __name__ == "__main__":
    raise SystemExit(main())
