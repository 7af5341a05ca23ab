"""An attacker that knows how it is weighed: it sends the last step back, and its wish with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.aggregation._joining import join
from fedrecplus.data.scale import STANDARD_HIGH
from fedrecplus.model import predict
from fedrecplus.parts import part
from fedrecplus.protocol import Upload
from fedrecplus.rounds.server import apply, spread_of, weights_of
from fedrecplus.simulation import Problem, SimulationState


@dataclass(frozen=True)
class Attack:
    """Who attacks, and what for."""

    attackers: NDArray[np.bool_]
    target: int | None
    """the item to push; None: the attackers only earn weight"""


def attacked_round(problem: Problem, state: SimulationState, attack: Attack) -> tuple[SimulationState, float | None]:
    """A round in which attackers' uploads are replaced, and the share of all weight that they got.

    The share is None under a rule that gives no weights.
    """
    from fedrecplus.fast.robust import join_all  # here: it brings numba, which takes its time
    from fedrecplus.fast.uploads import uploads_of

    server, config = state.server, problem.config
    state, uploads = uploads_of(problem, state, problem.taking_part(server.round))
    uploads = [
        forge(problem, state, upload, attack) if attack.attackers[upload.client] else upload for upload in uploads
    ]
    rule = part("aggregation", config.aggregation.rule)
    earned: float | None = None
    if hasattr(rule, "weight"):
        weights = weights_of(server, uploads, config)
        aggregate: NDArray[Any] = join(uploads, weights, server.V.shape, config.aggregation)
        earned = _share(uploads, weights, attack)
    else:
        aggregate = join_all(problem, state, uploads)
    moved = apply(server, aggregate, spread_of(uploads, server, config), config)
    return replace(state, server=moved), earned


def forge(problem: Problem, state: SimulationState, upload: Upload, attack: Attack) -> Upload:
    """The last step's rows instead of trained ones: no distance, so all the weight there is to earn.

    Where distances run over the whole table, so does the copy: a row that is not sent would count as one that differs.
    Where an item is to be pushed, its row gets what would make the attacker's own prediction the best rating at once.
    """
    whole = problem.config.aggregation.rows == "table"
    items = np.arange(len(state.server.V)) if whole else upload.items
    delta = state.server.last_step[items].astype(np.float64)
    place = np.searchsorted(items, -1 if attack.target is None else attack.target)
    if attack.target is not None and place < len(items) and items[place] == attack.target:
        U = state.U[upload.client].astype(np.float64)
        row = state.server.V[attack.target].astype(np.float64)
        missing = STANDARD_HIGH - float(predict(U, row[None, :], problem.mean)[0])
        delta[place] += missing * U[:-1] / max(float(U[:-1] @ U[:-1]), 1e-9)
    return replace(upload, items=items, delta=delta)


def _share(uploads: Sequence[Upload], weights: Sequence[float], attack: Attack) -> float:
    mine = sum(weight for upload, weight in zip(uploads, weights, strict=True) if attack.attackers[upload.client])
    return mine / max(sum(weights), 1e-300)
