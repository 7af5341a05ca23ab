"""Many persons of one place in one round: by the fast engine, or one after the other through the client function.

A silo is a small simulation whose seed is the store's secret: persons' secrets and start values follow from it as in
``simulation/problem.py``, so the fast engine runs it unchanged.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fedrecplus.config import Config
from fedrecplus.data.ratings import Ratings, narrowest
from fedrecplus.deploy.catalogue import ItemCatalogue
from fedrecplus.deploy.participation import Participant
from fedrecplus.device import Device, PseudoItems
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.randomness import keys, subkey
from fedrecplus.rounds import ServerState, client_round
from fedrecplus.rounds.client import weigh
from fedrecplus.rounds.filling import pseudo_count
from fedrecplus.simulation import Problem, SimulationState


def device_of(one: Participant, secret: int, step: float) -> Device:
    """One person as the client function takes it. ``secret`` is the store's."""
    own = int(keys(subkey(secret, "secrets"), np.array([one.person]))[0])
    return Device(one.person, one.items, one.ratings, step, one.U, own, one.kept)


def run_round(
    broadcast: Broadcast, people: list[Participant], secret: int, catalogue: ItemCatalogue, settings: Config
) -> tuple[list[Upload], list[Participant]]:
    """A round of everybody here; a single person, or where the settings say so, through the readable function."""
    if len(people) > 1 and settings.engine == "fast":
        return _fast_round(broadcast, people, secret, catalogue, settings)
    uploads, after = [], []
    for one in people:
        upload, device = client_round(broadcast, device_of(one, secret, catalogue.scale.standard_step), settings)
        uploads.append(upload)
        after.append(replace(one, U=device.U, kept=device.kept))
    return uploads, after


def _fast_round(
    broadcast: Broadcast, people: list[Participant], secret: int, catalogue: ItemCatalogue, settings: Config
) -> tuple[list[Upload], list[Participant]]:
    from fedrecplus.fast.uploads import uploads_of  # here: numba takes a second that one person need not wait for

    problem = _problem(broadcast, people, catalogue, replace(settings, seed=secret))
    state = _state(problem, broadcast, people)
    state, uploads = uploads_of(problem, state, np.array([one.person for one in people]))
    after = [_after(problem, state, one) for one in people]
    return [weigh(upload, broadcast, settings) for upload in uploads], after


def _problem(broadcast: Broadcast, people: list[Participant], catalogue: ItemCatalogue, settings: Config) -> Problem:
    """The silo's ratings as a problem; numbers between those of its persons are clients without ratings."""
    clients, items = max(one.person for one in people) + 1, len(broadcast.V)
    rated, pseudo = np.zeros(clients, dtype=np.int64), np.zeros(clients, dtype=np.int64)
    for one in people:
        rated[one.person] = len(one.items)
        count = pseudo_count(len(one.items), items, settings.pseudo_items)
        pseudo[one.person] = count if one.kept is None else len(one.kept.items)
    values = catalogue.scale.restore(np.concatenate([one.ratings for one in people]))
    ratings = Ratings(
        "silo", catalogue.scale, _starts(rated), np.concatenate([one.items for one in people]).astype(narrowest(items)),
        catalogue.scale.codes(values), np.arange(clients), np.arange(items),
    )  # fmt: skip
    return Problem(settings, ratings, broadcast.public, broadcast.mean, _starts(pseudo))


def _state(problem: Problem, broadcast: Broadcast, people: list[Participant]) -> SimulationState:
    dtype: Any = np.dtype(problem.config.precision).type
    V, spread = broadcast.V.astype(dtype), broadcast.last_spread.astype(dtype)
    places = 0 if problem.config.pseudo_items.redraw else int(problem.pseudo_indptr[-1])
    state = SimulationState(
        server=ServerState(broadcast.round, V, broadcast.last_step.astype(dtype), spread, []),
        U=np.zeros((problem.ratings.clients, problem.shape.u_columns), dtype=dtype),
        drawn=np.zeros(problem.ratings.clients, dtype=bool),
        pseudo_items=np.zeros(places, dtype=problem.ratings.items.dtype),
        virtual_ratings=np.zeros(0 if problem.config.virtual_ratings.refresh else places, dtype=dtype),
    )
    for one in people:
        state.U[one.person] = one.U
        if one.kept is not None and places:
            here = slice(problem.pseudo_indptr[one.person], problem.pseudo_indptr[one.person + 1])
            state.drawn[one.person] = True
            state.pseudo_items[here] = one.kept.items
            if state.virtual_ratings.size:
                state.virtual_ratings[here] = one.kept.ratings
    return state


def _after(problem: Problem, state: SimulationState, one: Participant) -> Participant:
    kept = None
    if not problem.config.pseudo_items.redraw:
        here = slice(problem.pseudo_indptr[one.person], problem.pseudo_indptr[one.person + 1])
        items = state.pseudo_items[here].astype(np.int64)
        refreshed = state.virtual_ratings.size == 0
        kept = PseudoItems(items, np.zeros(len(items)) if refreshed else state.virtual_ratings[here].astype(np.float64))
    return replace(one, U=state.U[one.person].astype(np.float64), kept=kept)


def _starts(counts: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
