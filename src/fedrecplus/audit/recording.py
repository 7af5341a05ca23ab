"""Training with a server that takes notes. Recording is the only part of the audit that runs the real clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedrecplus.arrays import Array, Items
from fedrecplus.audit.contributions import Contribution, Contributions
from fedrecplus.audit.item_regression import KnownSets
from fedrecplus.audit.transcript import Knowledge, Transcript
from fedrecplus.audit.truth import AuditTruth, somebody_else
from fedrecplus.engines import Engine, PrivateState, Problem, SimulationState, engine_of, message_of, rounds
from fedrecplus.parts import Channel
from fedrecplus.protocol import Broadcast, Sums, Upload
from fedrecplus.randomness import subkey, uniform
from fedrecplus.rounds import released, weights_of

Clients = NDArray[np.int64]
FEWEST_RATINGS = 5
"""clients with fewer are not watched: of two or three ratings there is little to score"""
MODELS = 5
"""the same people's sets in so many models are recorded, the attacked one included"""
LEFT_OUT = 0.01
"""of the ratings that another model's catalogue counts"""
RIDGE = 0.3
"""weight decay per person whose ratings are known, of the regression on them"""
CROWD = 2000
"""clients whose sets of rows are noted in one round, for what attackers learn from everybody together"""


@dataclass(frozen=True)
class Recording:
    """A transcript, the truth behind it, and the state that training ended in."""

    transcript: Transcript
    truth: AuditTruth
    state: SimulationState
    bytes_up_per_client_round: float
    contributions: Contributions
    """of the watched clients to the sums, where the server sees sums"""


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


def watched(problem: Problem, users: int, rounds: Sequence[int] = ()) -> Clients:
    """The clients that are attacked: a random choice, the same for every scheme of one seed.

    Of those who are in one of these rounds' cohorts, where rounds are given.
    """
    able = np.flatnonzero(np.diff(problem.ratings.indptr) >= FEWEST_RATINGS)
    if rounds and problem.config.cohort.fraction < 1.0:
        able = np.intersect1d(able, np.concatenate([problem.cohort(t) for t in rounds]))
    draws = uniform(subkey(problem.config.seed, "watched"), able)
    return np.sort(able[np.argsort(draws, kind="stable")[:users]])


def record(
    problem: Problem,
    recorded: int,
    users: int,
    progress: Callable[[int], None] = lambda _: None,
    watching: Sequence[int] = (),
    subtracts: bool = True,
) -> Recording:
    """Train to the end and write down what the server saw in some rounds. Raises ``engines.Diverged``.

    ``watching`` names the clients that are attacked; ``users`` drawn ones, where nobody does. ``subtracts``: whether
    some attacker knows everybody else's ratings, for whom sums are computed once more, exactly.
    """
    engine, total = engine_of(problem.config), problem.config.server.rounds
    wanted = schedule(total, recorded)
    clients = np.array(watching, dtype=np.int64) if watching else watched(problem, users, wanted)
    # in simulation the clients' secrets come from the seed, so the seed is no public setting
    step = problem.ratings.scale.standard_step
    truth = truth_of(problem, clients)
    contributions = Contributions(known_sets(problem), truth)
    transcript = Transcript(
        replace(problem.config, seed=0),
        problem.public,
        step,
        watched=tuple(clients.tolist()),
        knowledge=Knowledge(others=contributions, some=contributions.some),
    )
    state, orders = engine.start(problem), np.zeros(problem.ratings.clients, np.int64)
    if "lists" in transcript.shows and problem.config.hides_rows:
        transcript.models = sets_of_other_models(engine, problem, clients)
    loop, bytes_up, sent = rounds(engine, problem, state), 0, 0
    for t in range(total):
        if t in wanted:
            with np.errstate(over="ignore", invalid="ignore"):  # the loop finds divergence a round later
                note(transcript, contributions, engine, problem, state, orders, subtracts)
        orders[problem.cohort(t)] += 1
        state, report = next(loop)
        bytes_up, sent = bytes_up + report.bytes_up, sent + report.clients
        progress(t + 1)
    return Recording(transcript, truth, state, bytes_up / max(sent, 1), contributions)


