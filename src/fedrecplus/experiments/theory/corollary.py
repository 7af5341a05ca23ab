"""The corollary: step sizes that follow the number of rounds T, trainings of several T, and the rate that they show."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, assign
from fedrecplus.data import Ratings
from fedrecplus.engines import engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.experiments.comparison import Table
from fedrecplus.experiments.theory.constants import Constants, constants
from fedrecplus.experiments.theory.study import LOOKS, look_at_states, open_run
from fedrecplus.experiments.theory.theorem import bound, conditions
from fedrecplus.workers import Stop, Tell, run_tasks

LEAST_HORIZONS = 3
"""a slope through fewer points says nothing"""


@dataclass(frozen=True)
class Horizon:
    """One training of T rounds with the corollary's steps."""

    rounds: int
    learning_rate: float
    server_rate: float
    smallest: float
    """min_t ‖∇f(x_t)‖² over the rounds that were looked at"""
    floor: float
    """2χ²σ_G², which no number of rounds makes smaller"""
    bound: float | None
    """the theorem's; None where a condition fails"""
    failed: list[str]


def corollary_steps(rounds: int, first: int, epochs: int, k: Constants) -> tuple[float, float]:
    """η_L = a/(√T K L) and η = b√(K·clients), a and b nearly as large as the theorem allows at the first of the T.

    LKη_L is at most ⅛ there and leaves c ≥ ¼, ηη_L L is at most 1. Longer trainings have a smaller η_L and the same η.

    Paper: Corollary 1, Theorem 1
    """
    smooth_steps = 0.9 * min(1.0 / 8.0, (40.0 * (k.A**2 + 1.0) * (k.chi_pw * k.A**2 + 1.0)) ** -0.5)
    return smooth_steps * (first / rounds) ** 0.5 / (k.L * epochs), 0.9 * epochs / smooth_steps


def check_horizons(horizons: Sequence[int]) -> None:
    """Refuse too few numbers of rounds, and too few rounds."""
    if len(set(horizons)) < LEAST_HORIZONS or min(horizons) < LEAST_HORIZONS:
        raise UserError("the corollary wants several T", "give three numbers of rounds or more, such as 10,100,1000")


def corollary(
    folder: Path,
    horizons: Sequence[int],
    k: Constants,
    *,
    dataset: str | None = None,
    looks: int = LOOKS,
    allow: Collection[str] = (),
    workers: int = 1,
) -> dict[str, Any]:
    """Train a run's config anew for each number of rounds, with the corollary's steps. For JSON."""
    check_horizons(horizons)
    case, first, wanted = open_run(folder, dataset, allow), min(horizons), sorted(set(horizons), reverse=True)
    work = functools.partial(_train, case.training, case.config, first, k, looks)
    trained = sorted((each for _, each in run_tasks(work, wanted, workers)), key=lambda each: each.rounds)
    T, smallest = np.array([(each.rounds, each.smallest) for each in trained]).T
    slope = float(np.polyfit(np.log(T), np.log(smallest), 1)[0])
    return {"horizons": [asdict(each) for each in trained], "slope": slope, "says": _says(trained, slope)}


def _train(
    training: Ratings, config: Config, first: int, k: Constants, looks: int, rounds: int, *_: Tell | Stop
) -> Horizon:
    rate, eta = corollary_steps(rounds, first, config.model.local_epochs, k)
    steps = (f"model.learning_rate={rate}", f"server_optimizer.learning_rate={eta}", f"server.rounds={rounds}")
    config = assign(config, steps)
    seen = look_at_states(engine_of(config), prepare(training, config), looks)[0]
    own = constants(seen)
    failed = [condition.what for condition in conditions(own, config) if not condition.holds]
    limit = None if failed else bound(own, config, seen[0].objective, rounds)["bound"]
    smallest = min(each.gradient for each in seen)
    return Horizon(rounds, rate, eta, smallest, 2.0 * own.chi_wp * own.sigma_G**2, limit, failed)


def _says(trained: Sequence[Horizon], slope: float) -> list[str]:
    """The measured rate beside the corollary's, and where its conditions fail."""
    first, last = trained[0], trained[-1]
    lines = [
        f"With the corollary's steps, T from {first.rounds} to {last.rounds}: min ‖∇f‖² goes from {first.smallest:.4g} "
        f"to {last.smallest:.4g}, as T to the power {slope:.2f}. The corollary's slowest term that vanishes has −0.50."
    ]
    failed = {each.rounds: each.failed for each in trained if each.failed}
    lines += [f"T = {T}: {'; '.join(broken)} does not hold." for T, broken in failed.items()]
    floors = [each.floor for each in trained if each.floor > each.smallest]
    if floors:
        lines.append(
            f"Its floor, 2χ²σ_G², is {min(floors):.4g} and more: above what was measured, it limits nothing here."
        )
    return lines


def horizons_table(content: dict[str, Any]) -> Table:
    """From the JSON: a row per T."""
    rows = []
    for each in content["horizons"]:
        figures = [each[name] for name in ("learning_rate", "server_rate", "smallest", "floor", "bound")]
        rows.append([str(each["rounds"]), *("–" if figure is None else f"{figure:.3g}" for figure in figures)])
    return ("T", "η_L", "η", "min ‖∇f‖²", "floor 2χ²σ_G²", "bound"), rows
