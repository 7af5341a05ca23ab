"""What one or five malicious clients of a hundred do to others under secure sums, and what the alarm sees of it.

Nobody sees single uploads there. An honest device checks its bounds (``channel.bound``); a malicious one may stay
within them, or send any element of the ring; here, ten times the bound. Three goals: *promote*, which pushes ten
obscure films as a profile that loves them would, *fedrecattack*, which pushes one of them towards what it takes others'
tastes for, from a twentieth of their ratings, in numbers no larger than honest ones; and *spoil*, which pushes every
number of the table. A malicious client may also lie in the numbers beside the table: of how many persons it is, or of
what they weigh. Lists and errors are the other persons'; the alarm is the deployment's
(``deploy/server/bounds.py``), which looks at V. Masks cancel, so vectors are summed without. With ``channel.groups``
the cohort is summed in random groups.

    python -m benchmarks.poisoning [--preset fedrec+secure] [--persons 95] [--set channel.groups=8]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from fedrecplus import data
from fedrecplus.config import Config, assign, preset
from fedrecplus.data import Ratings
from fedrecplus.deploy.server.bounds import odd_steps, step_sizes
from fedrecplus.engines import Diverged, Problem, SimulationState, engine_of, prepare
from fedrecplus.engines.loop import look_for_divergence
from fedrecplus.engines.state import message_of
from fedrecplus.experiments.validation import Cut, tuning_cut
from fedrecplus.parts.channel import (
    Encoding,
    Grouping,
    RingVector,
    add_all,
    decode,
    encode,
    encoding_for,
    expected_in,
    joined,
    layout_of,
)
from fedrecplus.protocol import Upload
from fedrecplus.rounds import server_round
from fedrecplus.training.evaluation import Fallback, predictor_of, score
from fedrecplus.training.ranking import top_lists

TARGETS, POPULAR, LIST, BEYOND = 10, 30, 10, 10.0
FILMS = (60, 150, 400)
"""further films that FedRecAttack is tried with: one film says little"""
SAID = ("a million persons", "no weight", "much weight")
"""what a malicious client says of itself beside the table: bounds and divisors follow from the sum of it"""
KNOWN, HONEST = 0.05, 1.2
"""share of others' ratings that FedRecAttack knows; length of the longest honest rows of W"""


@dataclass(frozen=True)
class Attack:
    """What malicious clients do in every round."""

    goal: str
    """``none``, ``promote``, ``fedrecattack`` or ``spoil``"""
    clients: int = 0
    within: bool = True
    """whether they keep to the bound that an honest device checks"""
    film: int = 0
    """how many films have fewer raters than the one that ``fedrecattack`` pushes"""
    says: str = ""
    """a lie of ``SAID``; empty: that it is one person, whose weight is 1"""

    def __str__(self) -> str:
        how = f"{self.clients}, {'within the bound' if self.within else 'ten times the bound'}"
        how += f", says: {self.says}" * bool(self.says)
        how += f", a film more popular than {self.film}" * (self.film > 0)
        return "none" if self.goal == "none" else f"{self.goal}: {how}"


ATTACKS = (
    Attack("none"),
    *(Attack("promote", clients, within) for within in (True, False) for clients in (1, 5)),
    *(Attack("spoil", clients, within) for within in (True, False) for clients in (1, 5)),
    *(Attack("fedrecattack", 5, within) for within in (True, False)),
    *(Attack("fedrecattack", 5, True, film) for film in FILMS),
    *(Attack("promote", 1, says=says) for says in SAID),
)


@dataclass(frozen=True)
class Outcome:
    """What came of an attack, for the other persons."""

    rmse: float
    reached: float
    """share of persons with one of the promoted films in their list"""
    kept: float
    """share of the honest training's lists that is left"""
    alarms: int
    """rounds with an alarm"""
    named: float
    """share of the promoted films that some alarm named"""
    rounds: int
    why: str = ""
    """the training stopped"""


def targets_of(popularity: NDArray[np.int64], least: int, film: int = 0) -> NDArray[np.int64]:
    """The films that are promoted: the least rated of those that the sums don't leave out; first the one by rank."""
    able = np.flatnonzero(popularity >= least)
    ranked = able[np.argsort(popularity[able], kind="stable")]
    few = np.sort(ranked[:TARGETS])
    return np.concatenate([ranked[film : film + 1], few[1:]]) if film else few


