"""A run once more, from its folder, with the states of some of its rounds."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedrecplus.config import Config, load_config
from fedrecplus.data import FileOptions, Ratings, load, split
from fedrecplus.data.joining import together
from fedrecplus.engines import Engine, Problem, SimulationState, rounds
from fedrecplus.errors import UserError
from fedrecplus.experiments.requirements import require_federation
from fedrecplus.training.recommender import Recommender
from fedrecplus.training.run_folder import CONFIG, RunFolder, fingerprint

LOOKS = 24
"""how many rounds are looked at: many early ones, where most happens, and few late ones"""


@dataclass(frozen=True)
class StudiedRun:
    """What a run trained on, how, and what it came to."""

    config: Config
    """with the step size that the run ended with"""
    training: Ratings
    fold: int | None
    run: Recommender


def open_run(folder: Path, dataset: str | None = None, allow: Collection[str] = ()) -> StudiedRun:
    """A finished run; refuses other data than the run saw, and models that the theorem isn't about."""
    result, data = RunFolder(folder).result(), RunFolder(folder).data()
    config = load_config(folder / CONFIG, allow)
    require_federation(config, model="mf")
    if config.server.rounds < 3:
        raise UserError(f"{folder} has fewer than three rounds", "train longer")
    config = replace(config, model=config.model.with_settings(learning_rate=result["learning_rate"]))
    name = dataset or data.get("dataset") or result["dataset"]
    ratings = load(name, options=FileOptions(**data.get("options", {})))
    fold = data.get("fold")
    if data.get("test"):
        ratings = together(ratings, load(data["test"], like=ratings))
    how = (data.get("folds", 5), config.seed, data.get("split", "random"))
    training, test = (ratings, None) if fold is None else split(ratings, fold, *how)
    if fingerprint(training, test) != data.get("fingerprint"):
        raise UserError(f"{name} is not what {folder} was trained on", "name the same ratings with --dataset")
    return StudiedRun(config, training, fold, Recommender.load(folder, allow))


def looked_at(count: int, looks: int = LOOKS) -> list[int]:
    """The rounds to look at before they begin, evenly on a logarithmic scale.

    >>> looked_at(100, 5)
    [0, 1, 3, 10, 32]
    """
    wanted = np.rint(np.geomspace(1, count, looks))
    return sorted({0, *(int(number) for number in wanted if number < count)})


def states(engine: Engine, problem: Problem, looks: int = LOOKS) -> Iterator[SimulationState]:
    """The states before the rounds that are looked at, and the last one."""
    count = problem.config.server.rounds
    stops, start = {*looked_at(count, looks), count}, engine.start(problem)
    yield start
    yield from (state for state, _ in rounds(engine, problem, start) if state.server.round in stops)
