"""Search for settings on validation cuts of the training folds.

Every trial's draws are keyed by its number, so that a study with one worker which was killed and goes on comes to the
very trials that it would have come to in one go. Several workers draw from whatever has ended by then.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, check, to_dict
from fedrecplus.errors import UserError
from fedrecplus.experiments.crew import Crew, open_crew
from fedrecplus.experiments.search_space import Dimension, Range, apply, default_dimensions, value_of
from fedrecplus.experiments.study import distribution, import_optuna, importances, open_study, sampler
from fedrecplus.experiments.validation import Cut, Point, Stop
from fedrecplus.randomness import subkey
from fedrecplus.training.fingerprint import fingerprint

_OUTCOME = "outcome"
_DIGITS = 3
"""so many significant digits of a drawn number are kept: no search is more precise than that"""


@dataclass(frozen=True)
class Trial:
    """One try."""

    number: int
    """how many trials began before it"""
    settings: dict[str, Any]
    state: str = "running"
    """in the end ``complete``, ``pruned`` or ``failed``"""
    rmse: float | None = None
    """mean over data sets of the RMSE in standard units after the last round; None unless complete"""
    by_dataset: dict[str, float] = field(default_factory=dict)
    """the same of each, a mean over its cuts"""
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
    ended: int
    """how many trials have come to an end"""
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
    workers: int = 1,
    storage: Path | None = None,
    progress: Progress = lambda _: None,
    stop: Stop = lambda: False,
) -> Tuned:
    """Try settings until the study has so many trials, the first of them ``start`` itself.

    Cuts of one data set are averaged first, then data sets, so that each counts the same. Of a study that is in
    ``storage`` already, only the missing trials are run. A trial that is worse than the median of those before it is
    pruned; one that diverges has failed, and the search goes on. Raises KeyboardInterrupt when ``stop()`` becomes true;
    what is done is kept. Without ``dimensions``, ``default_dimensions`` are searched.

    ``workers`` trials run side by side, each in a process; 0 means one per core. A trial's error is the same in any
    number of them; which trials are drawn is repeatable with one alone.

    After: Akiba et al. 2019 (Optuna), Bergstra et al. 2011 (tree-structured Parzen estimators).
    """
    if trials < 1:
        raise UserError(f"{trials} trials are none", "ask for at least one")
    search = _Search(list(cuts), check(start), list(dimensions) or default_dimensions(start), progress)
    if len(set(search.task()["data"])) < len(cuts):
        raise UserError("a data set is there twice", "name each data set once")
    with open_study(storage, search.task(), warm_up=start.server.rounds // 4) as study:
        search.clear_up(study)
        missing = trials - len(search.trials(study))
        if missing > 0:
            with open_crew(cuts, min(workers or _cores(), missing), stop) as crew:
                search.run(study, crew, trials)
        return search.result(study)


def _cores() -> int:
    from fedrecplus.fast.threads import thread_count  # here: it brings numba, which takes its time

    return thread_count()


@dataclass
class _Running:
    """A trial while it runs."""

    trial: Trial
    asked: Any
    """Optuna's side of it"""
    rounds: int
    started: float
    points: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class _Search:
    """What all trials share."""

    cuts: list[Cut]
    start: Config
    dimensions: list[Dimension]
    progress: Progress

    def task(self) -> dict[str, Any]:
        """What makes two calls the same study."""
        return {
            "settings": to_dict(self.start),
            "search": sorted(str(dimension) for dimension in self.dimensions),
            "data": [fingerprint(cut.fitted, cut.held_out) for cut in self.cuts],
        }

    def trials(self, study: Any) -> list[Trial]:
        """All trials that came to an end, in order; one that was killed isn't among them."""
        outcomes = (trial.user_attrs.get(_OUTCOME) for trial in study.get_trials(deepcopy=False))
        ended = [Trial(**outcome) for outcome in outcomes if outcome is not None]
        return sorted(ended, key=lambda trial: trial.number)

    def clear_up(self, study: Any) -> None:
        """Give up what a killed process was at, and make sure that the first trial is the start itself."""
        states = import_optuna().trial.TrialState
        for trial in study.get_trials(deepcopy=False, states=(states.RUNNING,)):
            # a kill between the two last words of a trial leaves its outcome noted but not told
            outcome = trial.user_attrs.get(_OUTCOME)
            _tell(study, trial.number, Trial(**outcome)) if outcome else study.tell(trial.number, state=states.FAIL)
        waiting = study.get_trials(deepcopy=False, states=(states.WAITING,))
        if not waiting and all(trial.number > 0 for trial in self.trials(study)):
            study.enqueue_trial({d.name: d.nearest(value_of(self.start, d.name)) for d in self.dimensions})

    def run(self, study: Any, crew: Crew, trials: int) -> None:
        """Keep the crew busy until so many trials have come to an end."""
        running: dict[int, _Running] = {}
        while len(ended := self.trials(study)) < trials:
            if crew.free and len(ended) + len(running) < trials:
                self._begin(study, crew, running, ended)
                continue
            number, event = crew.next()
            if isinstance(event, Point):
                self._judge(study, crew, running, number, event)
            elif event.why:
                self._end(study, running.pop(number), state="failed", why=event.why)
            else:
                done = running.pop(number)
                self._end(study, done, **self._complete(done))

    def _begin(self, study: Any, crew: Crew, running: dict[int, _Running], ended: list[Trial]) -> None:
        """Ask for settings and let them be trained. A number that a kill left unused is used first."""
        taken = {*running, *(trial.number for trial in ended)}
        number = next(number for number in itertools.count() if number not in taken)
        study.sampler = sampler(subkey(self.start.seed, "tune", number))
        asked = study.ask({dimension.name: distribution(dimension) for dimension in self.dimensions})
        trial = Trial(number, {d.name: self._value(d, asked.params[d.name]) for d in self.dimensions})
        began = _Running(trial, asked, 0, time.monotonic())
        try:
            config = apply(self.start, trial.settings)
        except UserError as error:
            self._end(study, began, state="failed", why=error.problem)
            return
        began.rounds = config.server.rounds
        running[number] = began
        self.progress(Moment(trial, _best(ended), len(ended), 0, began.rounds))
        crew.begin(number, config)

    def _judge(self, study: Any, crew: Crew, running: dict[int, _Running], number: int, point: Point) -> None:
        """Note how far a trial has come; give it up if others were better by then."""
        judged, ended = running[number], self.trials(study)
        judged.points.append(point)
        mean = self._mean(point)
        self.progress(Moment(judged.trial, _best(ended), len(ended), point.round, judged.rounds, mean))
        judged.asked.report(mean, point.round)
        hopeless = point.round < judged.rounds and judged.asked.should_prune()
        crew.answer(number, go_on=not hopeless)
        if hopeless:
            done, why = running.pop(number), f"above the median in round {point.round}"
            self._end(study, done, state="pruned", why=why, **self._best_round(done))

    def _end(self, study: Any, done: _Running, **outcome: Any) -> None:
        """Write down how a trial went."""
        seconds = time.monotonic() - done.started
        trial = Trial(done.trial.number, done.trial.settings, seconds=seconds, **outcome)
        done.asked.set_user_attr(_OUTCOME, asdict(trial))
        _tell(study, done.asked.number, trial)
        ended = self.trials(study)
        self.progress(Moment(trial, _best(ended), len(ended)))

    def _complete(self, done: _Running) -> dict[str, Any]:
        last = done.points[-1]
        means = {"rmse": self._mean(last), "by_dataset": self._by_dataset(last)}
        return {"state": "complete", **means, **self._best_round(done)}

    def _by_dataset(self, point: Point) -> dict[str, float]:
        of_name: dict[str, list[float]] = {}
        for cut, rmse in zip(self.cuts, point.rmses, strict=True):
            of_name.setdefault(cut.name, []).append(rmse)
        return {name: float(np.mean(rmses)) for name, rmses in of_name.items()}

    def _mean(self, point: Point) -> float:
        return float(np.mean(list(self._by_dataset(point).values())))

    def _best_round(self, done: _Running) -> dict[str, Any]:
        best = min(done.points, key=self._mean)
        return {"best_round": best.round, "best_round_rmse": self._mean(best)}

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


def _best(trials: Sequence[Trial]) -> Trial | None:
    return min((trial for trial in trials if trial.rmse is not None), key=_rank, default=None)


def _rank(trial: Trial) -> tuple[float, int]:
    assert trial.rmse is not None
    return trial.rmse, trial.number