def with_fakes(ratings: Ratings, fakes: range, targets: NDArray[np.int64]) -> Ratings:
    """The ratings with profiles of malicious persons: popular films at their averages, promoted ones at the top.

    After: Lam and Riedl 2004 (the average attack, by which shillers look like others)
    """
    counts, means = ratings.item_counts(), ratings.item_means()
    items = np.union1d(np.argsort(-counts, kind="stable")[:POPULAR], targets)
    scale = ratings.scale
    codes = np.rint((means[items] - scale.low) / scale.step).clip(0, scale.levels - 1)
    codes[np.isin(items, targets)] = scale.levels - 1
    lengths = np.diff(ratings.indptr)
    assert not lengths[fakes.start :].any(), "they come after all others"
    lengths[fakes.start : fakes.stop] = len(items)
    more = [np.tile(each, len(fakes)) for each in (items, codes)]
    return replace(
        ratings,
        indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(ratings.indptr.dtype),
        items=np.concatenate([ratings.items, more[0].astype(ratings.items.dtype)]),
        codes=np.concatenate([ratings.codes, more[1].astype(ratings.codes.dtype)]),
        timestamps=None,
        folds=None,
    )


def towards(problem: Problem, state: SimulationState) -> NDArray[np.float64]:
    """The mean of others' tastes in W's columns, from a twentieth of their ratings that an attacker knows.

    After: Rong et al. 2022 (FedRecAttack: user factors from public interactions, and the gradient of a target's scores)
    """
    ratings, model = problem.ratings, cast(Any, problem.config.model)  # has a table W for lists
    W = state.server.V[:, -model.settings.interaction_factors :]
    known = np.random.default_rng(0).random(len(ratings.items)) < KNOWN
    shared = model.shared_equations(W.astype(np.float64), problem.public)
    tastes = []
    for client in problem.able.tolist():
        mine = np.flatnonzero(known[ratings.indptr[client] : ratings.indptr[client + 1]])
        items, values = (table[mine] for table in ratings.of(client))
        tastes.append(model.person_factors(shared, items, values, problem.public)[0])
    return np.asarray(np.mean(tastes, axis=0))


def malicious(
    upload: Upload, attack: Attack, targets: NDArray[np.int64], encoding: Encoding, taste: NDArray[np.float64]
) -> RingVector:
    """One malicious client's vector, as far out as the bound lets it, or ten times as far."""
    reach = encoding.bound * (1.0 if attack.within else BEYOND)
    wanted = np.zeros((encoding.layout.items, encoding.layout.columns))
    if attack.goal == "fedrecattack":  # as long as the largest honest row, or as the bound lets it be
        far = HONEST if attack.within else encoding.bound
        wanted[targets[0], -len(taste) :] = far * taste / max(float(np.linalg.norm(taste)), 1e-12)
    elif attack.goal == "promote":  # what its profile asks for in the promoted rows, and nothing in others
        rows = np.isin(upload.items, targets)
        wanted[upload.items[rows]] = upload.delta[rows] * (reach / max(np.abs(upload.delta[rows]).max(), 1e-12))
    else:
        wanted[:] = reach * np.random.default_rng(0).choice([-1.0, 1.0], wanted.shape)
    nobody = Upload(upload.client, upload.items[:0], upload.delta[:0], 1.0, statistic=np.zeros(len(upload.statistic)))
    vector = encode(nobody, encoding, key=0)
    most = 2.0 ** (encoding.layout.bits - 1) - 1.0
    steps = np.clip(np.rint(np.nan_to_num(wanted) * encoding.scales[:, None]), -most, most).astype(np.int64)
    vector.updates[:] = steps.astype(vector.updates.dtype)  # modulo 2^bits
    _say(vector, attack.says, encoding)
    return vector


def _say(vector: RingVector, lie: str, encoding: Encoding) -> None:
    """A lie in the numbers beside the table: a weight so far below 0 that nearly none is left in all, or far above."""
    if lie == "a million persons":
        vector.weights[-1] = 1_000_000
    elif lie:
        persons = {"no weight": -94.9, "much weight": 700.0}[lie]
        steps = np.clip(np.rint(persons * encoding.weight_scale), -(2**31), 2**31 - 1)
        vector.weights[-2] = np.array([steps]).astype(np.int64).astype(vector.weights.dtype)[0]


