"""The same search for every member of the family: the same points, one validation cut, the test fold never seen."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tomli_w
from scipy.stats import qmc

from fedrecplus.config import Config, assign, check, value_of
from fedrecplus.engines import Diverged
from fedrecplus.errors import UserError
from fedrecplus.experiments.family.members import member_config, members_in
from fedrecplus.experiments.validation import Cut, evaluations
from fedrecplus.workers import Stop, Tell, run_tasks

_FEDREC = {
    "model.regularisation": (0.001, 0.1),
    "model.learning_rate": (0.05, 0.8),
    "model.learning_rate_decay": (0.9, 1.0),
}
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "mf": {
        "model.regularisation": (0.005, 0.32),
        "model.learning_rate": (0.003, 0.05),
        "server_optimizer.learning_rate": (7.5, 120.0),
    },
    "pmf": _FEDREC,
    "svdpp": _FEDREC,
    "reconstruction": {"model.noise": (0.4, 3.6), "model.item_prior": (8.0, 120.0)},
}
"""what is searched, both ends of a logarithmic range around the fixed settings"""
ROUNDS = dict.fromkeys(("mf", "pmf", "svdpp"), "server.rounds")
"""models that take steps, whose number of rounds is chosen from one training: the round with the lowest error"""
POINTS = 32
_DIGITS = 3


@dataclass(frozen=True)
class TunedMember:
    """What did best for one member."""

    name: str
    settings: dict[str, Any]
    rmse: float
    fixed_rmse: float
    """of the fixed settings on the same cut"""
    failed: int
    """points that diverged"""


def points(model: str, count: int = POINTS) -> list[tuple[str, ...]]:
    """The settings to try: the fixed ones, then a Sobol sequence over the ranges. After: Sobol' 1967."""
    ranges = RANGES[model]
    low, high = np.log(np.array(list(ranges.values()))).T
    drawn = qmc.Sobol(len(ranges), scramble=True, rng=0).random(count)[: count - 1]
    spread = np.exp(low + drawn * (high - low))
    return [(), *(tuple(f"{path}={x:.{_DIGITS}g}" for path, x in zip(ranges, row, strict=True)) for row in spread)]


def tune_family(
    cuts: Sequence[Cut],
    model: str,
    *,
    settings: Sequence[str] = (),
    members: Sequence[str] | None = None,
    count: int = POINTS,
    workers: int = 0,
    stop: Stop = lambda: False,
    done: Callable[[str, tuple[str, ...], float, int], None] = lambda *_: None,
) -> list[TunedMember]:
    """Train every member at every point; the mean over cuts counts. Points that diverge have lost."""
    members = members_in(model) if members is None else members
    jobs = [(name, point) for point in points(model, count) for name in members]
    errors: dict[str, list[tuple[float, int, tuple[str, ...]]]] = {name: [] for name in members}
    work = functools.partial(_curve, list(cuts), model, tuple(settings))
    for index, (rmse, rounds) in run_tasks(work, jobs, workers, stop=stop):
        name, point = jobs[index]
        errors[name].append((rmse, rounds, point))
        done(name, point, rmse, rounds)
    return [_best(name, model, settings, tried) for name, tried in errors.items()]


def _curve(
    cuts: list[Cut], model: str, settings: tuple[str, ...], job: tuple[str, tuple[str, ...]], _: Tell, stop: Stop
) -> tuple[float, int]:
    """The error at one point, and after how many rounds: the last, or the best where steps are constant."""
    name, point = job
    config = check(assign(member_config(name, model, settings=settings), point))
    try:
        curves = [list(evaluations(cut, config, stop)) for cut in cuts]
    except Diverged:
        return np.inf, config.server.rounds
    means = {points[0][0]: float(np.mean([error for _, error in points])) for points in zip(*curves, strict=True)}
    rounds = min(means, key=means.__getitem__) if model in ROUNDS else config.server.rounds
    return means[rounds], rounds


def _best(
    name: str, model: str, settings: Sequence[str], tried: list[tuple[float, int, tuple[str, ...]]]
) -> TunedMember:
    rmse, rounds, point = min(tried)
    if not np.isfinite(rmse):
        raise UserError(f"{name} diverged at all {len(tried)} points", "search smaller steps")
    config: Config = assign(member_config(name, model, settings=settings), [*point, f"server.rounds={rounds}"])
    chosen = [*RANGES[model], *([ROUNDS[model]] if model in ROUNDS else [])]
    fixed = next(error for error, _, at in tried if at == ())
    values = {path: value_of(config, path) for path in chosen}
    return TunedMember(name, values, rmse, fixed, sum(not np.isfinite(error) for error, *_ in tried))


def to_toml(content: dict[str, Any], dataset: str, model: str, tuned: Sequence[TunedMember]) -> str:
    """Earlier settings with these in their place, as ``family.toml`` has them."""
    of_model = {member.name: member.settings for member in tuned}
    return tomli_w.dumps({**content, dataset: {**content.get(dataset, {}), model: of_model}})
