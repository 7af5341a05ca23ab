"""A run once more, from its folder, stopping at some rounds to look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fedrecplus import simulation
from fedrecplus.config import Config, load_config
from fedrecplus.data import FileOptions, Ratings, load, split
from fedrecplus.errors import UserError
from fedrecplus.simulation import Problem, SimulationState
from fedrecplus.training.fingerprint import fingerprint
from fedrecplus.training.recommender import Recommender
from fedrecplus.training.run_folder import CONFIG, RunFolder

LOOKS = 24
"""how many rounds are looked at: many early ones, where most happens, and few late ones"""


@dataclass(frozen=True)
class Case:
    """What a run trained on, and how."""

    folder: Path
    config: Config
    """with the step size that the run ended with"""
    training: Ratings
    fold: int | None

    def problem(self) -> Problem:
        """The simulation that the run was."""
        return simulation.prepare(self.training, self.config)


def open_run(folder: Path, dataset: str | None = None) -> Case:
    """A finished run's settings and training ratings; refuses other data than the run saw."""
    run = RunFolder(folder)
    result, data = run.result(), run.data()
    config = load_config(folder / CONFIG)
    if config.trainer != "federated":
        raise UserError(f"{folder} was trained in one place", "give a federated run: the theory is about rounds")
    config = replace(config, client=replace(config.client, learning_rate=result["learning_rate"]))
    name = dataset or data.get("dataset") or result["dataset"]
    ratings = load(name, options=FileOptions(**data.get("options", {})))
    fold = data.get("fold")
    training, test = (ratings, None) if fold is None else split(ratings, fold, data.get("folds", 5), config.seed)
    if fingerprint(training, test) != data.get("fingerprint"):
        raise UserError(f"{name} is not what {folder} was trained on", "name the same ratings with --dataset")
    return Case(folder, config, training, fold)


def looked_at(rounds: int, looks: int = LOOKS) -> list[int]:
    """The rounds to stop before, spread evenly on a logarithmic scale.

    >>> looked_at(100, 5)
    [0, 1, 3, 10, 32]
    """
    wanted = np.geomspace(1, max(rounds, 1), looks)[: looks - 1] if rounds > 1 else np.array([])
    return sorted({0, *(int(number) for number in np.rint(wanted) if number < rounds)})


def states(
    problem: Problem, looks: int = LOOKS, tell: Callable[[int], None] = lambda _: None
) -> Iterator[SimulationState]:
    """The states before the rounds that are looked at, and the last one."""
    from fedrecplus import fast  # here: it brings numba, which takes its time

    rounds = problem.config.server.rounds
    stops = set(looked_at(rounds, looks))
    state = simulation.start(problem, np.dtype(problem.config.precision).type)
    while state.server.round < rounds:
        if state.server.round in stops:
            yield state
        state, _ = fast.simulate_round(problem, state)
        tell(state.server.round)
    yield state


def strayed(case: Case, problem: Problem, last: SimulationState) -> float:
    """Largest difference between the table of the run and that of the rerun: zero where it is the same training."""
    V = Recommender.load(case.folder).model.V
    return float(np.abs(V.astype(np.float64) - simulation.prediction_table(problem, last)).max())