def rounds_of(problem: Problem, attack: Attack, targets: NDArray[np.int64]) -> Iterator[SimulationState]:
    """The state before the first round, and after each."""
    config, engine = problem.config, engine_of(problem.config)
    state, options, clients = engine.start(problem), problem.config.channel.settings, problem.able
    yield state
    while state.server.round < config.server.rounds:
        message = message_of(problem, state, clients)
        uploads, private = engine.uploads(problem, state.private, message, clients)
        layout = layout_of(state.server.V.shape, len(uploads[0].statistic), options)
        bad = {upload.client for upload in uploads[len(uploads) - attack.clients :]} if attack.clients else set()
        taste = towards(problem, state) if attack.goal == "fedrecattack" else np.zeros(0)
        groups = []
        grouping = Grouping(options.groups, f"{config.seed} {state.server.round}".encode())
        for places in grouping.of(clients.tolist()):
            group = [uploads[place] for place in places]
            encoding = encoding_for(layout, problem.public, len(group), options)
            vectors = [
                malicious(upload, attack, targets, encoding, taste)
                if upload.client in bad
                else encode(upload, encoding, key=upload.client)
                for upload in group
            ]
            groups.append(decode(add_all(vectors, layout), encoding))
        sums, _ = joined(groups, expected_in(1, problem.public))
        state = SimulationState(server_round(state.server, sums, problem.public, config), private)
        look_for_divergence(state)
        yield state


def outcome(where: Cut, config: Config, attack: Attack, honest: NDArray[np.int64] | None) -> tuple[Outcome, Any]:
    """Train under an attack; the outcome, and everybody's lists."""
    problem = prepare(where.fitted, config)
    ring = config.channel.settings
    persons = problem.able
    targets = targets_of(problem.public.popularity, ring.fewest_contributors * ring.groups, attack.film)
    if attack.clients:
        first = int(persons[-1]) + 1
        ratings = with_fakes(where.fitted, range(first, first + attack.clients), targets)
        problem = prepare(ratings, config, problem.public)  # they came after the statistics
    lines, named, state, why = list[dict[str, Any]](), set[int](), None, ""
    try:
        for after in rounds_of(problem, attack, targets):
            if state is not None:
                steps = step_sizes(state.server.V, after.server.V)
                odd = odd_steps(lines, steps)
                named |= set(odd)
                lines.append({"largest_step": float(steps.max()), "odd": len(odd)})
            state = after
    except Diverged as diverged:
        why = str(diverged)
    assert state is not None
    predictor = predictor_of(engine_of(config), problem, state, lists=True)
    rmse = score(where.held_out, predictor.predict, Fallback.of(where.fitted, config)).rmse
    scores = predictor.scores(persons)
    for place, client in enumerate(persons.tolist()):
        scores[place, where.fitted.of(client)[0]] = -np.inf
    lists = top_lists(scores, problem.public.popularity, LIST)
    kept = (
        1.0 if honest is None else float(np.mean([np.isin(*pair).mean() for pair in zip(honest, lists, strict=True)]))
    )
    pushed = targets[:1] if attack.goal == "fedrecattack" else targets
    reached = float(np.isin(lists, pushed).any(axis=1).mean())
    alarms = sum(line["odd"] > 0 for line in lines)
    return Outcome(rmse, reached, kept, alarms, float(np.isin(targets, list(named)).mean()), len(lines), why), lists


def main() -> None:
    """Print a table and write JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.poisoning", description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="fedrec+secure")
    parser.add_argument("--persons", type=int, default=95, help="honest ones; malicious ones come on top")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="settings")
    parser.add_argument("--json", type=Path, default=Path("runs/poisoning.json"))
    wanted = parser.parse_args()
    config = assign(preset(wanted.preset), ["channel.rule=secure", *wanted.settings])
    whole = tuning_cut(data.load("ml-100k"))
    where = Cut(*(part.where(part.client_of_rating < wanted.persons) for part in (whole.fitted, whole.held_out)))
    honest, lines = None, []
    print("| malicious clients | RMSE | persons with a promoted film in their top 10 | top 10 left | alarms | named |")
    print("|---|---|---|---|---|---|")
    for attack in ATTACKS:
        found, lists = outcome(where, config, attack, honest)
        honest = lists if honest is None else honest
        lines.append({"attack": str(attack), **vars(found)})
        stopped = f" ({found.why})" if found.why else ""
        print(
            f"| {attack}{stopped} | {found.rmse:.4f} | {found.reached:.0%} | {found.kept:.0%} "
            f"| {found.alarms} of {found.rounds} rounds | {found.named:.0%} |",
            flush=True,
        )
    wanted.json.parent.mkdir(parents=True, exist_ok=True)
    wanted.json.write_text(json.dumps({"preset": wanted.preset, "persons": wanted.persons, "lines": lines}, indent=1))


if __name__ == "__main__":
    main()
