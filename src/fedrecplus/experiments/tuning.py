"""Search for settings on validation cuts of the training folds, by Optuna.

The study is a file that every process reads and writes: a trial sees all others when it is drawn and when it may be
pruned, and what has ended outlives any kill. Optuna is an extra, so it is imported when a search begins.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedrecplus.config import Config, check, to_tables, value_of
from fedrecplus.engines import Diverged
from fedrecplus.errors import UserError
from fedrecplus.experiments.search_space import Dimension, Moment, Trial, default_dimensions, with_values
from fedrecplus.experiments.validation import Cut, Objective, evaluations
from fedrecplus.files import locked
from fedrecplus.randomness import subkey
from fedrecplus.training import fingerprint
from fedrecplus.workers import Stop, Tell, run_tasks

SURE_TRIALS = 5
"""trials that none is pruned before"""
_STUDY = "fedrecplus tune"
_BUSY_SECONDS = 60  # while another process writes


@dataclass(frozen=True)
class Tuned:
    """What a search found."""

    start: Config
    """what it began with"""
    config: Config
    """the winner"""
    best: Trial
    trials: list[Trial]
    objective: Objective
    importances: dict[str, float]
    """each searched setting's share in what makes good trials good; empty after few trials"""

    def leaders(self, count: int = 5) -> list[Trial]:
        """The best complete trials, best first."""
        return _ranked(self.trials, self.objective)[:count]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "algorithm": self.start.algorithm,
            "objective": self.objective.name,
            "best": asdict(self.best),
            "importances": self.importances,
            "trials": list(map(asdict, self.trials)),
            "start": to_tables(self.start),
            "config": to_tables(self.config),
        }


