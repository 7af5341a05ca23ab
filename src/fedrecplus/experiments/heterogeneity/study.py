"""What the aggregation is for: rules side by side where clients differ, err or lie."""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from fedrecplus.arrays import Array
from fedrecplus.config import Config, assign, check, dumps
from fedrecplus.data import Ratings, split
from fedrecplus.engines import Diverged, Engine, Problem, engine_of, prepare, rounds
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments.heterogeneity.clients import (
    AttackedEngine,
    Change,
    SkewedProblem,
    add_noise,
    affected_clients,
    leave_few,
    promote,
    promoted_item,
    rate_at_random,
    rotate,
    shift,
)
from fedrecplus.experiments.heterogeneity.fedeba import FedEbaEngine
from fedrecplus.experiments.heterogeneity.scaffold import ScaffoldEngine, require_plain_mf
from fedrecplus.experiments.jobs import require_federation
from fedrecplus.experiments.statistics import FoldMean, PairedTest, client_means, fold_mean, holm, paired_test
from fedrecplus.parts.model.mf import Mf
from fedrecplus.training import (
    Errors,
    Fallback,
    Predictor,
    errors_of,
    predictor_of,
    refuse_blown_up,
    score_of_mean,
    untrained_scores,
)
from fedrecplus.workers import Stop, Tell, run_tasks

BASELINE = "uniform"
"""what the other rules are tested against"""
START = replace(Config(), algorithm="mf", model=Config().model.with_settings(learning_rate=0.1))
"""matrix factorisation by plain gradient steps, small enough for every rule: with momentum, attackers who send the last
step back would make all of them diverge"""
SHARE, FOLDS = 0.3, 5
FIGURES = ("rmse", "rmse_affected", "target_rating", "weight_share")
"""RMSE of honest, unaffected clients and of the others; mean prediction of the promoted item among honest clients; the
attackers' share of the weight, mean over rounds"""


@dataclass(frozen=True)
class Scenario:
    """A way in which clients may differ."""

    summary: str
    change: Change | None = None
    """what happens to the ratings of the affected clients"""
    settings: tuple[str, ...] = ()
    skewed: bool = False
    adaptive: bool = False
    """whether the affected clients replace their uploads"""
    pushes: bool = False
    """whether they promote an item"""


_EPOCHS = "model.local_epochs"
SCENARIOS: dict[str, Scenario] = {
    "clean": Scenario("everybody is honest"),
    "random": Scenario("a share of the clients rates at random", rate_at_random),
    "noisy": Scenario("a share of the clients errs by a star and a half", add_noise),
    "shifted": Scenario("a share of the clients rates everything a star and a half lower", shift),
    "rotated": Scenario("a share of the clients has the ratings of its items dealt out anew", rotate),
    "few": Scenario("a share of the clients has five ratings left", leave_few),
    **{
        f"drift-{K}": Scenario(f"everybody trains K = {K} epochs before it uploads", settings=(f"{_EPOCHS}={K}",))
        for K in (5, 10, 20)
    },
    "small-cohorts": Scenario("one client in twenty takes part in a round", settings=("cohort.fraction=0.05",)),
    "skewed": Scenario("some take part nearly always, others hardly ever", skewed=True),
    "promotion": Scenario("a share of the clients gives one item the best rating", promote, pushes=True),
    "copycat": Scenario("a share of the clients sends the last step back", adaptive=True),
    "copycat-push": Scenario("the same, with one item pushed", promote, adaptive=True, pushes=True),
}
_ON_SERVER = "aggregation.weigh_on=server"  # an attacker that weighs itself would take any weight it likes
_WASSERSTEIN = ("aggregation.rule=wasserstein", _ON_SERVER)
SCAFFOLD, FEDEBA = "scaffold", "fedeba+"
PAPER = "wasserstein table τ=1"
"""the paper's own: the whole table, and no temperature"""
RULES: dict[str, tuple[str, ...]] = {
    "uniform": ("aggregation.rule=uniform", _ON_SERVER),
    "size": ("aggregation.rule=size", _ON_SERVER),
    **{
        f"wasserstein {rows} τ={temperature:g}": (
            *_WASSERSTEIN,
            f"aggregation.rows={rows}",
            f"aggregation.temperature={temperature}",
        )
        for rows, temperature in itertools.product(("table", "mean-own"), (0.5, 1.0))
    },
    "wasserstein mean-own τ=0.5 to the mean": (
        *_WASSERSTEIN,
        "aggregation.rows=mean-own",
        "aggregation.temperature=0.5",
        "aggregation.global_step=mean",
    ),
    "actvagg": ("aggregation.rule=actvagg",),
    SCAFFOLD: ("aggregation.rule=uniform", _ON_SERVER),
    FEDEBA: ("aggregation.rule=uniform", _ON_SERVER),
    "geometric-median": ("aggregation.rule=geometric-median",),
    "trimmed-mean": ("aggregation.rule=trimmed-mean",),
    "krum": ("aggregation.rule=krum",),
}
"""ways to join updates; scaffold is one of training, and fedeba+ weighs by losses, which no upload has"""
ENGINES: dict[str, type[ScaffoldEngine] | type[FedEbaEngine]] = {SCAFFOLD: ScaffoldEngine, FEDEBA: FedEbaEngine}
"""rules whose rounds are an engine of this study"""


