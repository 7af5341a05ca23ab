"""Many algorithms on the same folds of the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedrecplus.config import Config, EvaluationSettings, check, preset, presets
from fedrecplus.data import RatingsLike, Split, concatenate, load
from fedrecplus.errors import UserError, unknown_name
from fedrecplus.experiments.baselines import OutsideModel, is_import_path, outside_model
from fedrecplus.experiments.comparison import Comparison, Summary, published
from fedrecplus.experiments.jobs import Monitor, against, cross_validation, lists_against
from fedrecplus.experiments.trivial import ADDED, TRIVIAL
from fedrecplus.training import AUTO, RunFolder

Algorithm = Any
"""a preset's or trivial predictor's name, ``auto`` for what suits each fold's training part, a config, or somebody's
own: an estimator, a function, an import path"""


def compare(
    ratings: RatingsLike,
    algorithms: Sequence[Algorithm],
    *,
    split: str | Split = "random",
    test: RatingsLike | None = None,
    folds: int = 5,
    seed: int = 0,
    baseline: str | None = None,
    workers: int = 0,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    monitor: Monitor = Monitor(),  # noqa: B008 -- it can't be changed
) -> Comparison:
    """Train every algorithm on every fold. An algorithm is a preset's name, a trivial predictor's, or a config.

    It may also be anybody's estimator with ``fit`` and ``predict``, a function, either with a name, as in
    ``("svd", SVD())``, or the import path of one: see ``experiments.baselines.OutsideModel``.

    ``split`` says how folds are cut (see ``fr.split``); with ``test``, all of ``ratings`` are trained on instead.
    ``baseline`` is what the others are tested against (the first algorithm, if not given). ``workers`` 0 means one per
    core. ``out`` gets a run folder per job; with ``resume``, jobs that are finished there are not run again. Runs that
    are in the way are refused, unless ``overwrite`` says that they may be replaced. The trivial predictors
    ``global-mean`` and ``bias-only`` are always there.
    """
    ratings, split_by = load(ratings), Split.parse(split)
    if test is not None:
        ratings, split_by = concatenate(ratings, load(test, like=ratings)), Split("column")
    outside = _outside_models(algorithms)
    asked = named_configs(algorithms, seed)
    untrained = {*TRIVIAL, *outside}
    judging = _judging([config for name, config in asked.items() if name not in {*untrained, AUTO}])
    asked = {
        name: replace(config, evaluation=judging) if name in {*untrained, AUTO} else config
        for name, config in asked.items()
    }
    extra = {name: Config(algorithm=name, seed=seed, evaluation=judging) for name in ADDED if name not in asked}
    configs = {**extra, **asked}
    baseline = baseline or next(iter(asked))
    if baseline not in configs:
        raise unknown_name("baseline", baseline, configs)

    def folder_of(name: str, fold: int) -> Path | None:
        if out is None or name in untrained:
            return None
        folder = Path(out) / name / f"fold-{fold}"
        if not resume:
            RunFolder(folder).check_free(overwrite=overwrite)
        return folder

    outcomes = cross_validation(ratings, configs, folds, workers, folder_of, monitor, resume, split_by, outside)
    went_well = [name for name in (baseline, *configs) if not any("failure" in one.row for one in outcomes[name])]
    baseline = went_well[0]  # trivial predictors never fail
    first = outcomes[baseline]
    summaries = [
        Summary.of(ratings.name, name, [one.row for one in own], against(first, own), lists_against(first, own))
        for name, own in outcomes.items()
    ]
    rows, trivial = ([outcome.row for name in some for outcome in outcomes[name]] for some in (asked, extra))
    # what others published was measured on random folds: beside another split it would mislead
    others = published(ratings.name) if split_by == Split() else []
    return Comparison(ratings.name, rows, trivial, summaries, others, str(split_by))


def cross_validate(
    ratings: RatingsLike,
    algorithms: str | Config | Sequence[Algorithm],
    *,
    split: str | Split = "random",
    folds: int = 5,
    seed: int = 0,
) -> Comparison:
    """k-fold cross-validation of one or more algorithms: ``compare`` for the Python prompt."""
    several = [algorithms] if isinstance(algorithms, str | Config) else algorithms
    return compare(ratings, several, split=split, folds=folds, seed=seed)


def named_configs(algorithms: Sequence[Algorithm], seed: int) -> dict[str, Config]:
    """Name → config, all with the same seed, so that they see the same folds; of a model from outside just its name."""
    configs: dict[str, Config] = {}
    for algorithm in algorithms:
        if _is_from_outside(algorithm):
            config = Config(algorithm=outside_model(algorithm).name)
        else:
            config = algorithm if isinstance(algorithm, Config) else _config_by_name(algorithm)
        if config.algorithm in configs:
            raise UserError(f"{config.algorithm} is there twice", "name each algorithm once")
        configs[config.algorithm] = check(replace(config, seed=seed))
    if not configs:
        raise UserError("there is nothing to compare", f"name algorithms: {', '.join(presets())}")
    return configs


def _is_from_outside(algorithm: Algorithm) -> bool:
    if isinstance(algorithm, str):
        return is_import_path(algorithm)
    return not isinstance(algorithm, Config)


def _outside_models(algorithms: Sequence[Algorithm]) -> dict[str, OutsideModel]:
    models = [outside_model(algorithm) for algorithm in algorithms if _is_from_outside(algorithm)]
    for model in models:
        if model.name in (*presets(), *TRIVIAL):
            raise UserError(f"{model.name} is the name of an algorithm here", "give yours another: ('mine', model)")
    return {model.name: model for model in models}


def _config_by_name(name: str) -> Config:
    if name in (*TRIVIAL, AUTO):
        return Config(algorithm=name)
    if name not in presets():
        raise unknown_name("algorithm", name, [AUTO, *presets(), *TRIVIAL])
    return preset(name)


def _judging(configs: Sequence[Config]) -> EvaluationSettings:
    """How all are judged: what is relevant in the lists of one must be so in those of the others."""
    trained = [config.evaluation for config in configs]
    if len({(one.relevant_from, one.negatives) for one in trained}) > 1:
        raise UserError(
            "the algorithms differ in evaluation.relevant_from or negatives, so their lists can't be compared",
            "set it for all of them: --set evaluation.relevant_from=4",
        )
    return trained[0] if trained else EvaluationSettings()
