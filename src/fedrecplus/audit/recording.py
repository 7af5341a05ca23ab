"""Training with a server that takes notes. Recording is the only part of the audit that runs the real clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.scoring import Truth
from fedrecplus.audit.transcript import Transcript, Writer
from fedrecplus.fast import simulate_round
from fedrecplus.protocol import Broadcast, Upload
from fedrecplus.randomness import subkey, uniform
from fedrecplus.rounds import client_round
from fedrecplus.rounds.client import denoise, merge, noise_of
from fedrecplus.rounds.filling import pseudo_items
from fedrecplus.simulation import Problem, SimulationState, start
from fedrecplus.simulation.reference import denoiser_of, device_of, message_of

FEWEST_RATINGS = 5
"""clients with fewer are not watched: of two or three ratings there is little to score"""


CROWD = 2000
"""clients whose sets of rows are noted in one round, for what attackers learn from everybody together"""


LARGEST = 1e4
"""entries of V beyond this have left the scale for good"""


class Diverged(Exception):
    """Training blew up: there is nothing to attack."""


@dataclass(frozen=True)
class Recording:
    """A transcript, the truth behind it, and the state that training ended in."""

    transcript: Transcript
    truth: Truth
    state: SimulationState
    bytes_up_per_client_round: float


def schedule(rounds: int, recorded: int) -> tuple[int, ...]:
    """Which rounds to record: half of them from the start on, the others in pairs spread over the rest.

    Successive rounds come first and in pairs since several attacks need the step from one to the next.

    >>> schedule(100, 10)
    (0, 1, 2, 3, 4, 51, 52, 97, 98, 99)
    """
    if recorded >= rounds:
        return tuple(range(rounds))
    first = min(max(recorded - recorded // 2, 2), recorded)
    chosen = set(range(first))
    places = np.linspace(rounds - 1, first, (recorded - first) // 2, endpoint=False).round().astype(int)
    chosen.update(int(t) - back for t in places for back in (0, 1))
    for t in range(rounds - 1, -1, -1):
        if len(chosen) >= recorded:
            break
        chosen.add(t)
    return tuple(sorted(chosen))


def watched(problem: Problem, users: int) -> NDArray[np.int64]:
    """The clients that are attacked: a random choice, the same for every scheme of one seed."""
    able = np.flatnonzero(np.diff(problem.ratings.indptr) >= FEWEST_RATINGS)
    draws = uniform(subkey(problem.config.seed, "watched"), able)
    return np.sort(able[np.argsort(draws, kind="stable")[:users]])


def record(
    problem: Problem, folder: Path, rounds: int, users: int, progress: Callable[[int], None] = lambda _: None
) -> Recording:
    """Train to the end and write down what the server saw of the watched clients in some rounds."""
    clients = watched(problem, users)
    wanted = set(schedule(problem.config.server.rounds, rounds))
    # in simulation the clients' secrets come from the seed, so the seed is no public setting
    public_config = replace(problem.config, seed=0)
    writer = Writer(folder, public_config, problem.public, problem.mean, problem.ratings.scale.standard_step)
    orders = np.zeros(problem.ratings.clients, dtype=np.int64)
    state = start(problem)
    bytes_up = sent = 0
    for t in range(problem.config.server.rounds):
        present = problem.taking_part(t)
        if t in wanted:
            uploads = uploads_of(problem, state, np.intersect1d(clients, present))
            writer.write_round(message_of(problem, state), uploads, [int(orders[u.client]) for u in uploads])
        if t == min(wanted):
            writer.write_crowd(item_sets(problem, state, clients, present))
        state, report = simulate_round(problem, state)
        if not np.isfinite(state.server.V).all() or np.abs(state.server.V).max() > LARGEST:
            raise Diverged(f"diverged in round {t}")
        orders[present] += 1
        bytes_up += report.bytes_up
        sent += report.clients
        progress(t + 1)
    return Recording(Transcript(folder), truth_of(problem, clients), state, bytes_up / max(sent, 1))


def uploads_of(problem: Problem, state: SimulationState, clients: NDArray[np.int64]) -> list[Upload]:
    """What some clients upload in the state's next round. The state is not changed."""
    message = message_of(problem, state)
    uploads = [client_round(message, device_of(problem, state, int(c)), problem.config)[0] for c in clients]
    if problem.config.aggregation.denoising == 0:
        return uploads
    present = problem.taking_part(state.server.round)
    denoisers = problem.denoisers(present, state.server.round)
    return [_denoised(problem, state, message, u, present, denoisers) if u.client in denoisers else u for u in uploads]


def _denoised(
    problem: Problem,
    state: SimulationState,
    message: Broadcast,
    upload: Upload,
    present: NDArray[np.int64],
    denoisers: NDArray[np.int64],
) -> Upload:
    """What a denoising client sends instead: with the noise of all who picked it taken out."""
    messages = []
    for sender in np.setdiff1d(present, denoisers):
        if denoiser_of(problem, int(sender), denoisers, state.server.round) == upload.client:
            device = device_of(problem, state, int(sender))
            messages.append(noise_of(client_round(message, device, problem.config)[0], device))
    return denoise(upload, device_of(problem, state, upload.client), messages)


def item_sets(
    problem: Problem, state: SimulationState, clients: NDArray[np.int64], present: NDArray[np.int64]
) -> dict[int, NDArray[np.int64]]:
    """Which rows clients upload in the state's next round: the watched ones, and others up to ``CROWD`` in all."""
    message = message_of(problem, state)
    others = np.setdiff1d(present, clients)
    draws = uniform(subkey(problem.config.seed, "crowd"), others)
    chosen = np.concatenate([np.intersect1d(clients, present), others[np.argsort(draws, kind="stable")]])[:CROWD]
    sets = {}
    for client in np.sort(chosen):
        device = device_of(problem, state, int(client))
        sets[int(client)] = merge(device, pseudo_items(message, device, problem.config)).items
    return sets


def truth_of(problem: Problem, clients: NDArray[np.int64]) -> Truth:
    """What the scorer compares guesses with."""
    of_client = {int(client): problem.ratings.of(int(client)) for client in clients}
    values, counts = np.unique(problem.ratings.standard_values, return_counts=True)
    return Truth(of_client, problem.ratings.scale.standard_step, float(values[counts.argmax()]))