@dataclass(frozen=True)
class StudyExtent:
    """What is run."""

    scenarios: tuple[str, ...] | None = None
    """None: all that the model can be trained in"""
    rules: tuple[str, ...] | None = None
    """None: all that the model can be trained by"""
    share: float = SHARE
    """of the clients that is not like the others"""
    folds: int = 1
    """so many of five, each with a seed of its own: other affected clients, other start values"""


@dataclass(frozen=True)
class StudyTrial:
    """One scenario, one rule, one fold."""

    scenario: str
    rule: str
    fold: int
    figures: dict[str, float]
    """by ``FIGURES``; not a number where the training diverged or there is none"""
    seconds: float
    client_rmse: Array
    """of honest clients; not a number for the others"""

    @property
    def diverged(self) -> bool:
        """Whether the training came to no end."""
        return bool(np.isnan(self.figures["rmse"]))


@dataclass(frozen=True)
class StudyCell:
    """One scenario under one rule, over all folds that were trained."""

    scenario: str
    rule: str
    figures: dict[str, FoldMean | None]
    """by ``FIGURES``; None where a training diverged or there is none"""
    test: PairedTest | None
    """against uniform weights, a pair per honest client, p by Holm's correction for all cells of the study; None for
    uniform itself and where a training diverged"""
    seconds: float

    def mean(self, figure: str = "rmse") -> float | None:
        """A figure's mean over folds."""
        summary = self.figures[figure]
        return summary.mean if summary else None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        content = asdict(self)
        figures, test = content.pop("figures"), content.pop("test")
        return {**content, "diverged": self.mean() is None, **figures, "against_uniform": test}


@dataclass(frozen=True)
class Study:
    """What ``ablate heterogeneity`` found."""

    dataset: str
    algorithm: str
    share: float
    folds: int
    config: str
    cells: list[StudyCell]

    def cell(self, scenario: str, rule: str) -> StudyCell | None:
        """One of them, if it was run."""
        return next((cell for cell in self.cells if (cell.scenario, cell.rule) == (scenario, rule)), None)

    @property
    def scenarios(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(cell.scenario for cell in self.cells))

    @property
    def rules(self) -> list[str]:
        """In the order in which they were asked for."""
        return list(dict.fromkeys(cell.rule for cell in self.cells))


def heterogeneity(
    ratings: Ratings,
    config: Config = START,
    extent: StudyExtent = StudyExtent(),  # noqa: B008 -- it can't be changed
    *,
    workers: int = 0,
    stop: Stop = lambda: False,
    done: Callable[[StudyTrial], None] = lambda _: None,
) -> Study:
    """Every scenario under every rule, on the first of five folds or some more of them."""
    (scenarios, named), folds = check_extent(extent, config), range(extent.folds)
    rules = [BASELINE, *(rule for rule in named if rule != BASELINE)]
    # expensive rules first, so that no core waits at the end
    jobs = sorted(itertools.product(rules, scenarios, folds), key=lambda job: -list(RULES).index(job[0]))
    trials = {}
    for _, trial in run_tasks(functools.partial(_run, ratings, config, extent.share), jobs, workers, stop=stop):
        trials[trial.scenario, trial.rule, trial.fold] = trial
        done(trial)
    by_cell = {pair: [trials[*pair, fold] for fold in folds] for pair in itertools.product(scenarios, rules)}
    cells = [_cell(own, by_cell[scenario, BASELINE]) for (scenario, _), own in by_cell.items()]
    corrected = iter(holm([cell.test for cell in cells if cell.test is not None]))
    cells = [cell if cell.test is None else replace(cell, test=next(corrected)) for cell in cells]
    return Study(ratings.name, config.algorithm, extent.share, extent.folds, dumps(config), cells)


