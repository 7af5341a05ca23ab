"""The whole audit: every scheme with one local epoch and with its own number, every attack on each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedrecplus.audit.attacks import Attack, Guess
from fedrecplus.audit.blind import randomised, unmoved
from fedrecplus.audit.recording import Recording, record
from fedrecplus.audit.scoring import MEANS, Said, best_fitting, by_rarity, score
from fedrecplus.audit.second_data import joined, second_deployment
from fedrecplus.audit.transcript import Transcript, assumptions, shown_by
from fedrecplus.audit.worlds import Worlds, attack_of, said_in_worlds
from fedrecplus.config import Config, check
from fedrecplus.data import Ratings
from fedrecplus.engines import Diverged, Problem, engine_of, prepare
from fedrecplus.errors import UserError
from fedrecplus.parts import choices, is_outside
from fedrecplus.parts.channel import secure
from fedrecplus.parts.model.sequence import followed
from fedrecplus.parts.privacy import BudgetMechanism
from fedrecplus.settings import Settings, read_settings
from fedrecplus.training import (
    MOST_RETRIES,
    Fallback,
    is_validated,
    predictor_of,
    score as evaluate,
    with_smaller_step,
)
from fedrecplus.workers import Stop, Tell, core_count, run_tasks, threads_for

Progress = Callable[[str, float], None]
"""what is being done, and which share of the case is done"""
_TRAINING_SHARE = 0.2
ORDER = (
    "popularity", "one-round", "two-round", "u-step", "inversion", "intersection", "neighbours", "crowd", "taste",
    "shadow", "accumulated-changes", "constraints", "two-models", "sums", "differencing", "unmix",
    "knows-some", "near-known", "shadow-deployment", "knows-others", "statistics",
)  # fmt: skip
"""in which attacks are shown: by what they look at and assume, from the least on; others come last"""


@dataclass(frozen=True)
class AuditCase:
    """One scheme with one number of local epochs."""

    scheme: str
    """as it was given on the command line"""
    config: Config

    @property
    def epochs(self) -> int:
        """K; 1 for models that know no epochs."""
        return self.config.model.local_epochs

    @property
    def label(self) -> str:
        """Its name in progress and tables."""
        return f"{self.scheme}, K={self.epochs}"


@dataclass(frozen=True)
class AuditExtent:
    """How much is watched, and by which attacks."""

    rounds: int = 20
    users: int = 200
    attacks: tuple[str, ...] = ()
    """all that there is knowledge for, where empty; names or import paths"""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """attack → its own settings, those that aren't defaults"""
    second: Ratings | None = None
    """another data set of the same items, which some attackers are assumed to have"""
    control: str = "swap"
    """somebody else's uploads in the recorded rounds (``swap``), or a training without each person (``worlds``)"""

    @property
    def chosen(self) -> dict[str, Settings]:
        """The attacks that are made, in order, with their settings. Unknown names are errors that name the nearest."""
        known = choices(Attack)
        wanted = self.attacks or tuple(name for name in known if not self._lacks_knowledge(name))
        names = [name for name in (*ORDER, *known, *filter(is_outside, wanted)) if name in wanted]
        found = {}
        for name in dict.fromkeys((*wanted, *self.options)):
            owner = Attack.choose(name).settings_type
            found[name] = read_settings(owner, self.options.get(name, {}), "attack", f"{name}.")
            if name in self.attacks and self._lacks_knowledge(name):
                raise UserError(
                    f"attack {name} is that of somebody who has a second data set of the same items",
                    "give it with --knowing FILE",
                )
        return {name: found[name] for name in dict.fromkeys(names)}

    def _lacks_knowledge(self, attack: str) -> bool:
        return self.second is None and Attack.choose(attack).KNOWING == "second data set"


def options_of(assignments: Iterable[str]) -> dict[str, dict[str, str]]:
    """``ATTACK.OPTION=VALUE`` texts as tables.

    >>> options_of(["my_package.my_attack.strength=2"])
    {'my_package.my_attack': {'strength': '2'}}
    """
    found: dict[str, dict[str, str]] = {}
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        name, dot, option = path.strip().rpartition(".")
        if not (equals and dot):
            raise UserError(f"{assignment!r} sets no option of an attack", "write ATTACK.OPTION=VALUE")
        found.setdefault(name, {})[option] = value.strip()
    return found


def audit_cases(schemes: Mapping[str, Config]) -> list[AuditCase]:
    """Every scheme at K = 1 and at its own K, where its model has local epochs."""
    found = []
    for name, config in schemes.items():
        if config.engine == "central":
            raise UserError(f"{name} trains in one place: nothing is uploaded", "audit a federated scheme")
        # recorded uploads equal those that were applied only in double precision
        config = replace(config, engine="fast", precision="float64")
        own = AuditCase(name, check(config))
        if own.epochs > 1:
            found.append(AuditCase(name, check(replace(config, model=config.model.with_settings(local_epochs=1)))))
        found.append(own)
    return found