def note(
    transcript: Transcript,
    contributions: Contributions,
    engine: Engine,
    problem: Problem,
    state: SimulationState,
    orders: Clients,
    subtracts: bool = True,
) -> None:
    """Write down what the server sees of the state's next round: the channel decides. The state stays as it is."""
    private, told = state.private, message_of(problem, state)
    cohort = problem.cohort(told.round)
    transcript.cohorts[told.round] = cohort
    problem, message, columns = _taking_part(problem, state)
    if "values" in transcript.shows:
        uploads = _seen(engine, problem, private, message, transcript)
        transcript.note(told, [replace(one, delta=_among(one.delta, columns, told)) for one in uploads], orders)
    else:
        transcript.note(told, _listed(engine, problem, private, message, transcript), orders)
        sums = engine.sums(problem, private, message, cohort)[0]
        asked = len(problem.asked(message.round))
        seen = released(sums, message.round, problem.public, problem.config, asked=asked)
        transcript.sums[message.round] = replace(seen, total=_among(seen.total, columns, told))
        watched = np.array(transcript.watched, dtype=np.int64)
        sent = _contributed(engine, problem, private, message, watched)
        contributions.of_round[message.round] = _all_among(sent, columns, told)
        if subtracts:
            exact, own = _recomputed(transcript, engine, problem, private, message)
            contributions.recomputed[message.round] = replace(exact, total=_among(exact.total, columns, told))
            contributions.noiseless[message.round] = _all_among(own, columns, told)
    if not transcript.crowd and "lists" in transcript.shows:
        present = np.intersect1d(transcript.watched, cohort)
        others = np.setdiff1d(cohort, transcript.watched)
        draws = uniform(subkey(problem.config.seed, "crowd"), others)
        crowd = np.concatenate([present, others[np.argsort(draws, kind="stable")]])[:CROWD]
        transcript.crowd = _sets(engine, problem, private, message, np.sort(crowd))
        if "values" in transcript.shows and not problem.config.channel.exchanges:
            uploads, _ = engine.uploads(problem, private, message, np.sort(crowd))
            transcript.crowd_sent = {one.client: transcript.as_noted(one, message.round, orders) for one in uploads}


def sets_of_other_models(engine: Engine, problem: Problem, clients: Clients) -> list[dict[int, Items]]:
    """Which rows clients upload to models over catalogues that lack one rating in a hundred, each another one.

    As devices do that draw a set for each model: the secret is the same, and so is the rule.
    """
    found = []
    for number in range(1, MODELS):
        draws = np.random.default_rng([problem.config.seed, number])
        fewer = draws.binomial(problem.public.popularity, 1.0 - LEFT_OUT).astype(np.int64)
        other = replace(problem, public=replace(problem.public, popularity=fewer))
        state = engine.start(other)
        found.append(_sets(engine, other, state.private, message_of(other, state), clients))
    return found


def known_sets(problem: Problem) -> KnownSets:
    """Everybody's rated items, as somebody may be assumed to know them; of many people, some."""
    able = np.flatnonzero(np.diff(problem.ratings.indptr) > 0)
    first = watched(problem, CROWD)
    chosen = np.sort(np.concatenate([first, np.setdiff1d(able, first)[: CROWD - len(first)]]))
    rated = {int(client): problem.ratings.of(int(client))[0] for client in chosen}
    return KnownSets.learned(rated, problem.ratings.item_count, RIDGE)


def _seen(
    engine: Engine, problem: Problem, private: PrivateState, message: Broadcast, transcript: Transcript
) -> list[Upload]:
    """The watched clients' uploads of a round, as they are sent."""
    cohort = transcript.cohorts[message.round]
    present = np.intersect1d(transcript.watched, cohort)
    # clients that talk to each other first send what depends on all of them
    asked = cohort if problem.config.channel.exchanges else present
    uploads, _ = engine.uploads(problem, private, message, asked)
    return [upload for upload in uploads if upload.client in present]


