"""``fedrecplus theory``: the convergence theorem beside one run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.config import Config, dumps, load_config
from fedrecplus.data import FileOptions, Ratings, concatenate, load, split
from fedrecplus.engines import Engine, Problem, SimulationState, engine_of, message_of, prepare, rounds
from fedrecplus.errors import UserError
from fedrecplus.experiments.comparison import Table
from fedrecplus.experiments.jobs import require_federation
from fedrecplus.experiments.theory import lemmas
from fedrecplus.experiments.theory.constants import Look, constants, look
from fedrecplus.experiments.theory.gradients import rows_at
from fedrecplus.experiments.theory.theorem import bound, conditions, fit, weighs
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.rounds import weights_of
from fedrecplus.training import CONFIG, Recommender, RunFolder, fingerprint

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
        ratings = concatenate(ratings, load(data["test"], like=ratings))
    split_by = (data.get("folds", 5), config.seed, data.get("split", "random"))
    training, test = (ratings, None) if fold is None else split(ratings, fold, *split_by)
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


_BEFORE = [
    "All constants are estimates: the worst of the rounds that were looked at, not bounds for every x.",
    "x is the shared table V, with each client's U fixed; L is local, max ‖U_u‖² + λ along the path, since matrix "
    "factorisation is not smooth in U and V together.",
    "f_* is taken as 0, below which no loss falls, so f₀ − f_* is not underestimated.",
]
"""what a reader must know before looking at the numbers"""


def theory(
    folder: Path, *, dataset: str | None = None, looks: int = LOOKS, allow: Collection[str] = ()
) -> dict[str, Any]:
    """Train the run again, estimate what the theorem assumes, and say whether it applies. All of it for JSON."""
    case = open_run(folder, dataset, allow)
    config, problem, engine = case.config, prepare(case.training, case.config), engine_of(case.config)
    seen, transport, last = look_at_states(engine, problem, looks)
    k = constants(seen)
    checked = conditions(k, config)
    failed = [condition.what for condition in checked if not condition.holds]
    rounds = [each.round + 1 for each in seen]  # T: the states x_0 to x_{T−1} have been seen
    smallest = list(np.minimum.accumulate([each.gradient for each in seen]))
    gap, curve = seen[0].objective, fit(rounds, smallest)
    return {
        "kind": "theory",
        "run": str(folder),
        "dataset": case.training.name,
        "fold": case.fold,
        "seed": config.seed,
        "algorithm": config.algorithm,
        "config": dumps(config),
        "rerun_differs_by": float(np.abs(case.run.model.V.astype(np.float64) - last.server.V).max()),
        "estimates": {**asdict(k), "f_0": gap, "f_star": 0.0, "f_last": seen[-1].objective},
        "conditions": [asdict(condition) for condition in checked],
        "applies": not failed,
        "rounds": rounds,
        "gradient": [each.gradient for each in seen],
        "smallest": smallest,
        "chi_wp": [each.chi_wp for each in seen],
        "bounds": None if failed else [bound(k, config, gap, t) for t in rounds],
        "fit": {**asdict(curve), "curve": curve.at(rounds), "theorem_floor": 2.0 * k.chi_wp * k.sigma_G**2},
        "lemmas": {
            "gaussian": lemmas.gaussian(rows_at(engine, problem, last), config.seed),
            "wasserstein": max(transport, key=lambda each: each["ratio"]) if transport else None,
            "gradient_distance": lemmas.gradient_distance(seen, k) if weighs(config) else None,
            "local_updates": lemmas.local_updates(seen, k, config),
        },
        "says": [*_BEFORE, _verdict(failed)],
    }


def conditions_table(content: Mapping[str, Any]) -> Table:
    """From the JSON: a row per condition of the theorem."""
    rows = [[each["what"], "yes" if each["holds"] else "no", each["found"]] for each in content["conditions"]]
    return ("condition", "holds", "found"), rows


def look_at_states(
    engine: Engine, problem: Problem, looks: int
) -> tuple[list[Look], list[dict[str, float]], SimulationState]:
    """Measures of the states, the Wasserstein bound at each where clients have weights, and the last state."""
    seen: list[Look] = []
    transport: list[dict[str, float]] = []
    config, size = problem.config, problem.config.model.settings.batch_size
    for state in states(engine, problem, looks):
        clients, message = problem.cohort(state.server.round), message_of(problem, state)
        uploads, _ = engine.uploads(problem, state.private, message, clients)
        p = weights(config, message, uploads)
        # a client that weighs itself sends w·Δ
        uploads = [replace(upload, delta=upload.delta / (upload.weight or 1.0)) for upload in uploads]
        moved = float(np.mean([(upload.delta**2).sum() for upload in uploads]))
        seen.append(look(state.server.round, rows_at(engine, problem, state), p, moved, size))
        if weighs(config):
            transport.append(lemmas.wasserstein_bound(uploads, p, state.server.V.shape, size))
    return seen, transport, state


def weights(config: Config, message: Broadcast, uploads: Sequence[Upload]) -> Array:
    """p_u of the next round, summing to one over all clients; uniform for rules that give no weights."""
    given = np.array(weights_of(uploads, message, config)) if weighs(config) else np.ones(len(uploads))
    p: Array = given / given.sum()
    return p


def _verdict(failed: Sequence[str]) -> str:
    if not failed:
        return "Every condition of the theorem holds for these estimates, so its bound is shown."
    fail = "this condition does not hold" if len(failed) == 1 else "these conditions do not hold"
    return f"The theorem says nothing about this run: {fail}: {'; '.join(failed)}. No bound is shown."