def run_cases(
    cases: Sequence[AuditCase],
    training: Ratings,
    test: Ratings,
    extent: AuditExtent,
    workers: int = 0,
    tell: Callable[[AuditCase, str, float], None] = lambda _, __, ___: None,
) -> list[dict[str, Any]]:
    """All rows of all cases, in the cases' order, side by side in processes. ``workers`` 0: one per core.

    Where there are more processes than cases, those of a case share its worlds.
    """
    each = max(1, (workers or core_count()) // max(len(cases), 1))
    work = functools.partial(_work, training, test, extent, each)
    found = dict(run_tasks(work, cases, workers, report=lambda index, news: tell(cases[index], *news)))
    return [row for index in range(len(cases)) for row in found[index]]


def _work(
    training: Ratings, test: Ratings, extent: AuditExtent, workers: int, case: AuditCase, tell: Tell, _: Stop
) -> list[dict[str, Any]]:
    with threads_for(training.item_count):
        return audit_case(case, training, test, extent, lambda what, share: tell((what, share)), workers)


def audit_case(
    case: AuditCase,
    training: Ratings,
    test: Ratings,
    extent: AuditExtent,
    progress: Progress = lambda _, __: None,
    workers: int = 1,
) -> list[dict[str, Any]]:
    """Train one case while taking notes, attack the notes, and score the guesses: a row per attack.

    A training that blows up is repeated with half the local step, as ``train`` does. ``workers`` processes make the
    worlds of a control.
    """
    note, config = "", with_all_rounds(case.config, training)
    case_rounds = config.server.rounds
    for retries in range(MOST_RETRIES + 1):
        # recorded sums and the model must have the same noise, which attackers don't look up by the seed
        problem = prepare(training, replace(with_smaller_step(config, retries), seeded_noise=True))
        try:
            recording = record(
                problem, extent.rounds, extent.users, lambda t: progress("training", _TRAINING_SHARE * t / case_rounds)
            )
        except Diverged as blown_up:
            note = str(blown_up)
            continue
        _tell(recording, problem, extent)
        smaller = [f"local step × {0.5**retries:g}: diverged with more"] if retries else []
        return _attacked(case, problem, recording, test, extent, progress, smaller, workers)
    progress("diverged", 1.0)
    return [_row(case, name, note=note) for name in extent.chosen]


def with_all_rounds(config: Config, training: Ratings) -> Config:
    """With the rounds that a training adds by validation, where the order of choices is known: they are seen, too."""
    return (followed(config) if is_validated(config, training) else None) or config


def _tell(recording: Recording, problem: Problem, extent: AuditExtent) -> None:
    """Give the attacker the second data set, where there is one and an attack asks for it."""
    asked = any(Attack.choose(name).KNOWING == "second data set" for name in extent.chosen)
    transcript = recording.transcript
    if extent.second is None or not asked or not transcript.config.hides_rows:
        return
    second = second_deployment(joined(extent.second, problem.ratings), problem.config, extent.users)
    transcript.knowledge = replace(transcript.knowledge, second=second)


def _attacked(
    case: AuditCase,
    problem: Problem,
    recording: Recording,
    test: Ratings,
    extent: AuditExtent,
    progress: Progress,
    notes: list[str],
    workers: int,
) -> list[dict[str, Any]]:
    note = "; ".join([*notes, *caveats(recording.transcript)])
    rows, figures, chosen = [], _figures(problem, recording, test), extent.chosen
    elsewhere: Mapping[str, Sequence[Said]] = {}
    if extent.control == "worlds":
        elsewhere = _elsewhere(problem, recording, extent, lambda share: progress("worlds", share), workers)
    for number, (name, settings) in enumerate(chosen.items()):
        progress(name, _TRAINING_SHARE + (1.0 - _TRAINING_SHARE) * number / len(chosen))
        found = strongest_score(recording, name, settings, elsewhere.get(name))
        rows.append(_row(case, name, note=note, control=extent.control, **figures, **found))
    progress("done", 1.0)
    return rows


def _elsewhere(
    problem: Problem, recording: Recording, extent: AuditExtent, tell: Callable[[float], None], workers: int
) -> Mapping[str, Sequence[Said]]:
    """What the attacks that have something to look at say in worlds without the person."""
    transcript = recording.transcript
    looking = {name: own for name, own in extent.chosen.items() if _applies(name, transcript)}
    worlds = Worlds(problem, extent.rounds, transcript.clients, looking, transcript.knowledge.second)
    return said_in_worlds(worlds, recording.truth.others, workers, tell)


def _applies(attack: str, transcript: Transcript) -> bool:
    return not transcript.shows.isdisjoint(Attack.choose(attack).SEES)


def caveats(transcript: Transcript) -> list[str]:
    """What a reader of the rows must know about how they came about."""
    config, found = transcript.config, []
    if isinstance(config.privacy, BudgetMechanism) and not config.privacy.NOISE_ON_DEVICES:
        found.append("the server adds the noise: attacked is what it releases, and it sees the sums without")
    if config.channel.VIEW == "nothing":
        found.append("clients alone decrypt the sums: the attacker is one of them")
    if isinstance(config.channel, secure.Secure) and config.channel.settings.groups > 1:
        found.append("attacked are the groups' sums together: the server has each one, over fewer people")
    if config.model.attacker() is None:
        found.append(f"model.rule={config.model.rule} declares no `attacker`: attacks know nothing of its uploads")
    if (number := len(assumptions(config))) > 1:
        found.append(
            f"rules that declare no ATTACKER: the strongest of {number} assumptions is shown, with the truth in view"
        )
    return found


def strongest_score(
    recording: Recording, attack: str, settings: Settings, elsewhere: Sequence[Said] | None = None
) -> dict[str, Any]:
    """An attack's score under what may be assumed of the rules; of several assumptions, the one that serves it best.

    An attack that has nothing to look at says nothing: an area of .5, and ratings guessed by public averages. ``blind``
    names what it says of noise just as well. ``elsewhere`` is the control where it is of other worlds.
    """
    transcript, truth = recording.transcript, recording.truth
    applies = _applies(attack, transcript)
    config = transcript.config
    share = 1.0 / (1.0 + config.pseudo_items.ratio) if config.hides_rows else 1.0
    scores = []
    for number, view in enumerate(transcript.hypotheses() if applies else ()):
        said = guesses(view, attack, settings)
        control = controls(recording, view, attack, settings, said) if elsewhere is None else elsewhere[number]
        if Attack.choose(attack).ANONYMOUS:
            found = score(best_fitting(said, truth), truth, share, best_fitting(control, truth))
        else:
            found = score(said, truth, share, control)
        if Attack.choose(attack).LOG_ODDS:
            found["by_rarity"] = by_rarity(said, control, truth)
        scores.append(({**found, "blind": []}, view, said))
    if not applies:
        scores = [({**score(dict.fromkeys(transcript.clients, ()), truth, share), "blind": []}, transcript, {})]
    best, view, said = max(scores, key=lambda found: (found[0]["auc"], found[0]["rating_exact"]))
    if applies:
        best["blind"] = unmoved(said, _of_noise(view, attack, settings))
    return {**best, "applies": applies, "against": truth.against}


def _of_noise(view: Transcript, attack: str, settings: Settings | None) -> dict[int, Sequence[Guess]]:
    """What an attack says of noise; nothing where noise leads its search beyond all numbers, which noise alone does."""
    with np.errstate(all="ignore"):
        try:
            return guesses(randomised(view, Attack.choose(attack).SEES), attack, settings)
        except np.linalg.LinAlgError:
            return dict.fromkeys(view.clients, ())


def guesses(transcript: Transcript, attack: str, settings: Settings | None = None) -> dict[int, Sequence[Guess]]:
    """What an attack says of every watched client."""
    made = attack_of(attack, settings)
    return {client: made.attack(transcript, client) for client in transcript.clients}


def controls(
    recording: Recording,
    view: Transcript,
    attack: str,
    settings: Settings,
    said: Said,
) -> Said:
    """What the attack says of each watched client with somebody else's uploads in the place of its own.

    Where it looks at uploads, it is what it says of the other client; where it has sums alone to look at, the client's
    contributions are taken out of them and the other's put in.
    """
    made, others = attack_of(attack, settings), recording.truth.others
    if view.shows.intersection(made.SEES) != {"sums"}:
        return {client: said[other] for client, other in others.items()}
    replaced = recording.contributions.replaced
    return {c: made.attack(replaced(view, c, other), c) for c, other in others.items()}


def _figures(problem: Problem, recording: Recording, test: Ratings) -> dict[str, Any]:
    predictor = predictor_of(engine_of(problem.config), problem, recording.state)
    fallback = Fallback.of(problem.ratings, problem.config, problem.public)
    likes = problem.ratings.likes_alone and test.likes_alone
    rmse = evaluate(test, predictor.predict, fallback).rmse if len(test) and not likes else np.nan
    return {
        "likes_alone": likes,
        "rmse": float(rmse) if np.isfinite(rmse) else None,
        "bytes_up_per_client_round": recording.bytes_up_per_client_round,
        "recorded_rounds": list(recording.transcript.rounds),
    }


def _row(case: AuditCase, attack: str, **figures: Any) -> dict[str, Any]:
    config = case.config
    named = {
        "scheme": case.scheme,
        "attack": attack,
        "knowing": Attack.choose(attack).KNOWING,
        "channel": config.channel.rule,
        "shows": sorted(shown_by(config)),
        "pseudo_items": config.pseudo_items.rule,
        "virtual_ratings": config.virtual_ratings.rule,
        "pseudo_ratio": config.pseudo_items.ratio,
        "local_epochs": case.epochs,
    }
    return {**named, **dict.fromkeys(("rmse", "bytes_up_per_client_round", *MEANS, "chance")), "note": "", **figures}
