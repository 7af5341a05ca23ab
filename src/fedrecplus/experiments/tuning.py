"""Search for settings on a validation cut of a training fold. The test fold is dropped before anything else.

Every trial's draws are keyed by how many trials came before it, so that a study which was killed and goes on comes to
the very trials that it would have come to in one go.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, check, to_dict
from fedrecplus.data import Ratings, split, validation_cut
from fedrecplus.errors import UserError
from fedrecplus.experiments.search_space import Dimension, Range, apply, default_dimensions, value_of
from fedrecplus.experiments.study import distribution, import_optuna, importances, open_study, sampler
from fedrecplus.randomness import subkey
from fedrecplus.simulation import prepare
from fedrecplus.training.divergence import Diverged, Watch
from fedrecplus.training.engines import engine_of
from fedrecplus.training.evaluation import Factors, Fallback, score
from fedrecplus.training.fingerprint import fingerprint

FOLDS = 5
_OUTCOME = "outcome"
_DIGITS = 3
"""so many significant digits of a drawn number are kept: no search is more precise than that"""

Stop = Callable[[], bool]


@dataclass(frozen=True)
class Cut:
    """A training part in two. The test fold isn't here, so nothing can look at it."""

    fitted: Ratings
    held_out: Ratings

    @property
    def name(self) -> str:
        """The data set's."""
        return self.fitted.name


def cut(ratings: Ratings, fold: int = 0, share: float = 0.1, seed: int = 0) -> Cut:
    """The validation cut of the ratings outside one of five folds."""
    training, _ = split(ratings, fold, FOLDS, seed)
    return Cut(*validation_cut(training, share, seed))


@dataclass(frozen=True)
class Trial:
    """One try."""

    number: int
    """how many trials came before it"""
    settings: dict[str, Any]
    state: str = "running"
    """in the end ``complete``, ``pruned`` or ``failed``"""
    rmse: float | None = None
    """mean over data sets of the RMSE in standard units after the last round; None unless complete"""
    by_dataset: dict[str, float] = field(default_factory=dict)
    best_round: int | None = None
    """the evaluated round with the lowest mean RMSE: before the last, fewer rounds do better; the last, more may"""
    best_round_rmse: float | None = None
    seconds: float = 0.0
    why: str | None = None
    """why it failed or was pruned"""


@dataclass(frozen=True)
class Moment:
    """What there is to tell while trials run."""

    trial: Trial
    best: Trial | None
    """of the trials that are complete"""
    round: int = 0
    rounds: int = 0
    rmse: float | None = None


@dataclass(frozen=True)
class Tuned:
    """What a search found."""

    start: Config
    """what it began with"""
    config: Config
    """the winner"""
    best: Trial
    trials: list[Trial]
    importances: dict[str, float]
    """each searched setting's share in what makes good trials good; empty after few trials"""

    def leaders(self, count: int = 5) -> list[Trial]:
        """The best complete trials, best first."""
        return sorted((trial for trial in self.trials if trial.rmse is not None), key=_rank)[:count]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "algorithm": self.start.algorithm,
            "best": asdict(self.best),
            "importances": self.importances,
            "trials": [asdict(trial) for trial in self.trials],
            "start": to_dict(self.start),
            "config": to_dict(self.config),
        }


Progress = Callable[[Moment], None]


