"""Small finished runs to publish."""

from __future__ import annotations

from pathlib import Path

import fedrecplus as fr
from tests.small_data import small_ratings


def finished_run(folder: Path, seed: int = 0, algorithm: str = "fedrec+") -> Path:
    """A run folder after two rounds of the readable engine; another seed gives another model."""
    training, test = fr.split(small_ratings(), fold=0)
    settings = ["server.rounds=2", "model.factors=4", "engine=reference", f"seed={seed}"]
    fr.train(training, test, fr.assign(fr.preset(algorithm), settings), out=folder)
    return folder
