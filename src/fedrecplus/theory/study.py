"""``fedrecplus theory``: one run under the theorem's eyes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.config import Config, dumps
from fedrecplus.errors import UserError
from fedrecplus.fast.uploads import uploads_of
from fedrecplus.protocol import Upload
from fedrecplus.rounds.server import weights_of
from fedrecplus.simulation import Problem, SimulationState
from fedrecplus.theory import lemmas
from fedrecplus.theory.constants import Look, constants, look
from fedrecplus.theory.local_gradients import rows_at
from fedrecplus.theory.rerun import LOOKS, Case, open_run, states, strayed
from fedrecplus.theory.theorem import bound, conditions, fit, weighs

Array = NDArray[np.float64]


def theory(
    folder: Path, *, dataset: str | None = None, looks: int = LOOKS, tell: Callable[[int], None] = lambda _: None
) -> dict[str, Any]:
    """Train the run again, estimate what the theorem assumes, and say whether it applies. All of it for JSON."""
    case = open_run(folder, dataset)
    if case.config.server.rounds < 3:
        raise UserError(f"{folder} has fewer than three rounds", "train longer")
    problem = case.problem()
    seen, transport, last = _look_around(problem, looks, tell)
    k = constants(seen)
    checked = conditions(k, case.config)
    applies = all(condition.holds for condition in checked)
    rounds = [each.round + 1 for each in seen]  # T: the states x_0 to x_{T−1} have been seen
    smallest = list(np.minimum.accumulate([each.gradient for each in seen]))
    gap = seen[0].objective
    curve = fit(rounds, smallest)
    return {
        "kind": "theory",
        "run": str(folder),
        "dataset": case.training.name,
        "fold": case.fold,
        "algorithm": case.config.algorithm,
        "config": dumps(case.config),
        "rerun_differs_by": strayed(case, problem, last),
        "estimates": {**k.to_dict(), "f_0": gap, "f_star": 0.0, "f_last": seen[-1].objective},
        "conditions": [condition.to_dict() for condition in checked],
        "applies": applies,
        "rounds": rounds,
        "gradient": [each.gradient for each in seen],
        "smallest": smallest,
        "bounds": [bound(k, case.config, gap, t) for t in rounds] if applies else None,
        "fit": {**curve.to_dict(), "curve": curve.at(rounds), "theorem_floor": 2.0 * k.chi_wp * k.sigma_G**2},
        "lemmas": {
            "gaussian": lemmas.gaussian(rows_at(problem, last), case.config.seed),
            "wasserstein": max(transport, key=lambda each: each["ratio"]) if transport else None,
            "gradient_distance": lemmas.gradient_distance(seen, k) if weighs(case.config) else None,
            "local_updates": lemmas.local_updates(seen, k, case.config),
        },
        "says": sentences(case, applies, [c.what for c in checked if not c.holds]),
    }


def _look_around(
    problem: Problem, looks: int, tell: Callable[[int], None]
) -> tuple[list[Look], list[dict[str, float]], SimulationState]:
    seen: list[Look] = []
    transport: list[dict[str, float]] = []
    state = None
    for state in states(problem, looks, tell):
        _, uploads = uploads_of(problem, state, problem.taking_part(state.server.round))
        p = weights(problem.config, state, uploads)
        moved = float(np.mean([(upload.delta**2).sum() for upload in uploads]))
        seen.append(look(problem, state.server.round, rows_at(problem, state), p, moved))
        if weighs(problem.config):
            transport.append(lemmas.wasserstein_bound(uploads, p, state.server.V.shape, problem.config))
    if state is None:
        raise UserError("a run without rounds has nothing to look at", "train longer")
    return seen, transport, state


def weights(config: Config, state: SimulationState, uploads: Sequence[Upload]) -> Array:
    """p_u of the round that comes, summing to one over all clients; uniform for rules that give no weights."""
    if not weighs(config):
        return np.full(len(uploads), 1.0 / len(uploads))
    given = np.array(weights_of(state.server, uploads, config))
    p: Array = given / given.sum()
    return p


def sentences(case: Case, applies: bool, failed: Sequence[str]) -> list[str]:
    """What a reader must know before looking at the numbers."""
    said = [
        "All constants are estimates: the worst of the rounds that were looked at, not bounds for every x.",
        "x is the shared table V and each client's U is taken as it stands; L is local, max ‖U_u‖² + λ along the path, "
        "since matrix factorisation is not smooth in U and V together.",
        "f_* is taken as 0, below which no loss falls, so f₀ − f_* is not underestimated.",
    ]
    if applies:
        return [*said, "Every condition of the theorem holds for these estimates, so its bound is shown."]
    fail = "this condition does not hold" if len(failed) == 1 else "these conditions do not hold"
    return [*said, f"The theorem says nothing about this run: {fail}: {'; '.join(failed)}. No bound is shown."]
