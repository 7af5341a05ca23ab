"""``python -m benchmarks.against /another/checkout/src``: trainings of presets by this code and by another, in turn.

Each source has a process of its own, which trains every preset once before anything is measured, so that compiling is
left out. Then the two train in turn on fold 0, and the median of the ratios of their processor seconds is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

_OWN = Path(__file__).parents[1] / "src"
_ONE_THREAD = {"FEDRECPLUS_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""of each: processor seconds are compared, and threads that wait for each other would spend some"""
_PRESETS = "fedmf,fedmf-vanilla,pmf,fedrec,fedrec-hf,fedrec++,fedrec+,fedrec+private,fedrec+paper,fedrec+secure"


class Trainer:
    """A process that trains with one of the sources, when it is asked to."""

    def __init__(self, source: Path, dataset: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(source), **_ONE_THREAD}
        command = [sys.executable, __file__, "--train", dataset, str(source)]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def train(self, preset: str) -> tuple[float, float]:
        """Processor seconds and RMSE of a training."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{preset}\n")
        self.process.stdin.flush()
        seconds, rmse = json.loads(self.process.stdout.readline())
        return seconds, rmse


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("source", type=Path)
    reader.add_argument("--presets", default=_PRESETS)
    reader.add_argument("--dataset", default="ml-100k")
    reader.add_argument("--repeats", type=int, default=7)
    chosen = reader.parse_args()
    ours, other = (Trainer(source, chosen.dataset) for source in (_OWN, chosen.source.absolute()))
    print("| preset | this code | the other | ratio, median | RMSE here | there |\n|---|---|---|---|---|---|")
    for preset in chosen.presets.split(","):
        results = [trainer.train(preset)[1] for trainer in (ours, other)]
        times = [(ours.train(preset)[0], other.train(preset)[0]) for _ in range(chosen.repeats)]
        ratio = statistics.median(here / there for here, there in times)
        here, there = (statistics.median(seconds) for seconds in zip(*times, strict=True))
        figures = f"{ratio:.2f} | {results[0]:.4f} | {results[1]:.4f}"
        print(f"| `{preset}` | {here:.2f} s | {there:.2f} s | {figures} |", flush=True)


def work(dataset: str) -> None:
    """Train whatever preset the next line of the standard input names."""
    from fedrecplus import data  # here: which package this is, the environment says
    from fedrecplus.config import preset
    from fedrecplus.training import train

    training, test = data.split(data.load(dataset), 0)
    for line in sys.stdin:
        started = time.process_time()
        run = train(training, test, preset(line.strip()))
        print(json.dumps([time.process_time() - started, run.rmse]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        work(sys.argv[2])
    else:
        main()