def _listed(
    engine: Engine, problem: Problem, private: PrivateState, message: Broadcast, transcript: Transcript
) -> list[Upload]:
    """The same without values, where the server sees which rows came and no more."""
    if "lists" not in transcript.shows:
        return []
    present = np.intersect1d(transcript.watched, transcript.cohorts[message.round])
    sets = _sets(engine, problem, private, message, present)
    return [Upload(client, items, np.zeros((len(items), 0))) for client, items in sets.items()]


def _sets(
    engine: Engine, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
) -> dict[int, Items]:
    sets = engine.item_sets(problem, private, message, clients)
    visible, count = problem.config.visible_rows, problem.ratings.item_count
    return {client: visible(items, count) for client, items in sets.items()}


def _taking_part(problem: Problem, state: SimulationState) -> tuple[Problem, Broadcast, slice]:
    """The problem and message of the state's next round, and the columns that take part in it."""
    turn = problem.config.model.turn(problem.config, state.server.round)
    if turn is None:
        return problem, message_of(problem, state), slice(None)
    own = replace(state, server=state.server.of_columns(turn.columns))
    problem = replace(problem, config=turn.config)
    return problem, message_of(problem, own), turn.columns


def _among(table: Array, columns: slice, told: Broadcast) -> Array:
    """A table in its columns, among zeros of those that take no part."""
    wide = np.zeros((len(table), told.V.shape[1]), dtype=table.dtype)
    wide[:, columns] = table
    return wide


def _all_among(sent: dict[int, Contribution], columns: slice, told: Broadcast) -> dict[int, Contribution]:
    return {client: replace(one, total=_among(one.total, columns, told)) for client, one in sent.items()}


def _recomputed(
    transcript: Transcript, engine: Engine, problem: Problem, private: PrivateState, message: Broadcast
) -> tuple[Sums, dict[int, Contribution]]:
    """What whoever knows all ratings makes of the sums, and what the watched clients have in it.

    Clipping is recomputed, too: it is part of what a client does. Noise that devices or the server add to sums is not.
    """
    cohort = transcript.cohorts[message.round]
    rows = "rows" if problem.config.shows_rows else "whole"
    channel: Channel[Any] = Channel.choose("sums", rows=rows)
    plain = replace(problem, config=replace(problem.config, channel=channel))
    present = np.intersect1d(transcript.watched, cohort)
    return (
        engine.sums(plain, private, message, cohort)[0],
        _contributed(engine, plain, private, message, present),
    )


def _contributed(
    engine: Engine, problem: Problem, private: PrivateState, message: Broadcast, clients: Clients
) -> dict[int, Contribution]:
    uploads, _ = engine.uploads(problem, private, message, clients)
    found = {}
    for upload, weight in zip(uploads, weights_of(uploads, message, problem.config), strict=True):
        times = 1.0 if upload.weight is not None else weight  # a client that weighs itself sends w·Δ
        found[upload.client] = Contribution(upload.items, times * upload.delta, weight, times * upload.statistic)
    return found


def truth_of(problem: Problem, clients: Clients) -> AuditTruth:
    """What the scorer compares guesses with."""
    config, ratings = problem.config, problem.ratings
    step = ratings.scale.standard_step
    values, counts = np.unique(problem.ratings.standard_values, return_counts=True)
    # a list of blocks has rows that nobody chose to hide among: there, unrated items of the whole catalogue count
    some = np.unique(problem.ratings.of(int(clients[0]))[0]) if len(clients) else np.empty(0, np.int64)
    hidden = config.hides_rows and np.array_equal(config.visible_rows(some, problem.ratings.item_count), some)
    return AuditTruth(
        of_client={int(client): problem.ratings.of(int(client)) for client in clients},
        step=step,
        majority=float(values[counts.argmax()]),
        popularity=problem.ratings.item_counts(),
        usual=np.clip(1.0 + step * np.rint((problem.public.averages() - 1.0) / step), 1.0, 5.0),
        sums=np.asarray(np.bincount(ratings.items, ratings.standard_values, ratings.item_count), dtype=np.float64),
        against="pseudo" if hidden else "unrated",
        others=somebody_else(clients, config.seed),
    )
