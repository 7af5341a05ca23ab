"""Training with a server that takes notes. Recording is the only part of the audit that runs the real clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.audit.scoring import AuditTruth
from fedrecplus.audit.transcript import Transcript
from fedrecplus.engines import Engine, Problem, SimulationState, engine_of, message_of, rounds
from fedrecplus.randomness import subkey, uniform

FEWEST_RATINGS = 5
"""clients with fewer are not watched: of two or three ratings there is little to score"""
CROWD = 2000
"""clients whose sets of rows are noted in one round, for what attackers learn from everybody together"""


@dataclass(frozen=True)
class Recording:
    """A transcript, the truth behind it, and the state that training ended in."""

    transcript: Transcript
    truth: AuditTruth
    state: SimulationState
    bytes_up_per_client_round: float


def schedule(total: int, recorded: int) -> tuple[int, ...]:
    """Which rounds to record: half of them from the start on, the others in pairs spread over the rest.

    Successive rounds come first and in pairs since several attacks need the step from one to the next.

    >>> schedule(100, 10)
    (0, 1, 2, 3, 4, 51, 52, 97, 98, 99)
    """
    if recorded >= total:
        return tuple(range(total))
    first = min(max(recorded - recorded // 2, 2), recorded)
    chosen = set(range(first))
    places = np.linspace(total - 1, first, (recorded - first) // 2, endpoint=False).round().astype(int)
    chosen.update(int(t) - back for t in places for back in (0, 1))
    for t in range(total - 1, -1, -1):
        if len(chosen) >= recorded:
            break
        chosen.add(t)
    return tuple(sorted(chosen))


def watched(problem: Problem, users: int) -> NDArray[np.int64]:
    """The clients that are attacked: a random choice, the same for every scheme of one seed."""
    able = np.flatnonzero(np.diff(problem.ratings.indptr) >= FEWEST_RATINGS)
    draws = uniform(subkey(problem.config.seed, "watched"), able)
    return np.sort(able[np.argsort(draws, kind="stable")[:users]])


def record(problem: Problem, recorded: int, users: int, progress: Callable[[int], None] = lambda _: None) -> Recording:
    """Train to the end and write down what the server saw in some rounds. Raises ``engines.Diverged``."""
    engine, clients, total = engine_of(problem.config), watched(problem, users), problem.config.server.rounds
    # in simulation the clients' secrets come from the seed, so the seed is no public setting
    step = problem.ratings.scale.standard_step
    transcript = Transcript(replace(problem.config, seed=0), problem.public, step)
    state, wanted, orders = (
        engine.start(problem),
        schedule(total, recorded),
        np.zeros(problem.ratings.clients, np.int64),
    )
    loop, bytes_up, sent = rounds(engine, problem, state), 0, 0
    for t in range(total):
        if t in wanted:
            with np.errstate(over="ignore", invalid="ignore"):  # the loop finds divergence a round later
                note(transcript, engine, problem, state, clients, orders)
        orders[problem.cohort(t)] += 1
        state, report = next(loop)
        bytes_up, sent = bytes_up + report.bytes_up, sent + report.clients
        progress(t + 1)
    return Recording(transcript, truth_of(problem, clients), state, bytes_up / max(sent, 1))


def note(
    transcript: Transcript,
    engine: Engine,
    problem: Problem,
    state: SimulationState,
    clients: NDArray[np.int64],
    orders: NDArray[np.int64],
) -> None:
    """Write down what the server sees of the state's next round: the channel decides. The state stays as it is."""
    channel, private, cohort = problem.config.channel.part, state.private, problem.cohort(state.server.round)
    message = message_of(problem, state)
    if channel.VIEW == "sums":
        transcript.note(message, [], orders)
        transcript.sums[message.round] = engine.sums(problem, private, message, cohort)[0]
        return
    present = np.intersect1d(clients, cohort)
    # clients that talk to each other first send what depends on all of them
    asked = cohort if channel.has("exchange") else present
    uploads, _ = engine.uploads(problem, private, message, asked)
    transcript.note(message, [upload for upload in uploads if upload.client in present], orders)
    if not transcript.crowd:
        others = np.setdiff1d(cohort, clients)
        draws = uniform(subkey(problem.config.seed, "crowd"), others)
        crowd = np.concatenate([present, others[np.argsort(draws, kind="stable")]])[:CROWD]
        transcript.crowd = engine.item_sets(problem, private, message, np.sort(crowd))


def truth_of(problem: Problem, clients: NDArray[np.int64]) -> AuditTruth:
    """What the scorer compares guesses with."""
    of_client = {int(client): problem.ratings.of(int(client)) for client in clients}
    values, counts = np.unique(problem.ratings.standard_values, return_counts=True)
    return AuditTruth(of_client, problem.ratings.scale.standard_step, float(values[counts.argmax()]))