def check_extent(extent: StudyExtent, config: Config) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The scenarios and rules to run. Refuses unknown names, numbers out of range, settings that can't be together."""
    require_federation(config, any_weights=True)
    scenarios, rules = extent.scenarios, extent.rules
    own = isinstance(config.model, Mf)
    if scenarios is None:
        scenarios = tuple(name for name in SCENARIOS if own or not name.startswith("drift"))
    if rules is None:
        rules = tuple(name for name in RULES if own or name != SCAFFOLD)
    for names, known, kind in ((scenarios, SCENARIOS, "scenario"), (rules, RULES, "rule")):
        if not names:
            raise UserError(f"no {kind} is named", f"name some of {', '.join(known)}")
        for name in names:
            if name not in known:
                raise unknown_name(kind, name, known)
    if not 0.0 <= extent.share < 1.0:
        raise UserError(f"{extent.share:g} is no share of the clients", "give a share from 0 to below 1")
    if not 1 <= extent.folds <= FOLDS:
        raise UserError(f"{extent.folds} of {FOLDS} folds can't be run", f"give 1 to {FOLDS} folds")
    for scenario, rule in itertools.product(scenarios, rules):
        changed = _config_of(config, scenario, rule)
        if rule == SCAFFOLD:
            require_plain_mf(changed)
    return scenarios, rules


def _config_of(config: Config, scenario: str, rule: str) -> Config:
    return check(assign(config, [*SCENARIOS[scenario].settings, *RULES[rule]]))


def _run(ratings: Ratings, start: Config, share: float, job: tuple[str, str, int], _: Tell, stop: Stop) -> StudyTrial:
    """Train under one rule where clients are as the scenario says; test honest and affected clients apart."""
    rule, name, fold = job
    began, scenario = time.perf_counter(), SCENARIOS[name]
    training, test = split(ratings, fold, FOLDS, start.seed)
    config = _config_of(replace(start, seed=start.seed + fold), name, rule)
    someone = scenario.change is not None or scenario.adaptive
    affected = affected_clients(ratings, share if someone else 0.0, config.seed)
    target = promoted_item(training, config.seed)
    changed = scenario.change(training, affected, config.seed) if scenario.change else training
    problem = prepare(changed, config)
    problem = SkewedProblem(**vars(problem)) if scenario.skewed else problem
    engine = ENGINES[rule](engine_of(config)) if rule in ENGINES else engine_of(config)
    attacked = AttackedEngine(engine, affected, target if scenario.pushes else None)
    fallback = Fallback.of(training, config, problem.public)
    figures, by_client = dict.fromkeys(FIGURES, np.nan), np.full(training.clients, np.nan)
    with contextlib.suppress(Diverged):
        predictor, errors = _train(attacked if scenario.adaptive else engine, problem, test, fallback, stop)
        by_client = np.where(affected, np.nan, errors.rmse_by_client())
        honest = np.flatnonzero(~affected & (np.diff(training.indptr) > 0))
        predicted = test.scale.restore(predictor.predict(honest, np.full(len(honest), target)))
        for figure, some in (("rmse", ~affected), ("rmse_affected", affected)):
            if count := errors.count[some].sum():
                figures[figure] = float(np.sqrt(errors.squared[some].sum() / count))
        shares = attacked.weight_shares[1:]  # before the first round there is no last step to send back
        figures |= {
            "target_rating": float(predicted.mean()),
            "weight_share": float(np.mean(shares)) if shares else np.nan,
        }
    return StudyTrial(name, rule, fold, figures, time.perf_counter() - began, by_client)


def _train(engine: Engine, problem: Problem, test: Ratings, fallback: Fallback, stop: Stop) -> tuple[Predictor, Errors]:
    """All rounds. Raises ``Diverged``: it is a result here, and no reason for smaller steps."""
    state = engine.start(problem)
    for after, _ in rounds(engine, problem, state):
        state = after
        if stop():
            raise KeyboardInterrupt
    predictor = predictor_of(engine, problem, state)
    errors, mean = errors_of(test, predictor.predict, fallback), score_of_mean(test, fallback)
    untrained = functools.partial(untrained_scores, engine, problem, test, fallback)
    refuse_blown_up(errors.total, state.server.round, mean, untrained)
    return predictor, errors


def _cell(trials: Sequence[StudyTrial], baseline: Sequence[StudyTrial]) -> StudyCell:
    first, test = trials[0], None
    if first.rule != BASELINE and not any(trial.diverged for trial in [*trials, *baseline]):
        errors = [client_means([trial.client_rmse for trial in some]) for some in (trials, baseline)]
        test = paired_test(errors[0], errors[1], BASELINE)
    values = {name: [trial.figures[name] for trial in trials] for name in FIGURES}
    figures = {name: None if np.isnan(some).any() else fold_mean(some) for name, some in values.items()}
    return StudyCell(first.scenario, first.rule, figures, test, sum(trial.seconds for trial in trials))
