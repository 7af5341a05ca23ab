"""The whole audit: every scheme with one local epoch and with its own number, every attack on each."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.audit.guess import Guess
from fedrecplus.audit.recording import Diverged, Recording, record
from fedrecplus.audit.scoring import score
from fedrecplus.audit.transcript import Transcript
from fedrecplus.config import Config, check
from fedrecplus.data import Ratings
from fedrecplus.errors import UserError
from fedrecplus.fast import prediction_factors
from fedrecplus.parts import choices, part
from fedrecplus.simulation import Problem, prediction_table, prepare
from fedrecplus.training.divergence import MOST_RETRIES, with_smaller_step
from fedrecplus.training.evaluation import Factors, Fallback
from fedrecplus.training.evaluation import score as evaluate

Progress = Callable[[str, float], None]
"""what is being done, and which share of the case is done"""
_TRAINING_SHARE = 0.2


@dataclass(frozen=True)
class Case:
    """One scheme with one number of local epochs."""

    scheme: str
    """as it was given on the command line"""
    config: Config

    @property
    def label(self) -> str:
        """Its name in progress and tables."""
        return f"{self.scheme}, K={self.config.client.local_epochs}"


@dataclass(frozen=True)
class Extent:
    """How much is watched."""

    rounds: int = 20
    users: int = 200
    attacks: tuple[str, ...] = ()
    """all, where empty"""

    @property
    def names(self) -> tuple[str, ...]:
        """The attacks that are made."""
        known = choices("audit.attacks")
        for name in self.attacks:
            part("audit.attacks", name)  # an unknown name is an error that names the nearest one
        return tuple(name for name in ORDER if name in known and name in (self.attacks or ORDER)) + tuple(
            name for name in known if name not in ORDER and name in (self.attacks or known)
        )


ORDER = (
    "popularity", "one-round", "two-round", "u-step", "inversion", "intersection", "neighbours", "crowd", "taste",
    "shadow",
)  # fmt: skip
"""in which attacks are shown: from the simplest to the strongest; a new one comes last"""


def cases(schemes: Mapping[str, Config]) -> list[Case]:
    """Every scheme at K = 1 and at its own K."""
    found = []
    for name, config in schemes.items():
        if config.trainer != "federated":
            raise UserError(f"{name} trains in one place: nothing is uploaded", "audit a federated scheme")
        # recorded uploads equal those that were applied only in double precision
        config = replace(config, engine="fast", precision="float64")
        for epochs in sorted({1, config.client.local_epochs}):
            found.append(Case(name, check(replace(config, client=replace(config.client, local_epochs=epochs)))))
    return found


def audit_case(
    case: Case, training: Ratings, test: Ratings, extent: Extent, progress: Progress = lambda _, __: None
) -> list[dict[str, Any]]:
    """Train one case while taking notes, attack the notes, and score the guesses: a row per attack.

    A training that blows up is repeated with half the local step, as ``train`` does.
    """
    with tempfile.TemporaryDirectory(prefix="fedrecplus-audit-") as folder:
        for retries in range(MOST_RETRIES + 1):
            problem = prepare(training, with_smaller_step(case.config, retries))
            note = f"local step × {0.5**retries:g}: diverged with more" if retries else ""
            try:
                recording = _recorded(problem, Path(folder) / f"attempt-{retries}", extent, progress)
            except Diverged as blown_up:
                note = str(blown_up)
                continue
            return _attacked(case, problem, recording, test, extent, progress, note)
        progress("diverged", 1.0)
        return [_row(case, name, note=note) for name in extent.names]


def _recorded(problem: Problem, folder: Path, extent: Extent, progress: Progress) -> Recording:
    share = _TRAINING_SHARE / problem.config.server.rounds
    return record(problem, folder, extent.rounds, extent.users, lambda t: progress("training", share * t))


def _attacked(
    case: Case,
    problem: Problem,
    recording: Recording,
    test: Ratings,
    extent: Extent,
    progress: Progress,
    note: str,
) -> list[dict[str, Any]]:
    figures = _figures(problem, recording, test)
    rows = []
    for number, name in enumerate(extent.names):
        progress(name, _TRAINING_SHARE + (1.0 - _TRAINING_SHARE) * number / len(extent.names))
        found = score(guesses(recording.transcript, name), recording.truth, _share(case.config))
        rows.append(_row(case, name, note=note, **figures, **asdict(found)))
    progress("done", 1.0)
    return rows


def guesses(transcript: Transcript, attack: str) -> dict[int, Sequence[Guess]]:
    """What an attack says of every watched client."""
    make = part("audit.attacks", attack).attack
    return {client: make(transcript, client) for client in transcript.clients}


def _share(config: Config) -> float:
    """Rated rows per row, as far as the config tells: how many rows an attacker names."""
    chosen = config.pseudo_items
    return 1.0 if chosen.rule == "none" else 1.0 / (1.0 + chosen.ratio)


def _figures(problem: Problem, recording: Recording, test: Ratings) -> dict[str, Any]:
    state = recording.state
    factors = Factors(prediction_factors(problem, state), prediction_table(problem, state), problem.mean)
    rmse = evaluate(test, factors.predict, Fallback.of(problem.ratings, problem.config)).rmse if len(test) else np.nan
    return {
        "rmse": float(rmse) if np.isfinite(rmse) else None,
        "bytes_up_per_client_round": recording.bytes_up_per_client_round,
        "recorded_rounds": list(recording.transcript.rounds),
    }


_UNKNOWN = dict.fromkeys(
    ("rmse", "bytes_up_per_client_round", "rating_exact", "rating_floor", "precision", "recall", "f1", "auc",
     "tpr_at_1pct_fpr", "chance")
)  # fmt: skip


def _row(case: Case, attack: str, **figures: Any) -> dict[str, Any]:
    chosen = case.config.pseudo_items
    named = {
        "scheme": case.scheme,
        "attack": attack,
        "pseudo_items": chosen.rule,
        "virtual_ratings": case.config.virtual_ratings.rule,
        "pseudo_ratio": 0.0 if chosen.rule == "none" else chosen.ratio,
        "local_epochs": case.config.client.local_epochs,
    }
    return {**named, **_UNKNOWN, "note": "", **figures}