def tune(
    cuts: Sequence[Cut],
    start: Config,
    dimensions: Sequence[Dimension] = (),
    *,
    trials: int = 50,
    storage: Path | None = None,
    progress: Progress = lambda _: None,
    stop: Stop = lambda: False,
) -> Tuned:
    """Try settings until the study has so many trials, the first of them ``start`` itself.

    Of a study that is in ``storage`` already, only the missing trials are run. A trial that is worse than the median of
    those before it is pruned; one that diverges has failed, and the search goes on. Raises KeyboardInterrupt when
    ``stop()`` becomes true; what is done is kept. Without ``dimensions``, ``default_dimensions`` are searched.

    After: Akiba et al. 2019 (Optuna), Bergstra et al. 2011 (tree-structured Parzen estimators).
    """
    if trials < 1:
        raise UserError(f"{trials} trials are none", "ask for at least one")
    if len({cut.name for cut in cuts}) < len(cuts):
        raise UserError("a data set is there twice", "name each data set once")
    search = _Search(list(cuts), check(start), list(dimensions) or default_dimensions(start), progress, stop)
    with open_study(storage, search.task(), warm_up=start.server.rounds // 4) as study:
        search.clear_up(study)
        while len(search.trials(study)) < trials:
            search.run_one(study)
        return search.result(study)


def evaluations(cut: Cut, config: Config, stop: Stop = lambda: False) -> Iterator[tuple[int, float]]:
    """Train on the fitted part; after each round that is evaluated, its number and the held-out RMSE in standard units.

    An iterator, so that several data sets can go through their rounds in step. Raises ``Diverged``, or
    KeyboardInterrupt when asked to stop.
    """
    problem, engine = prepare(cut.fitted, config), engine_of(config)
    state, fallback = engine.start(problem), Fallback.of(cut.fitted)
    watch = Watch.of(cut.held_out, Factors(state.U, state.server.V, problem.mean), fallback)
    scale = cut.held_out.scale
    while state.server.round < config.server.rounds:
        if stop():
            raise KeyboardInterrupt
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is looked for afterwards
            state, _ = engine.simulate_round(problem, state)
        watch.look_at_state(state)
        number = state.server.round
        if number % config.evaluation.every == 0 or number == config.server.rounds:
            if not np.isfinite(state.U).all():
                raise Diverged(number, "U is not finite any more")
            factors = Factors(engine.prediction_factors(problem, state), state.server.V, problem.mean)
            scores = score(cut.held_out, factors.predict, fallback)
            watch.look_at_scores(scores, number)
            yield number, scores.rmse * scale.standard_step / scale.step


@dataclass(frozen=True)
class _Search:
    """What all trials share."""

    cuts: list[Cut]
    start: Config
    dimensions: list[Dimension]
    progress: Progress
    stop: Stop

    def task(self) -> dict[str, Any]:
        """What makes two calls the same study."""
        return {
            "settings": to_dict(self.start),
            "search": sorted(str(dimension) for dimension in self.dimensions),
            "data": [fingerprint(cut.fitted, cut.held_out) for cut in self.cuts],
        }

    def trials(self, study: Any) -> list[Trial]:
        """All trials that came to an end, in order; one that was killed isn't among them."""
        ended = (trial.user_attrs.get(_OUTCOME) for trial in study.get_trials(deepcopy=False))
        return [Trial(**outcome) for outcome in ended if outcome is not None]

    def clear_up(self, study: Any) -> None:
        """Give up what a killed process was at, and make sure that the first trial is the start itself."""
        states = import_optuna().trial.TrialState
        for trial in study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            # a kill between the two last words of a trial leaves its outcome noted but not told
            outcome = trial.user_attrs.get(_OUTCOME)
            _tell(study, trial.number, Trial(**outcome)) if outcome else study.tell(trial.number, state=states.FAIL)
        waiting = study.get_trials(deepcopy=False, states=(states.WAITING,))
        if not self.trials(study) and not waiting:
            study.enqueue_trial({d.name: d.nearest(value_of(self.start, d.name)) for d in self.dimensions})

    def run_one(self, study: Any) -> None:
        """Ask for settings, train, tell how it went."""
        number = len(self.trials(study))
        study.sampler = sampler(subkey(self.start.seed, "tune", number))
        asked = study.ask({dimension.name: distribution(dimension) for dimension in self.dimensions})
        trial = Trial(number, {d.name: self._value(d, asked.params[d.name]) for d in self.dimensions})
        started = time.monotonic()
        try:
            outcome = self._train(trial, asked, _best(self.trials(study)))
        except Diverged as diverged:
            outcome = {"state": "failed", "why": str(diverged)}
        except UserError as error:
            outcome = {"state": "failed", "why": error.problem}
        ended = Trial(number, trial.settings, seconds=time.monotonic() - started, **outcome)
        asked.set_user_attr(_OUTCOME, asdict(ended))
        _tell(study, asked.number, ended)
        self.progress(Moment(ended, _best(self.trials(study))))

    def _train(self, trial: Trial, asked: Any, best: Trial | None) -> dict[str, Any]:
        config = apply(self.start, trial.settings)
        rounds = config.server.rounds
        self.progress(Moment(trial, best, 0, rounds))
        means: dict[int, float] = {}
        rmses: list[float] = []
        for points in zip(*(evaluations(cut, config, self.stop) for cut in self.cuts), strict=True):
            number, rmses = points[0][0], [rmse for _, rmse in points]
            means[number] = float(np.mean(rmses))
            self.progress(Moment(trial, best, number, rounds, means[number]))
            asked.report(means[number], number)
            if number < rounds and asked.should_prune():
                return {"state": "pruned", "why": f"above the median in round {number}", **_best_round(means)}
        by_dataset = {cut.name: rmse for cut, rmse in zip(self.cuts, rmses, strict=True)}
        return {"state": "complete", "rmse": means[rounds], "by_dataset": by_dataset, **_best_round(means)}

    def _value(self, dimension: Dimension, drawn: Any) -> Any:
        is_own = drawn == value_of(self.start, dimension.name)
        if is_own or not isinstance(dimension, Range) or isinstance(dimension.low, int):
            return drawn
        return dimension.nearest(float(f"{drawn:.{_DIGITS}g}"))

    def result(self, study: Any) -> Tuned:
        """The winner, and what is known besides."""
        trials = self.trials(study)
        best = _best(trials)
        if best is None:
            raise UserError(f"all {len(trials)} trials failed; the last: {trials[-1].why}", "search smaller steps")
        return Tuned(self.start, apply(self.start, best.settings), best, trials, importances(study))


def _tell(study: Any, number: int, trial: Trial) -> None:
    states = import_optuna().trial.TrialState
    # Optuna forgets trials that failed; told as pruned, they keep it away from where training diverges
    study.tell(number, trial.rmse, states.COMPLETE if trial.rmse is not None else states.PRUNED)


def _best_round(means: dict[int, float]) -> dict[str, Any]:
    best = min(means, key=lambda number: means[number])
    return {"best_round": best, "best_round_rmse": means[best]}


def _best(trials: Sequence[Trial]) -> Trial | None:
    return min((trial for trial in trials if trial.rmse is not None), key=_rank, default=None)


def _rank(trial: Trial) -> tuple[float, int]:
    assert trial.rmse is not None
    return trial.rmse, trial.number