def tune(
    cuts: Sequence[Cut],
    start: Config,
    dimensions: Sequence[Dimension] = (),
    *,
    objective: str = "rmse",
    trials: int = 50,
    workers: int = 1,
    storage: Path | None = None,
    progress: Callable[[Moment], None] = lambda _: None,
    stop: Stop = lambda: False,
) -> Tuned:
    """Try settings until the study has so many trials, the first of them ``start`` itself.

    ``objective`` is ``rmse`` or a ranking measure, such as ``ndcg@10``.

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
    if len({fingerprint(cut.fitted, cut.held_out) for cut in cuts}) < len(cuts):
        raise UserError("a data set is there twice", "name each data set once")
    aim = Objective(objective)
    for one in cuts:
        aim.check(one.held_out, one.fitted)
    with contextlib.ExitStack() as stack:
        if storage is None:
            storage = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "study.db"
        lock = storage.with_name(f".{storage.name}.lock")
        # two searches in one study would each take the other's running trials for some that a kill left
        stack.enter_context(locked(lock, str(storage), "wait for it, or take another --storage"))
        searched = list(dimensions) or default_dimensions(start, lists=aim.maximised)
        if not searched:
            raise UserError(f"{start.algorithm} sets no number to search around", "name settings to search: --search")
        search = _Search(list(cuts), check(start), searched, storage, aim)
        ended = search.resume()
        taken = {trial.number for trial in ended}
        free = (number for number in itertools.count() if number not in taken)
        numbers = list(itertools.islice(free, max(0, trials - len(ended))))

        def told(index: int, news: tuple[dict[str, Any], int, int, float | None]) -> None:
            settings, at, of, value = news
            running = Trial(numbers[index], settings, objective=aim.name)
            progress(Moment(running, _best(ended, aim), len(ended), at, of, value))

        for _, trial in run_tasks(search.run, numbers, workers, report=told, stop=stop):
            ended.append(trial)
            progress(Moment(trial, _best(ended, aim), len(ended)))
        return search.result()


@dataclass(frozen=True)
class _Search:
    """What all trials share; sent to every process."""

    cuts: list[Cut]
    start: Config
    dimensions: list[Dimension]
    storage: Path
    objective: Objective

    def resume(self) -> list[Trial]:
        """The trials that came to an end, in a study that is new or has the same task; what a kill left is given up."""
        task = {
            "settings": to_tables(self.start),
            "search": sorted(str(dimension) for dimension in self.dimensions),
            "data": [fingerprint(cut.fitted, cut.held_out) for cut in self.cuts],
            **({"objective": self.objective.name} if self.objective.maximised else {}),
        }
        with self._study() as study:
            began = study.user_attrs.get("task", task)
            if differs := [what for what in {**began, **task} if began.get(what) != task.get(what)]:
                remedy = "call it as it was called before, or take another --storage"
                raise UserError(f"{self.storage} holds a study with other {' and '.join(differs)}", remedy)
            study.set_user_attr("task", task)
            for trial in study.get_trials(deepcopy=False):
                if not trial.state.is_finished():
                    study.tell(trial.number, state=import_optuna().trial.TrialState.FAIL)
            return _ended(study, self.objective)

    def run(self, number: int, tell: Tell, stop: Stop) -> Trial:
        """Draw settings and train with them, unless that is given up on the way."""
        with self._study(number) as study:
            study.optimize(lambda trial: self._objective(trial, number, tell, stop), n_trials=1)
            return next(trial for trial in _ended(study, self.objective) if trial.number == number)

    def result(self) -> Tuned:
        """The winner, and what is known besides."""
        with self._study() as study:
            trials = _ended(study, self.objective)
            shares = _importances(study, trials)
        if (best := _best(trials, self.objective)) is None:
            raise UserError(f"all {len(trials)} trials failed; the last: {trials[-1].why}", "search smaller steps")
        return Tuned(self.start, with_values(self.start, best.settings), best, trials, self.objective, shares)

    def _objective(self, trial: Any, number: int, tell: Tell, stop: Stop) -> float:
        settings = {each.name: each.draw(trial, value_of(self.start, each.name)) for each in self.dimensions}
        trial.set_user_attr("number", number)
        trial.set_user_attr("settings", settings)
        try:
            config = with_values(self.start, settings)
            tell((settings, 0, config.server.rounds, None))
            curves = (evaluations(cut, config, stop, self.objective) for cut in self.cuts)
            for points in zip(*curves, strict=True):
                round_number, means = points[0][0], self._by_dataset([value for _, value in points])
                value = float(np.mean(list(means.values())))
                tell((settings, round_number, config.server.rounds, value))
                trial.report(value, round_number)
                if round_number < config.server.rounds and trial.should_prune():
                    raise import_optuna().TrialPruned
        except (Diverged, UserError) as error:
            # Optuna forgets trials that failed; told as pruned, they keep it away from where training diverges
            trial.set_user_attr("failure", error.problem if isinstance(error, UserError) else str(error))
            raise import_optuna().TrialPruned from None
        trial.set_user_attr("by_dataset", means)
        return value

    def _by_dataset(self, values: Sequence[float]) -> dict[str, float]:
        of_name: dict[str, list[float]] = {}
        for cut, value in zip(self.cuts, values, strict=True):
            of_name.setdefault(cut.name, []).append(value)
        return {name: float(np.mean(some)) for name, some in of_name.items()}

    @contextlib.contextmanager
    def _study(self, number: int = 0) -> Iterator[Any]:
        """The study in its file, about to draw the trial of that number."""
        optuna = import_optuna()
        with _database(optuna, self.storage) as database:
            # keyed by number: nothing but the file has a state, and no two processes draw alike
            seed = subkey(self.start.seed, "tune", number) % 2**32
            sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True)
            if number == 0:
                own = {each.name: each.nearest(value_of(self.start, each.name)) for each in self.dimensions}
                sampler = optuna.samplers.PartialFixedSampler(own, sampler)
            pruner = optuna.pruners.MedianPruner(SURE_TRIALS, n_warmup_steps=self.start.server.rounds // 4)
            yield optuna.create_study(
                storage=database,
                sampler=sampler,
                pruner=pruner,
                study_name=_STUDY,
                load_if_exists=True,
                direction="maximize" if self.objective.maximised else "minimize",
            )


def import_optuna() -> Any:
    """The module, or an error that names the extra."""
    try:
        optuna = importlib.import_module("optuna")
    except ImportError:
        remedy = "install the extra tune: pip install 'fedrecplus[tune]'"
        raise UserError("tuning needs Optuna, which isn't installed", remedy) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    return optuna


@contextlib.contextmanager
def _database(optuna: Any, storage: Path) -> Iterator[Any]:
    refusal = importlib.import_module("sqlalchemy.exc").DatabaseError
    try:
        database = optuna.storages.RDBStorage(f"sqlite:///{storage}", {"connect_args": {"timeout": _BUSY_SECONDS}})
    except (refusal, RuntimeError) as error:
        why = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise UserError(f"{storage} holds no study: {why}", "give another file with --storage") from None
    try:
        yield database
    finally:
        database.engine.dispose()


def _ended(study: Any, objective: Objective) -> list[Trial]:
    """All trials that came to an end, in order; one that was killed or stopped isn't among them."""
    ended = (trial for trial in study.get_trials(deepcopy=False) if trial.state.name in ("COMPLETE", "PRUNED"))
    known = (Trial.of(trial, objective) for trial in ended if "number" in trial.user_attrs)
    return sorted(known, key=lambda trial: trial.number)


def _importances(study: Any, trials: Sequence[Trial]) -> dict[str, float]:
    """Each setting's share in what makes good trials good; nothing while there are too few to tell.

    After: Watanabe, Bansal and Hutter 2023 (PED-ANOVA), which needs no further package and no time.
    """
    if sum(trial.value is not None for trial in trials) < 2 * SURE_TRIALS:
        return {}
    importance = import_optuna().importance
    shares = importance.get_param_importances(study, evaluator=importance.PedAnovaImportanceEvaluator())
    return {name: float(share) for name, share in shares.items()}


def _best(trials: Sequence[Trial], objective: Objective) -> Trial | None:
    return next(iter(_ranked(trials, objective)), None)


def _ranked(trials: Sequence[Trial], objective: Objective) -> list[Trial]:
    complete = ((objective.better(trial.value), trial.number, trial) for trial in trials if trial.value is not None)
    return [trial for _, _, trial in sorted(complete, key=lambda entry: entry[:2])]
