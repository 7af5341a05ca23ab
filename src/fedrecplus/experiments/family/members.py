"""The paper's family under equal settings: FedMF, FedRec, FedRec++, and FedRec+ with each of its ideas alone and both.

All members share one start; a member changes the parts that its name stands for and nothing else. *Fixed*, they share
every setting; *tuned*, each has the step sizes, regularisation and rounds that did best on a validation cut, from the
same points for all (``family_tuning``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, assign, check, dumps, preset
from fedrecplus.data import Ratings
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments.jobs import JobOutcome, Monitor, against, cross_validation, over_folds, require_ratings
from fedrecplus.experiments.statistics import FoldMean, PairedTest, fold_mean, holm

_HALF_STEPS = "model.learning_rate=0.4"  # of FedRec's .8: in SVD++ U and O answer the same errors
STARTS: dict[str, tuple[str, ...]] = {
    "mf": ("fedrec+paper", "model.rule=mf"),
    "pmf": ("fedrec", "model.rule=mf", _HALF_STEPS),
    "svdpp": ("fedrec", "model.rule=svdpp", _HALF_STEPS),
    "reconstruction": ("fedrec+", "model.rule=reconstruction"),
}
"""model → the preset whose settings all members share, and changes of it: the paper's model, FedRec's two, and ours"""

_NONE = ("pseudo_items.rule=none",)
_RANDOM, _SIMILAR = (
    (f"pseudo_items.rule={rule}", "pseudo_items.ratio=1", "pseudo_items.redraw=true", "encoder.rule=identity")
    for rule in ("random", "similar")
)
_AVERAGE, _NEAREST, _HYBRID = (
    (f"virtual_ratings.rule={rule}", "virtual_ratings.refresh=true", "virtual_ratings.rounding=none")
    for rule in ("user-average", "nearest", "hybrid")
)
_UNIFORM = ("aggregation.rule=uniform",)
_WASSERSTEIN = (
    *("aggregation.rule=wasserstein", "aggregation.temperature=1", "aggregation.bound=0", "aggregation.rows=table"),
    "aggregation.global_step=last",
)
FEDREC, FEDREC_PLUS = "FedRec, user average", "FedRec+"
MEMBERS: dict[str, tuple[str, ...]] = {
    "FedMF": (*_NONE, *_UNIFORM),
    FEDREC: (*_RANDOM, *_AVERAGE, *_UNIFORM),
    "FedRec, hybrid filling": (*_RANDOM, *_HYBRID, *_UNIFORM),
    "FedRec++": (*_RANDOM, *_AVERAGE, *_UNIFORM, "channel.rule=denoising"),
    "random items, nearest ratings": (*_RANDOM, *_NEAREST, *_UNIFORM),
    "similar items, user average": (*_SIMILAR, *_AVERAGE, *_UNIFORM),
    "FedRec+, similar items alone": (*_SIMILAR, *_NEAREST, *_UNIFORM),
    "FedRec+, Wasserstein weights alone": (*_RANDOM, *_AVERAGE, *_WASSERSTEIN),
    FEDREC_PLUS: (*_SIMILAR, *_NEAREST, *_WASSERSTEIN),
}
"""name → its parts. "Similar items" is the paper's first idea: similar items with the nearest item's rating"""
FEDREC_MEMBERS = ("FedMF", FEDREC, "FedRec, hybrid filling")
"""those of FedRec's authors, who have two models"""
CLAIMS: tuple[tuple[str, str, str], ...] = (
    ("FedRec+ is better than FedRec with user averages (Table I)", FEDREC_PLUS, FEDREC),
    ("FedRec+ is better than FedRec with hybrid filling", FEDREC_PLUS, "FedRec, hybrid filling"),
    ("FedRec+ is better than FedRec++", FEDREC_PLUS, "FedRec++"),
    ("FedRec+ is better than no pseudo items at all", FEDREC_PLUS, "FedMF"),
    ("similar items with nearest ratings help", "FedRec+, similar items alone", FEDREC),
    ("nearest ratings help random items", "random items, nearest ratings", FEDREC),
    ("similar items help user averages", "similar items, user average", FEDREC),
    ("Wasserstein weights help random items", "FedRec+, Wasserstein weights alone", FEDREC),
    ("Wasserstein weights help similar items", FEDREC_PLUS, "FedRec+, similar items alone"),
)
"""what the paper says or suggests: which member should have the lower error than which"""
SIGNIFICANT = 0.05
Tuned = Mapping[str, Any]
"""data set → model → member → settings"""


@dataclass(frozen=True)
class MemberResult:
    """One member over all folds."""

    name: str
    settings: tuple[str, ...]
    """what it has of its own: parts and, where they are tuned, numbers"""
    figures: dict[str, FoldMean]
    rows: list[dict[str, Any]]
    """one per fold, as in ``result.json``"""


@dataclass(frozen=True)
class PaperClaim:
    """One member against another."""

    says: str
    better: str
    worse: str
    difference: float
    """mean over folds of the RMSE of ``better`` less that of ``worse``: negative where the claim holds"""
    test: PairedTest
    """over clients; its p is Holm's, corrected for all claims of the study"""

    @property
    def verdict(self) -> str:
        """Whether it holds here."""
        return verdict_of(self.difference, self.test)


