"""Optuna's side of a search: the study in its file, what draws the next trial, and what prunes one.

Optuna is an extra, so it is imported when a search begins and nowhere else.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedrecplus.errors import UserError
from fedrecplus.experiments.search_space import Dimension, Range

SURE_TRIALS = 5
"""trials that none is pruned before"""
_NAME = "fedrecplus tune"
_TASK = "task"


def import_optuna() -> Any:
    """The module, or an error that names the extra."""
    try:
        optuna = importlib.import_module("optuna")
    except ImportError:
        remedy = "install the extra tune: pip install 'fedrecplus[tune]'"
        raise UserError("tuning needs Optuna, which isn't installed", remedy) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@contextlib.contextmanager
def open_study(storage: Path | None, task: Mapping[str, Any], warm_up: int) -> Iterator[Any]:
    """The study in a file, or one in memory. A file that holds another task is refused.

    No trial is pruned in its first ``warm_up`` rounds.
    """
    optuna = import_optuna()
    pruner = optuna.pruners.MedianPruner(SURE_TRIALS, n_warmup_steps=warm_up)
    if storage is None:
        yield optuna.create_study(pruner=pruner, study_name=_NAME)
        return
    with _alone(storage):
        database = _open_database(optuna, storage)
        try:
            study = optuna.create_study(storage=database, pruner=pruner, study_name=_NAME, load_if_exists=True)
            _check_same(storage, study, json.loads(json.dumps(task)))
            yield study
        finally:
            database.engine.dispose()


def sampler(seed: int) -> Any:
    """What draws a trial from those before it, away from those that still run.

    A new one for each trial, so that nothing but the file has a state.
    """
    optuna = import_optuna()
    with _quietly(optuna):
        return optuna.samplers.TPESampler(seed=seed % 2**32, multivariate=True, constant_liar=True)


def distribution(dimension: Dimension) -> Any:
    """A dimension as Optuna has it."""
    kinds = import_optuna().distributions
    if not isinstance(dimension, Range):
        return kinds.CategoricalDistribution(dimension.values)
    kind = kinds.IntDistribution if isinstance(dimension.low, int) else kinds.FloatDistribution
    return kind(dimension.low, dimension.high, log=dimension.log)


def importances(study: Any) -> dict[str, float]:
    """Each setting's share in what makes good trials good; nothing while there are too few to tell.

    After: Watanabe, Bansal and Hutter 2023 (PED-ANOVA), which needs no further package and no time.
    """
    optuna = import_optuna()
    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    if len(complete) < 2 * SURE_TRIALS:
        return {}
    with _quietly(optuna):
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in found.items()}


@contextlib.contextmanager
def _quietly(optuna: Any) -> Iterator[None]:
    """What is used here was experimental in Optuna 4 and no longer is in 5."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


@contextlib.contextmanager
def _alone(storage: Path) -> Iterator[None]:
    """Two processes on one study would each take the other's running trial for one that a kill left."""
    try:
        storage.parent.mkdir(parents=True, exist_ok=True)
        file = storage.open("ab")
    except OSError as error:
        raise UserError(f"{storage}: {error.strerror or error}", "choose a place that can be written to") from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another process works on {storage}", "wait for it, or take another --storage") from None
        yield


def _open_database(optuna: Any, storage: Path) -> Any:
    refusal = importlib.import_module("sqlalchemy.exc").DatabaseError
    try:
        return optuna.storages.RDBStorage(f"sqlite:///{storage}")
    except (refusal, RuntimeError) as error:
        why = str(getattr(error, "orig", None) or error).splitlines()[0]
        raise UserError(f"{storage} holds no study: {why}", "give another file with --storage") from None


def _check_same(storage: Path, study: Any, task: Mapping[str, Any]) -> None:
    began = study.user_attrs.get(_TASK)
    if began is None:
        study.set_user_attr(_TASK, task)
        return
    differs = [what for what, value in task.items() if began.get(what) != value]
    if differs:
        raise UserError(
            f"{storage} holds a study with other {' and '.join(differs)}",
            "call it as it was called before, or take another --storage",
        )