def verdict_of(difference: float, test: PairedTest) -> str:
    """Whether a claim holds, over all ratings and over clients alike.

    Ours: the RMSE of all ratings is ruled by clients with many of them, the test counts every client once, by ranks.
    Where RMSE, mean over clients and ranks point different ways, none speaks for the claim.

    >>> [verdict_of(-0.01, PairedTest("fedrec", 9, by_client, 0.001)) for by_client in (-0.02, 0.02)]
    ['holds', 'mixed']
    """
    if test.p >= SIGNIFICANT:
        return "no difference"
    if (difference < 0) != (test.difference < 0) or not test.one_way:
        return "mixed"
    return "holds" if difference < 0 else "fails"


@dataclass(frozen=True)
class FamilyResult:
    """What ``fedrecplus family`` found on one data set."""

    dataset: str
    model: str
    tuned: bool
    folds: int
    config: str
    """what all members share, as TOML"""
    members: list[MemberResult]
    claims: list[PaperClaim]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        claims = [{**asdict(claim), "verdict": claim.verdict} for claim in self.claims]
        return {
            "kind": "family",
            **vars(self),
            "members": [asdict(member) for member in self.members],
            "claims": claims,
        }


def family(
    ratings: Ratings,
    model: str = "mf",
    *,
    tuned: Tuned | None = None,
    settings: Sequence[str] = (),
    members: Sequence[str] | None = None,
    folds: int = 5,
    workers: int = 0,
    out: Path | None = None,
    monitor: Monitor = Monitor(),  # noqa: B008 -- it can't be changed
) -> FamilyResult:
    """Train every member on every fold; ``settings`` are for all of them, before what a member has of its own."""
    require_ratings(ratings)
    members = members_in(model) if members is None else members
    own = {name: own_settings(name, model, tuned, ratings.name) for name in members}
    configs = {name: member_config(name, model, own[name], settings) for name in members}

    def folder_of(name: str, fold: int) -> Path | None:
        return out / name.replace(", ", "-").replace(" ", "-") / f"fold-{fold}" if out else None

    outcomes = cross_validation(ratings, configs, folds, workers, folder_of, monitor)
    return FamilyResult(
        ratings.name,
        model,
        tuned is not None,
        folds,
        dumps(start(model, settings)),
        [
            MemberResult(name, own[name], over_folds(outcomes[name]), [outcome.row for outcome in outcomes[name]])
            for name in members
        ],
        _claims(outcomes),
    )


def members_in(model: str) -> tuple[str, ...]:
    """All members, and in FedRec's models its own."""
    return FEDREC_MEMBERS if STARTS.get(model, ("",))[0] == "fedrec" else tuple(MEMBERS)


def start(model: str, settings: Sequence[str] = ()) -> Config:
    """What all members share."""
    if model not in STARTS:
        raise unknown_name("model of the family", model, STARTS)
    name, *changes = STARTS[model]
    return assign(preset(name), [*changes, *settings])


def member_config(name: str, model: str, own: Sequence[str] | None = None, settings: Sequence[str] = ()) -> Config:
    """A member's whole config; ``own`` is what it changes of the start, its parts alone if not given."""
    own = own_settings(name, model) if own is None else own
    return check(assign(start(model, settings), [f"algorithm={name}", *own]))


def own_settings(name: str, model: str, tuned: Tuned | None = None, dataset: str = "") -> tuple[str, ...]:
    """What a member changes of the start: its parts and, where settings are tuned, those for the data set."""
    if name not in MEMBERS:
        raise unknown_name("member of the family", name, MEMBERS)
    own = MEMBERS[name]
    if name == "FedRec++":  # lossless: only with rated rows alone in the user's step is nothing of pseudo items left
        own = (*own, "model.user_step=rated")
    if tuned is None:
        return own
    try:
        return (*own, *(f"{path}={value}" for path, value in tuned[dataset][model][name].items()))
    except KeyError:
        known = ", ".join(f"{one} on {data}" for data in tuned for one in tuned[data])
        raise UserError(
            f"no settings of {name} were tuned for {model} on {dataset}", f"leave --tuned out; known: {known}"
        ) from None


def shipped_settings() -> Tuned:
    """The settings that ``fedrecplus family tune`` found and that come with the package."""
    return tomllib.loads(files(__package__).joinpath("family.toml").read_text(encoding="utf-8"))


def _claims(outcomes: dict[str, list[JobOutcome]]) -> list[PaperClaim]:
    """Claims about members that were trained."""
    asked = [claim for claim in CLAIMS if {claim[1], claim[2]} <= set(outcomes)]
    tests = [against(outcomes[worse], outcomes[better]) for _, better, worse in asked]
    corrected = holm([test for test in tests if test is not None])
    claims = []
    for (says, better, worse), test in zip(asked, corrected, strict=True):
        means = [fold_mean([outcome.row["rmse"] for outcome in outcomes[name]]).mean for name in (better, worse)]
        claims.append(PaperClaim(says, better, worse, means[0] - means[1], test))
    return claims
